"""docs/contract-changes.md: every difference between two snapshots of the public contracts."""

import re
from collections.abc import Iterator
from typing import Any

# Keys whose value is read by people (or models) and parsed by nobody.
TEXT_KEYS = ("description", "title", "help", "summary", "instructions", "epilog")
INTRO = """\
Every difference between what 0.1.0 offered and what this version offers, found by comparing two
snapshots: `tools/list` of each server, the OpenAPI document, the command line, the settings, the
error codes and the stored formats. The snapshots are in `tests/contracts/`; after a change
`python -m scripts.contracts` writes them and this page, and a test compares them with the code."""
INDEXES = """\
They decide how fast a file is read, not what it holds: each version opens the other's files, and
this one remakes the indexes of a file that 0.1.0 wrote."""
OUTLINED = """\
The listing of these tools names the fields of the answer and their types, and leaves out what is
inside them: whole schemas took more tokens than all that a model chooses a tool by. Answers are as
they were; `/openapi.json` has their whole schemas."""
DECIDED = {
    "cli / commands / keys / commands / add / parameters": "--operator makes a key whose holder "
    "may manage keys and jobs in a browser; the options that were there stay",
    "mcp-josh / tools / fetch / inputSchema / properties / id / maxLength": "addresses and "
    "citations that answers print are longer than 200 characters; what was taken still is",
    "openapi / paths / /v1/fetch / get / parameters": "the same bound, and an optional `section`",
    "settings / ingest_seconds / default": "small files must not hold a reader for half an hour",
}
"""What was changed on purpose, with the reason; everything else that was there stays."""
MARK = "<!-- Written by `python -m scripts.contracts`; changes made here by hand are lost. -->"

Difference = tuple[str, Any, Any]
ABSENT = object()


def render_changes(baseline: dict[str, Any], current: dict[str, Any]) -> str:
    """Render the differences: additions, decisions, texts and indexes apart from all others."""
    differences = list(compare(baseline, current))
    texts = [row for row in differences if is_text(row[0])]
    indexes = [row for row in differences if is_index(row)]
    additions = [row for row in differences if is_addition(row, current) and not is_outlined(row)]
    decided = [row for row in differences if row[0] in DECIDED]
    outlined = {row[0].partition(" / outputSchema")[0] for row in differences if is_outlined(row)}
    others = find_shape_differences(baseline, current)
    return "\n".join(
        [
            *("# Changes of public contracts since 0.1.0", "", MARK, "", INTRO, ""),
            *("## Names, types, fields, paths and formats", ""),
            *(render_rows(others) or ["None."]),
            *("", f"## Decided ({len(decided)})", ""),
            *(render_decided(decided) or ["None."]),
            *("", f"## Additions ({len(additions)})", ""),
            *(render_rows(additions) or ["None."]),
            *("", f"## Outlined ({len(outlined)})", "", OUTLINED, ""),
            *([f"- {name}" for name in sorted(outlined)] or ["None."]),
            *("", f"## Indexes ({len(indexes)})", "", INDEXES, ""),
            *(render_rows(indexes) or ["None."]),
            *("", f"## Texts ({len(texts)})", ""),
            *(render_rows(texts) or ["None."]),
            "",
        ]
    )


def find_shape_differences(baseline: dict[str, Any], current: dict[str, Any]) -> list[Difference]:
    """Return the differences that could break a program which works with 0.1.0."""
    return [
        row
        for row in compare(baseline, current)
        if not (
            is_text(row[0])
            or is_index(row)
            or is_outlined(row)
            or is_addition(row, current)
            or row[0] in DECIDED
        )
    ]


def compare(old: Any, new: Any, path: str = "") -> Iterator[Difference]:
    """Yield path, old and new value of every difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            inner = f"{path} / {key}" if path else str(key)
            yield from compare(old.get(key, ABSENT), new.get(key, ABSENT), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from compare(before, after, f"{path} / {index}")
    elif old != new:
        yield path, old, new


def is_outlined(difference: Difference) -> bool:
    """Whether a listing leaves out what is inside the fields of an answer; the fields are there.

    The whole schemas of these answers are in the OpenAPI document, where they are compared.
    """
    path, old, new = difference
    surface, _, rest = path.partition(" / tools / ")
    _, _, inside = rest.partition(" / outputSchema / ")
    if surface not in ("mcp-josh", "mcp-reading-room") or not inside:
        return False
    if inside.startswith("properties / "):
        # A field that is gone, or is of another type, is no outline.
        has_field = inside.count(" / ") > 1
        return has_field and not (inside.endswith(" / type") and old is not ABSENT)
    return new is ABSENT and inside.startswith(("$defs", "description", "anyOf / "))


def is_text(path: str) -> bool:
    return path.rpartition(" / ")[2] in TEXT_KEYS


def is_index(difference: Difference) -> bool:
    """Whether only the key of an index differs, which is remade when a file is opened."""
    _, *statements = difference
    return all(str(statement).startswith("CREATE INDEX ") for statement in statements)


def is_addition(difference: Difference, current: dict[str, Any]) -> bool:
    """Whether something is there that was not; a new argument that is required is no addition."""
    path, old, new = difference
    if path.endswith(" / required") and isinstance(old, list) and isinstance(new, list):
        return set(old) < set(new) and is_answer(path, current)
    if old is not ABSENT and is_widened(path, old, new):
        return True
    if path.endswith(" / _meta / schemaVersion"):
        # By Semantic Versioning: only a new major version breaks anything.
        return str(old).partition(".")[0] == str(new).partition(".")[0]
    if path.endswith(" / enrichment / default"):  # the names of the fields that a server adds
        return set(old) < set(new)
    return old is ABSENT and not is_text(path)


# Answers that may now have values they did not have: of our own tools, which no contract names.
WIDENED_ANSWERS = frozenset(
    {
        "mcp-policy-kb-mcp / tools / compare_policy_revisions / outputSchema / $defs / "
        "SectionChange / properties / change / enum",
        # Only where a plan was loaded that is not adopted, or a search named an authority.
        "mcp-policy-kb-mcp / tools / list_policy_revisions / outputSchema / $defs / "
        "RevisionStatus / enum",
        "openapi / components / schemas / RevisionStatus / enum",
        "mcp-policy-kb-mcp / tools / search_policy / outputSchema / $defs / Excluded / "
        "properties / reason / enum",
        "mcp-policy-kb-mcp / tools / search_policy_batch / outputSchema / $defs / Excluded / "
        "properties / reason / enum",
    }
)


def is_widened(path: str, old: Any, new: Any) -> bool:
    """Whether a value now has all that it had, and more that nobody has to use."""
    if path.endswith(" / enum") and " / inputSchema / " in path:
        return set(old) < set(new)
    if path.endswith(" / parameters"):
        added = {parameter["name"] for parameter in new} - {parameter["name"] for parameter in old}
        kept = [parameter for parameter in new if parameter["name"] not in added]
        required = [parameter for parameter in new if parameter.get("required")]
        differences = [row for row in compare(old, kept) if not is_text(row[0])]
        return not differences and not any(each["name"] in added for each in required)
    if str(old).startswith("CREATE TABLE ") and str(new).startswith("CREATE TABLE "):
        return set(split_columns(old)) < set(split_columns(new))
    if path.startswith(("stored / chroma / ", "stored / redis / ")):  # fields of a chunk, of a hash
        return set(old) < set(new)
    return path in WIDENED_ANSWERS and set(old) < set(new)


def split_columns(statement: str) -> list[str]:
    """Return the definitions of a table's columns, as its statement writes them."""
    inside = statement.partition("(")[2].rpartition(")")[0]
    return [column.strip() for column in re.split(r",(?![^(]*\))", inside)]


def is_answer(path: str, current: dict[str, Any]) -> bool:
    """Whether a schema describes what is answered: a field that is always there can be added."""
    if " / outputSchema / " in path:
        return True
    surface, *_, name, _ = path.split(" / ")
    return surface == "openapi" and name not in find_request_schemas(current["openapi"])


def find_request_schemas(document: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that request bodies use, directly or inside others."""
    schemas = document["components"]["schemas"]
    bodies = [
        operation.get("requestBody")
        for methods in document["paths"].values()
        for operation in methods.values()
    ]
    names: set[str] = set()
    found = _find_references(bodies)
    while found - names:
        names |= found
        found = _find_references([schemas[name] for name in names])
    return names


def _find_references(part: Any) -> set[str]:
    return set(re.findall(r"'#/components/schemas/([^']+)'", str(part)))


def render_decided(differences: list[Difference]) -> list[str]:
    return [
        line
        for row in differences
        for line in (*render_rows([row]), f"  - because {DECIDED[row[0]]}")
    ]


def render_rows(differences: list[Difference]) -> list[str]:
    lines: list[str] = []
    for path, old, new in differences:
        lines += [f"- **{path}**", f"  - 0.1.0: {render(old)}", f"  - now: {render(new)}"]
    return lines


def render(value: Any) -> str:
    if value is ABSENT:
        return "(absent)"
    return "`" + " ".join(str(value).replace("`", "'").split()) + "`"
