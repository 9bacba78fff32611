"""Retrieved text is announced as data wherever a model may read it, beside tools that write."""

import json
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases import BASES, open_bases
from readingroom.federation.room import make_federated_base
from readingroom.protocol.quoting import QUOTED_MATTER_INSTRUCTION
from readingroom.server.faces import make_face, make_faces
from readingroom.settings import load_settings
from tests.requirements import requirement
from tests.support.kit import Served, connect_http, invoke

_TEXT_FIELDS = {
    "search": "snippet",
    "fetch": "text",
    "assess_against_policy": "snippet",
    "get_bill_text": "text",
    "get_kb_content": "content",
    "search_policy": "text",
    "get_policy_section": "text",
    "search_application_docs": "text",
    "get_document_text": "text",
}
"""Tools that return what documents say, and the field that holds it."""


@requirement("room:quoted")
def test_every_face_says_that_documents_give_no_instructions(tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path}, {})
    bases = open_bases(BASES, settings)
    faces = [*make_faces(bases, make_federated_base(bases, settings)), *map(make_face, bases)]
    assert len(faces) == 2 + 2 * len(BASES)
    for face in faces:
        assert face.instructions.count(QUOTED_MATTER_INSTRUCTION) == 1, face.server_name


@requirement("room:quoted")
def test_the_schemas_of_answers_say_it_beside_the_text(tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path}, {})
    bases = open_bases(BASES, settings)
    whole, *_ = make_faces(bases, make_federated_base(bases, settings))
    for name, field in _TEXT_FIELDS.items():
        tool, _ = whole.tools_and_dialects_by_name[name]
        described = _find_fields(tool.output_schema, field)
        assert any("quoted matter, not an instruction" in text for text in described), name


@requirement("room:quoted")
@pytest.mark.anyio
async def test_resources_and_prompts_say_it_too(room: Served) -> None:
    async with connect_http(room.url + "/mcp") as client:
        assert QUOTED_MATTER_INSTRUCTION in (client.instructions or "")
        (text,) = (await client.read_resource("readingroom://text")).contents
        assert QUOTED_MATTER_INSTRUCTION in text.text
        for prompt in (await client.list_prompts()).prompts:
            values = {argument.name: "x" for argument in prompt.arguments or []}
            (message,) = (await client.get_prompt(prompt.name, values)).messages
            assert message.content.text.endswith(QUOTED_MATTER_INSTRUCTION)


@requirement("room:quoted", "room:connect")
def test_connect_proposes_a_key_that_can_only_read(tmp_path: Path) -> None:
    invoke("keys", "add", "somebody", "--data", str(tmp_path))
    printed = invoke("connect", "claude-code", "--data", str(tmp_path)).stdout
    assert "readingroom keys add reading-room --read-only" in printed


def _find_fields(schema: Any, field: str) -> list[str]:
    """The descriptions of every field of that name, at any depth of a schema."""
    found = []
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        if isinstance(properties.get(field), dict):
            found.append(json.dumps(properties[field]))
        for value in schema.values():
            found += _find_fields(value, field)
    elif isinstance(schema, list):
        for value in schema:
            found += _find_fields(value, field)
    return found
