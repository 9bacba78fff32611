"""Which tools OpenAI's strict mode cannot take: those that docs/clients.md names, and no others."""

import re
from pathlib import Path
from typing import Any

from readingroom.bases import BASES, open_bases
from readingroom.settings import load_settings
from tests.requirements import requirement

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


def has_open_object(schema: Any) -> bool:
    """Whether an object anywhere in a schema may have members that are not named."""
    if isinstance(schema, list):
        return any(map(has_open_object, schema))
    if not isinstance(schema, dict):
        return False
    members = schema.get("additionalProperties")
    is_bare = schema.get("type") == "object" and "properties" not in schema and members is not False
    is_open = members is True or isinstance(members, dict)
    return is_open or is_bare or any(map(has_open_object, schema.values()))


@requirement("room:docs")
def test_every_tool_that_strict_mode_cannot_take_is_listed(tmp_path: Path) -> None:
    bases = open_bases(list(BASES), load_settings({"data": tmp_path}, {}))
    tools = [tool for base in bases for tool in base.tools]
    section = PAGE.read_text("utf-8").partition("## Strict schemas")[2]
    listed = set(re.findall(r"^- `(\w+)`$", section, re.MULTILINE))

    not_convertible = {tool.name for tool in tools if has_open_object(tool.input_schema)}

    assert not_convertible == listed
    assert len(listed) <= 5 < len(tools)


def test_the_known_filters_of_guidance_are_named(tmp_path: Path) -> None:
    (base,) = open_bases(["guidance"], load_settings({"data": tmp_path}, {}))
    (search,) = (tool for tool in base.tools if tool.name == "search_guidance")
    filters = search.input_schema["properties"]["filters"]
    assert filters["additionalProperties"] is True
    assert {"format", "document_type", "public_timestamp_from"} <= filters["properties"].keys()
