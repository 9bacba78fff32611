"""A test-only base with a tool for every way a call can go, in any dialect, with a folder lock."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import anyio
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from readingroom.bases.text.errors import TextUnreadable
from readingroom.core.progress import ReportProgress
from readingroom.core.settings import RoomSettings
from readingroom.protocol.command import Command
from readingroom.protocol.errors import ErrorDialect, StatusDialect
from readingroom.protocol.spec import BaseSpec, KnowledgeBase, LazyImport
from readingroom.protocol.tool import Answer, Tool, ToolArguments, ToolContext, ToolHints, make_tool

SECRET = "the reason that must stay in the log"


class Echo(ToolArguments):
    text: str = Field(max_length=1000, description="What to say.")
    times: int = Field(1, ge=1, le=5, description="How often.")


class Nothing(ToolArguments):
    """Takes no arguments."""


class Said(Answer):
    status: Literal["success"] = "success"
    said: list[str]


class Quiet(Answer):
    status: Literal["quiet"] = "quiet"


class Notes:
    """The base's service: a list of notes in one file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notes.json"
        self.is_open = False

    @asynccontextmanager
    async def open_for_reading(self) -> AsyncIterator[None]:
        self.is_open = True
        yield
        self.is_open = False

    def all(self) -> list[str]:
        return json.loads(self.path.read_text("utf-8")) if self.path.exists() else []

    def add(self, note: str) -> int:
        notes = [*self.all(), note]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(notes), "utf-8")
        return len(notes)


class Added(BaseModel):
    count: int


class AddNote(Command):
    """Adds a note, slowly enough to be watched; `fail` and `crash` go wrong in their ways."""

    name: ClassVar[str] = "specimen.add"
    base: ClassVar[str] = "specimen"
    note: str

    async def run(self, service: Notes, report: ReportProgress) -> Added:
        await report(1, 2, "thinking")
        if self.note == "fail":
            raise TextUnreadable("refused as asked", use_tool="echo")
        if self.note == "crash":
            raise RuntimeError(SECRET)
        await report(2, 2, "writing")
        return Added(count=service.add(self.note))


def make_specimen(dialect: ErrorDialect | None = None, folder: Path | None = None) -> KnowledgeBase:
    notes = Notes(folder or Path("unused"))
    return KnowledgeBase(
        name="specimen",
        server_name="specimen-mcp",
        title="Specimen",
        instructions="For tests.",
        error_dialect=dialect or StatusDialect(),
        tools=_tools(notes),
        service=notes,
        keeps_sessions=True,
        serves_sse=True,
        get_routers=lambda: (_router(notes),),
        lifespan=notes.open_for_reading,
    )


def open_specimen(settings: RoomSettings) -> KnowledgeBase:
    return make_specimen(folder=settings.data / "specimen")


SPEC = BaseSpec(
    name="specimen",
    port=3999,
    open=LazyImport("tests.support.specimen:open_specimen"),
    locks_folder=True,
    commands=LazyImport("tests.support.specimen:COMMANDS"),
)
COMMANDS = (AddNote,)


def _router(notes: Notes) -> APIRouter:
    router = APIRouter(prefix="/specimen/v1")

    @router.get("/notes")
    async def list_notes(limit: Annotated[int, Query(ge=1, le=10)] = 10) -> list[str]:
        return notes.all()[:limit]

    @router.get("/fail")
    async def fail() -> None:
        raise TextUnreadable("not today", use_tool="echo")

    @router.get("/crash")
    async def crash() -> None:
        raise RuntimeError(SECRET)

    return router


def _tools(notes: Notes) -> tuple[Tool, ...]:
    async def echo(question: Echo, call: ToolContext) -> Said | Quiet:
        """Say a text one to five times."""
        return Said(said=[question.text] * question.times) if question.text else Quiet()

    async def fail(question: Nothing, call: ToolContext) -> Said:
        """Fail with an error that has a hint."""
        raise TextUnreadable("not today", use_tool="echo")

    async def crash(question: Nothing, call: ToolContext) -> Said:
        """Fail in a way nobody foresaw."""
        raise RuntimeError(SECRET)

    async def count_slowly(question: Nothing, call: ToolContext) -> Said:
        """Count to three, reporting each step."""
        for step in (1, 2, 3):
            await call.report_progress(step, 3, f"step {step}")
            await anyio.sleep(0.01)
        return Said(said=["done"])

    async def wait_for_ever(question: Nothing, call: ToolContext) -> Said:
        """Report that it has begun, and never answer."""
        await call.report_progress(0, None, None)
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async def write_note(question: Echo, call: ToolContext) -> Said:
        """Write a note."""
        notes.add(question.text)
        return Said(said=notes.all())

    async def who_am_i(question: Nothing, call: ToolContext) -> Said:
        """Tell the caller and the request id."""
        return Said(said=[call.caller_id, call.request_id])

    writes = ToolHints(read_only=False, idempotent=False)
    return (
        make_tool(echo, title="Echo", make_description=lambda: f"Live: {len(notes.all())} notes."),
        make_tool(fail, title="Fail"),
        make_tool(crash, title="Crash"),
        make_tool(count_slowly, title="Count"),
        make_tool(wait_for_ever, title="Wait"),
        make_tool(write_note, title="Write", hints=writes),
        make_tool(who_am_i, title="Who am I"),
    )
