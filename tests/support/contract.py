"""Compares two versions of a set of tools: what would break a caller of the older one.

    python -m tests.support.contract        write the snapshot of the version that the code names

A snapshot is kept for each version of the schemas. Governance (docs/governance.md) says what a
difference asks for; `tests/bases/guidance/test_contract.py` holds it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from readingroom.bases.guidance.tools import SCHEMA_VERSION, open_guidance_base

FOLDER = Path(__file__).parents[1] / "contracts"

Schema = Mapping[str, Any]
Tools = Mapping[str, Mapping[str, Schema]]


def read_current_tools() -> dict[str, dict[str, Any]]:
    """The tools as the code publishes them."""
    base = open_guidance_base("https://www.gov.uk")
    return {
        tool.name: {"input": tool.input_schema, "output": tool.output_schema}
        for tool in sorted(base.tools, key=lambda tool: tool.name)
    }


def get_snapshot_path(version: str) -> Path:
    return FOLDER / f"guidance-{version}.json"


def list_versions() -> list[tuple[int, ...]]:
    """Every version that has a snapshot, the oldest first."""
    names = [path.stem.removeprefix("guidance-") for path in FOLDER.glob("guidance-*.json")]
    return sorted(parse_version(name) for name in names)


def parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def list_breaking_changes(old: Tools, new: Tools) -> list[str]:
    """One line for each thing that a caller of `old` could no longer rely on."""
    return [line for name in old for line in _tool(name, old[name], new.get(name))]


def _tool(name: str, old: Mapping[str, Schema], new: Mapping[str, Schema] | None) -> Iterator[str]:
    if new is None:
        yield f"{name}: is gone"
        return
    yield from _compare_inputs(f"{name} input", old["input"], new["input"])
    for number, shape in enumerate(_list_shapes(old["output"])):
        candidates = _list_shapes(new["output"])
        if number >= len(candidates):
            yield f"{name} output: a kind of answer is gone"
            continue
        yield from _compare_outputs(
            f"{name} output", shape, candidates[number], (old["output"], new["output"])
        )


def _compare_inputs(place: str, old: Schema, new: Schema) -> Iterator[str]:
    """What was accepted must be accepted still."""
    for name, field in old["properties"].items():
        if name not in new["properties"]:
            yield f"{place}: {name} is no longer taken"
        elif is_narrower(field, new["properties"][name]):
            yield f"{place}: {name} takes less than before"
    for name in set(new.get("required", [])) - set(old.get("required", [])):
        yield f"{place}: {name} must be given now"


def is_narrower(old: Schema, new: Schema) -> bool:
    """Whether a value that fitted may not fit any more."""
    for bound, tighter in (
        ("maxLength", min),
        ("maximum", min),
        ("minimum", max),
        ("minLength", max),
    ):
        if bound in new and (bound not in old or tighter(old[bound], new[bound]) != old[bound]):
            return True
    same = ("type", "anyOf", "enum", "pattern", "items", "format", "additionalProperties")
    return any(old.get(name) != new.get(name) for name in same)


def _compare_outputs(
    place: str, old: Schema, new: Schema, roots: tuple[Schema, Schema]
) -> Iterator[str]:
    """What was answered must be answered still, as the same kind of thing."""
    old, new = _resolve_reference(old, roots[0]), _resolve_reference(new, roots[1])
    for name, field in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            yield f"{place}: {name} is no longer answered"
        elif name in old.get("required", []) and name not in new.get("required", []):
            yield f"{place}: {name} may be missing now"
        else:
            yield from _compare_outputs(f"{place}.{name}", field, new["properties"][name], roots)
    if "items" in old:
        yield from _compare_outputs(f"{place}[]", old["items"], new.get("items", {}), roots)
    if _list_kinds(old) != _list_kinds(new):
        yield f"{place}: is of another kind"


def _list_shapes(schema: Schema) -> list[Schema]:
    return list(schema.get("anyOf", [schema]))


def _resolve_reference(schema: Schema, root: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    definition: Schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return definition


def _list_kinds(schema: Schema) -> set[str]:
    arms = schema.get("anyOf", [schema])
    return {f"{arm.get('type')} {arm.get('format', '')} {arm.get('$ref', '')}" for arm in arms}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(read_current_tools(), indent=1, ensure_ascii=False, sort_keys=True)
    get_snapshot_path(SCHEMA_VERSION).write_text(text + "\n", "utf-8")
