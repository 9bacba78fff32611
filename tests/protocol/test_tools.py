"""The shapes that hold for every tool: schemas, answers, errors in each dialect, progress."""

import base64
import json
import logging
import typing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import mcp_types as wire
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.shared.exceptions import MCPError

from readingroom.bases import BASES, open_bases
from readingroom.federation.room import make_federated_base
from readingroom.protocol.errors import (
    ErrorDialect,
    FederalDialect,
    GuidanceDialect,
    StatusDialect,
    TextDialect,
)
from readingroom.protocol.resources import PageImage, ReadPageImage
from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.faces import make_face, make_faces
from readingroom.server.mcp.handlers import build_mcp_server
from readingroom.server.observe.logging import CallRecord
from readingroom.settings import load_settings
from tests.requirements import requirement
from tests.support.kit import read_body
from tests.support.specimen import SECRET, SPEC, make_specimen

pytestmark = pytest.mark.anyio

GUIDANCE = GuidanceDialect("Source: someone", "Not advice.")
DIALECTS: dict[str, ErrorDialect] = {
    "status": StatusDialect(),
    "text": TextDialect(),
    "federal": FederalDialect(),
    "guidance": GUIDANCE,
}


def connect_client(base: KnowledgeBase, records: list[CallRecord] | None = None) -> Client:
    recorders = [] if records is None else [records.append]
    return Client(build_mcp_server(make_face(base), recorders))


def open_every_base(tmp_path: Path) -> list[KnowledgeBase]:
    return [
        *open_bases(BASES, load_settings({"data": tmp_path}, {})),
        make_specimen(folder=tmp_path),
    ]


@requirement("room:structured")
async def test_every_tool_is_listed_with_title_annotations_and_both_schemas(tmp_path: Path) -> None:
    for base in open_every_base(tmp_path):
        async with connect_client(base) as client:
            listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == sorted(tool.name for tool in base.tools)
        for tool in listed:
            assert tool.title
            assert tool.description
            assert tool.annotations is not None
            assert tool.input_schema["additionalProperties"] is False
            assert tool.output_schema is not None
            assert tool.output_schema["type"] == "object"
            Draft202012Validator.check_schema(tool.input_schema)
            Draft202012Validator.check_schema(tool.output_schema)


@requirement("room:bounds")
def test_every_argument_of_every_tool_is_bounded(tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path}, {})
    bases = open_bases(BASES, settings)
    tools = [tool for base in (*bases, make_federated_base(bases, settings)) for tool in base.tools]
    assert [
        (tool.name, place)
        for tool in tools
        for place in _list_unbounded_places(tool.input_schema, tool.input_schema.get("$defs"), "")
    ] == []


def _list_unbounded_places(schema: Any, defs: Any, place: str) -> Iterator[str]:
    """Where a schema lets a value be as large as its sender likes."""
    if "$ref" in schema:
        schema = defs[schema["$ref"].rpartition("/")[2]]
    for part in schema.get("anyOf", ()):
        yield from _list_unbounded_places(part, defs, place)
    bounds = {
        "string": {"maxLength", "pattern", "enum", "format"},
        "integer": {"maximum", "enum"},
        "number": {"maximum"},
        "array": {"maxItems"},
        "object": {"properties", "maxProperties"},
    }.get(schema.get("type"))
    if bounds and not bounds & schema.keys():
        yield place
    if "items" in schema:
        yield from _list_unbounded_places(schema["items"], defs, f"{place}[]")
    for name, inner in schema.get("properties", {}).items():
        yield from _list_unbounded_places(inner, defs, f"{place}.{name}")
    if isinstance(rest := schema.get("additionalProperties"), dict):
        yield from _list_unbounded_places(rest, defs, f"{place}.*")


@requirement("room:structured")
@pytest.mark.parametrize("text", ["hello", ""])
async def test_an_answer_fits_its_schema_and_says_the_same_twice(text: str) -> None:
    async with connect_client(make_specimen()) as client:
        schema = next(
            tool.output_schema for tool in (await client.list_tools()).tools if tool.name == "echo"
        )
        answer = read_body(await client.call_tool("echo", {"text": text}))
    assert schema is not None
    Draft202012Validator(schema).validate(answer)


async def test_a_description_may_name_live_values(tmp_path: Path) -> None:
    base = make_specimen(folder=tmp_path)
    async with connect_client(base) as client:
        before = (await client.list_tools()).tools
        base.service.add("a note")
        after = (await client.list_tools(cache_mode="bypass")).tools
    assert [tool.description for tool in before if tool.name == "echo"] == ["Live: 0 notes."]
    assert [tool.description for tool in after if tool.name == "echo"] == ["Live: 1 notes."]


@requirement("room:dialects", "room:error-shape")
@pytest.mark.parametrize(
    ("dialect", "told"),
    [
        (
            "status",
            {
                "status": "error",
                "error_type": "text_unreadable",
                "message": "not today",
                "hint": {"use_tool": "echo"},
            },
        ),
        ("text", {"status": "error", "error": "not today"}),
        (
            "guidance",
            {
                "error": {
                    "code": "TEXT_UNREADABLE",
                    "message": "not today",
                    "hint": {"use_tool": "echo"},
                },
                "attribution": "Source: someone",
                "disclaimer": "Not advice.",
            },
        ),
    ],
)
async def test_an_error_is_told_in_the_dialect_of_its_base(
    dialect: str, told: dict[str, Any]
) -> None:
    async with connect_client(make_specimen(DIALECTS[dialect])) as client:
        result = await client.call_tool("fail")
    assert result.is_error
    assert read_body(result) == told


@requirement("room:dialects", "room:error-shape")
async def test_federal_tells_a_sentence_a_line_for_machines_and_meta() -> None:
    records: list[CallRecord] = []
    async with connect_client(make_specimen(FederalDialect()), records) as client:
        result = await client.call_tool("fail")
    request_id = records[0].request_id
    assert result.is_error
    assert [item.text for item in result.content] == [
        f"not today (code=text_unreadable, request_id={request_id})",
        f"text_unreadable {request_id}",
    ]
    assert result.meta is not None
    assert {
        key: result.meta[key] for key in ("error_code", "error_type", "request_id", "hint")
    } == {
        "error_code": "text_unreadable",
        "error_type": "unavailable",
        "request_id": request_id,
        "hint": {"use_tool": "echo"},
    }


BAD_ARGUMENTS = [
    ({}, "text"),
    ({"text": 5}, "text"),
    ({"text": "x" * 1001}, "text"),
    ({"text": "x", "times": "2"}, "times"),
    ({"text": "x", "times": 0}, "times"),
    ({"text": "x", "times": 10**30}, "times"),
    ({"text": "x", "times": True}, "times"),
    ({"text": "x", "times": 1.5}, "times"),
    ({"text": "x", "shout": True}, "shout"),
    ({"text": None}, "text"),
    ({"text": {"deep": [[[[]]]]}}, "text"),
]


@requirement("room:bounds", "room:invalid-arguments")
@pytest.mark.parametrize(("arguments", "field"), BAD_ARGUMENTS)
@pytest.mark.parametrize("dialect", ["status", "text", "guidance"])
async def test_a_bad_argument_is_an_error_result_that_names_it(
    dialect: str, arguments: dict[str, Any], field: str
) -> None:
    async with connect_client(make_specimen(DIALECTS[dialect])) as client:
        result = await client.call_tool("echo", arguments)
    assert result.is_error
    assert f"Invalid arguments: {field}: " in json.dumps(read_body(result))


@requirement("room:invalid-arguments")
@pytest.mark.parametrize(("arguments", "field"), BAD_ARGUMENTS)
async def test_a_bad_argument_is_a_protocol_error_in_federal(
    arguments: dict[str, Any], field: str
) -> None:
    async with connect_client(make_specimen(FederalDialect())) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("echo", arguments)
    assert refused.value.error.code == wire.INVALID_PARAMS
    assert refused.value.error.data["errors"][0]["field"] == field


@requirement("room:unknown-tool")
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_unknown_tool_is_a_protocol_error_everywhere(dialect: str) -> None:
    async with connect_client(make_specimen(DIALECTS[dialect])) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("no_such_tool")
    assert refused.value.error.code == wire.INVALID_PARAMS
    assert refused.value.error.message == "Unknown tool: no_such_tool"


@requirement("room:internal")
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_unforeseen_failure_keeps_its_text_in_the_log(
    dialect: str, caplog: pytest.LogCaptureFixture
) -> None:
    records: list[CallRecord] = []
    with caplog.at_level(logging.ERROR):
        async with connect_client(make_specimen(DIALECTS[dialect]), records) as client:
            result = await client.call_tool("crash")
    assert result.is_error
    told = result.model_dump_json()
    assert SECRET not in told
    assert records[0].request_id in told
    assert records[0].error_code == "internal"
    assert SECRET in caplog.text


async def test_a_caller_that_asks_hears_how_far_a_tool_has_come() -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    async with connect_client(make_specimen()) as client:
        await client.call_tool("count_slowly", progress_callback=listen)
    assert heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@requirement("room:log")
async def test_a_call_that_its_caller_gives_up_is_recorded_as_cancelled() -> None:
    records: list[CallRecord] = []
    recorded = anyio.Event()
    server = build_mcp_server(
        make_face(make_specimen()), [records.append, lambda record: recorded.set()]
    )
    async with Client(server) as client:
        with anyio.CancelScope() as scope:

            async def leave(done: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await client.call_tool("wait_for_ever", progress_callback=leave)
        await recorded.wait()
    assert [(record.result_status, record.error_code) for record in records] == [
        ("error", "cancelled")
    ]


def test_two_tools_of_one_name_cannot_share_a_face() -> None:
    whole, *_ = make_faces((make_specimen(), make_specimen()))
    with pytest.raises(ValueError, match="same name"):
        build_mcp_server(whole, [])


@requirement("room:read-only")
async def test_read_only_lists_and_calls_no_tool_that_writes(tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path, "read_only": True}, {})
    (base,) = open_bases(["specimen"], settings, {"specimen": SPEC})
    async with connect_client(base) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        with pytest.raises(MCPError):
            await client.call_tool("write_note", {"text": "x"})
    assert "write_note" not in listed
    assert "echo" in listed
    assert base.service.all() == []


async def test_the_face_of_all_bases_tells_errors_in_each_bases_dialect(tmp_path: Path) -> None:
    text = open_bases(["text"], load_settings({"data": tmp_path, "kb_file": tmp_path}, {}))
    whole, *_ = make_faces((*text, make_specimen()))
    async with Client(build_mcp_server(whole, [])) as client:
        by_text = read_body(await client.call_tool("get_kb_content"))
        by_specimen = read_body(await client.call_tool("fail"))
    assert set(by_text) == {"status", "error"}
    assert by_specimen["error_type"] == "text_unreadable"


def test_a_tool_that_was_prepared_has_every_model_of_its_answers(tmp_path: Path) -> None:
    (base,) = (base for base in open_every_base(tmp_path) if base.name == "policy")
    (tool,) = (tool for tool in base.tools if tool.name == "search_policy")
    tool.prepare_schemas()
    hits_type = tool.answer_type
    (hit_type,) = typing.get_args(hits_type.model_fields["results"].annotation)
    assert hits_type.__pydantic_complete__ and hit_type.__pydantic_complete__


def test_a_listing_fits_into_what_hosts_read(tmp_path: Path) -> None:
    """They cut what is longer than 2 KB, and choose worse among more than 8,000 tokens."""
    settings = load_settings({"data": tmp_path}, {})
    bases = open_bases(BASES, settings)
    for face in make_faces(bases, make_federated_base(bases, settings)):
        assert len(face.instructions.encode()) <= 2048, face.server_name
        said = [
            (tool.name, tool.describe(), tool.input_schema)
            for tool, _ in face.tools_and_dialects_by_name.values()
        ]
        assert max(len(description.encode()) for _, description, _ in said) <= 2048
        if len(face.bases) == 1:
            assert len(json.dumps(said)) / 4 <= 8_000, face.server_name


async def test_the_schemas_carry_no_titles_of_the_framework(tmp_path: Path) -> None:
    for base in open_every_base(tmp_path):
        for tool in base.tools:
            assert not list(list_titles([tool.input_schema, tool.output_schema]))


def list_titles(schema: Any) -> Iterator[str]:
    """Every title in a schema; a field that is called so has a schema there, not a text."""
    members = schema.values() if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and isinstance(schema.get("title"), str):
        yield schema["title"]
    for member in members:
        if isinstance(member, dict | list):
            yield from list_titles(member)


async def test_each_base_reads_the_pictures_of_its_own_prefix(tmp_path: Path) -> None:
    def make_reader(words: str) -> ReadPageImage:
        async def read(uri: str) -> PageImage:
            return PageImage(f"{words} {uri}".encode(), "image/webp", ())

        return read

    first = replace(
        make_specimen(), page_image_readers={"readingroom://page/": make_reader("first")}
    )
    second = replace(
        *open_bases(["text"], load_settings({"data": tmp_path}, {})),
        page_image_readers={"readingroom://sheet/": make_reader("second")},
        # Pictures are read by views, so some tool must have one.
        tools=(replace(make_specimen().tools[0], name="drawn", view="results"),),
    )
    whole, *_ = make_faces((first, second))
    async with Client(build_mcp_server(whole, [])) as client:
        for uri, words in (("readingroom://page/1", "first"), ("readingroom://sheet/1", "second")):
            (picture,) = (await client.read_resource(uri)).contents
            assert base64.b64decode(picture.blob).decode() == f"{words} {uri}"
    rival = replace(second, page_image_readers={"readingroom://page/own/": make_reader("rival")})
    with pytest.raises(ValueError, match="as another base has"):
        build_mcp_server(make_faces((first, rival))[0], [])
