"""The guidance contract: the spec's schemas to the letter, and no breaking change by accident."""

import copy
import json
from itertools import pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from readingroom.bases.guidance.tools import SCHEMA_VERSION
from tests.requirements import requirement
from tests.support.contract import (
    get_snapshot_path,
    list_breaking_changes,
    list_versions,
    parse_version,
    read_current_tools,
)
from tests.support.govuk import RETURN, connect_client, run_emulator
from tests.support.kit import read_body

# The output schemas of the spec, as they stand there, but that a date may be null where GOV.UK has
# none (DESIGN, section 9).
URI = {"type": "string", "format": "uri"}
MOMENT: dict[str, Any] = {"type": ["string", "null"], "format": "date-time"}
HIT = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "url": URI,
        "summary": {"type": "string"},
        "public_updated_at": MOMENT,
    },
    "required": ["title", "url", "public_updated_at"],
}
KIND = {
    "type": "object",
    "properties": {"code": {"type": "string"}, "description": {"type": "string"}},
    "required": ["code", "description"],
}
SPEC: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "get_content_by_path": (
        {"path": "string"},
        {
            "content": {"type": "object"},
            "url": URI,
            "public_updated_at": MOMENT,
            "attribution": {"type": "string"},
        },
        ["content", "url", "public_updated_at", "attribution"],
    ),
    "search_guidance": (
        {"query": "string", "filters": "object"},
        {"results": {"type": "array", "items": HIT}},
        ["results"],
    ),
    "get_source_metadata": (
        {"path": "string"},
        {
            "url": URI,
            "identifiers": {"type": "object"},
            "last_updated": MOMENT,
            "licence": {"type": "string"},
        },
        ["url", "last_updated", "licence"],
    ),
    "force_refresh": (
        {"path": "string"},
        {"refreshed": {"type": "boolean"}, "timestamp": {"type": "string", "format": "date-time"}},
        ["refreshed", "timestamp"],
    ),
    "get_error_taxonomy": ({}, {"errors": {"type": "array", "items": KIND}}, ["errors"]),
}
REQUIRED_ARGUMENTS = {
    "get_content_by_path": ["path"],
    "search_guidance": ["query"],
    "get_source_metadata": ["path"],
    "force_refresh": ["path"],
    "get_error_taxonomy": [],
}


@requirement("guidance:tools")
@pytest.mark.parametrize("name", SPEC)
def test_a_tool_takes_what_the_spec_says(name: str) -> None:
    asked = read_current_tools()[name]["input"]
    arguments, _, _ = SPEC[name]
    assert asked.get("required", []) == REQUIRED_ARGUMENTS[name]
    for argument, kind in arguments.items():
        assert asked["properties"][argument]["type"] == kind
    if name == "search_guidance":
        assert asked["properties"]["filters"]["additionalProperties"] is True


@requirement("guidance:tools")
@pytest.mark.anyio
@pytest.mark.parametrize("name", SPEC)
async def test_an_answer_fits_the_specs_schema_and_ours(name: str) -> None:
    _, properties, required = SPEC[name]
    spec = {"type": "object", "properties": properties, "required": required}
    arguments = {"path": RETURN, "query": "annual return", "filters": {}}
    asked = {key: arguments[key] for key in REQUIRED_ARGUMENTS[name]}
    with run_emulator() as upstream:
        async with connect_client(upstream.url) as client:
            result = await client.call_tool(name, asked)
    told = read_body(result)
    for schema in (spec, read_current_tools()[name]["output"]):
        checker = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        assert [problem.message for problem in checker.iter_errors(told)] == []
    assert result.meta["schemaVersion"] == SCHEMA_VERSION


@requirement("guidance:semver")
@pytest.mark.anyio
async def test_listings_and_errors_name_the_version_of_the_schemas_too() -> None:
    async with connect_client("http://127.0.0.1:9") as client:
        listed = (await client.list_tools()).tools
        failed = await client.call_tool("get_content_by_path", {"path": "?"})
    assert {tool.meta["schemaVersion"] for tool in listed if tool.meta} == {SCHEMA_VERSION}
    assert failed.meta is not None
    assert failed.meta["schemaVersion"] == SCHEMA_VERSION


@requirement("guidance:semver")
def test_the_tools_are_those_of_their_version() -> None:
    """Changed a schema? Raise SCHEMA_VERSION (docs/governance.md), run tests.support.contract."""
    assert read_current_tools() == json.loads(get_snapshot_path(SCHEMA_VERSION).read_text("utf-8"))


@requirement("guidance:semver")
def test_what_breaks_a_caller_came_with_a_new_major_version() -> None:
    numbered = list_versions()
    assert numbered[-1] == parse_version(SCHEMA_VERSION)
    for old, new in pairwise(numbered):
        before, after = (
            json.loads(get_snapshot_path(".".join(map(str, version))).read_text("utf-8"))
            for version in (old, new)
        )
        assert new[0] > old[0] or not list_breaking_changes(before, after)


def _remove_tool(tools: Any) -> None:
    del tools["force_refresh"]


def _remove_argument(tools: Any) -> None:
    del tools["search_guidance"]["input"]["properties"]["filters"]


def _require_argument(tools: Any) -> None:
    tools["search_guidance"]["input"]["required"].append("page")


def _tighten_argument(tools: Any) -> None:
    tools["search_guidance"]["input"]["properties"]["query"]["maxLength"] = 10


def _retype_argument(tools: Any) -> None:
    tools["recent_changes"]["input"]["properties"]["since"]["format"] = "date-time"


def _remove_field(tools: Any) -> None:
    del tools["force_refresh"]["output"]["properties"]["timestamp"]


def _loosen_field(tools: Any) -> None:
    tools["force_refresh"]["output"]["required"].remove("timestamp")


def _retype_field(tools: Any) -> None:
    tools["force_refresh"]["output"]["properties"]["refreshed"]["type"] = "string"


def _remove_nested_field(tools: Any) -> None:
    del tools["search_guidance"]["output"]["$defs"]["Hit"]["properties"]["url"]


def _remove_field_of_one_kind(tools: Any) -> None:
    del tools["get_content_by_path"]["output"]["$defs"]["PageContent"]["properties"]["content"]


@requirement("guidance:semver")
@pytest.mark.parametrize(
    "change",
    [
        _remove_tool,
        _remove_argument,
        _require_argument,
        _tighten_argument,
        _retype_argument,
        _remove_field,
        _loosen_field,
        _retype_field,
        _remove_nested_field,
        _remove_field_of_one_kind,
    ],
)
def test_a_breaking_change_is_seen(change: Any) -> None:
    changed = copy.deepcopy(read_current_tools())
    change(changed)
    assert len(list_breaking_changes(read_current_tools(), changed)) == 1


@requirement("guidance:semver")
def test_an_addition_breaks_nobody() -> None:
    changed: Any = copy.deepcopy(read_current_tools())
    changed["a_new_tool"] = changed["force_refresh"]
    changed["search_guidance"]["input"]["properties"]["language"] = {"type": "string"}
    changed["search_guidance"]["input"]["properties"]["query"]["maxLength"] = 1000
    changed["search_guidance"]["output"]["properties"]["took_ms"] = {"type": "number"}
    assert list_breaking_changes(read_current_tools(), changed) == []
