"""A sixth base is a package and a line in the list of bases; nothing else names it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

import readingroom
from tests.requirements import requirement
from tests.support.kit import HANG_SECONDS, clean_environment, connect_http

TOY = {
    "__init__.py": '''
"""The toy base: notes in one file."""

from readingroom.bases.toy.settings import ToySettings
from readingroom.protocol.spec import BaseSpec, LazyImport

SPEC = BaseSpec(
    name="toy",
    port=3999,
    open=LazyImport("readingroom.bases.toy.tools:open_base"),
    settings_class=ToySettings,
    id_prefix="toy",
    routes=LazyImport("readingroom.bases.toy.routes:make_routers"),
    pages=LazyImport("readingroom.bases.toy.pages:make_pages"),
    adapter=LazyImport("readingroom.bases.toy.adapter:ToyAdapter"),
    cli=LazyImport("readingroom.bases.toy.cli:toy"),
    backup=LazyImport("readingroom.bases.toy.backup:BACKUP"),
    doctor=LazyImport("readingroom.bases.toy.doctor:check"),
)
''',
    "settings.py": '''
"""Settings of the toy base."""

from readingroom.core.settings import RoomSettings, declare_setting


class ToySettings(RoomSettings):
    toy_greeting: str = declare_setting("Hello", "TOY_GREETING", "How the toy base greets.")
''',
    "errors.py": '''
"""Errors of the toy base."""

from readingroom.core.errors import KnowledgeError


class NothingNoted(KnowledgeError):
    """There is no note yet."""

    code = "nothing_noted"
    http_status = 404
''',
    "service.py": '''
"""Notes in one file."""

from pathlib import Path

from readingroom.bases.toy.errors import NothingNoted


def notes_file(data: Path) -> Path:
    return data / "toy" / "notes.txt"


class ToyService:
    def __init__(self, path: Path, greeting: str) -> None:
        self.path = path
        self.greeting = greeting

    def notes(self) -> list[str]:
        if not self.path.exists():
            raise NothingNoted("There is no note yet: readingroom toy add TEXT")
        return self.path.read_text("utf-8").splitlines()

    def add(self, note: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(note + "\\n")
''',
    "tools.py": '''
"""The toy base's tool."""

from readingroom.bases.toy.service import ToyService, notes_file
from readingroom.bases.toy.settings import ToySettings
from readingroom.protocol.errors import StatusDialect
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import Answer, ToolArguments, ToolContext, make_tool


class ListNotes(ToolArguments):
    """No arguments."""


class Notes(Answer):
    greeting: str
    notes: list[str]


def open_base(settings: ToySettings) -> KnowledgeBase:
    service = ToyService(notes_file(settings.data), settings.toy_greeting)

    async def list_notes(question: ListNotes, call: ToolContext) -> Notes:
        """List every note of the toy base."""
        return Notes(greeting=service.greeting, notes=service.notes())

    return KnowledgeBase(
        name="toy",
        server_name="toy-mcp",
        title="Toy",
        instructions="Notes.",
        error_dialect=StatusDialect(),
        tools=(make_tool(list_notes, title="List notes"),),
        service=service,
    )
''',
    "routes.py": '''
"""The toy base's REST route."""

from fastapi import APIRouter

from readingroom.bases.toy.service import ToyService


def make_routers(service: ToyService, read_only: bool) -> tuple[APIRouter, ...]:
    router = APIRouter(prefix="/toy/v1")

    @router.get("/notes")
    async def list_notes() -> list[str]:
        return service.notes()

    return (router,)
''',
    "pages.py": '''
"""The toy base's page."""

from html import escape

from readingroom.bases.toy.service import ToyService
from readingroom.protocol.pages import BasePage, BasePages, PageRequest, RenderedPage
from readingroom.storage.jobs.store import JobStore


def make_pages(service: ToyService, jobs: JobStore) -> BasePages:
    async def show_notes(request: PageRequest) -> RenderedPage:
        notes = service.notes()
        body = "".join(f"<p>{escape(note)}</p>" for note in notes)
        return RenderedPage("Notes", body, data=notes)

    return BasePages([BasePage("/toy/notes", show_notes, menu_label="Notes")])
''',
    "adapter.py": '''
"""The toy base in searches over all bases."""

from typing import ClassVar

from readingroom.bases.toy.service import ToyService
from readingroom.protocol.search import (
    Citation,
    DeskHit,
    DeskRecord,
    PageLinks,
    SearchAdapter,
    SearchRequest,
    make_desk_record,
)
from readingroom.protocol.tool import ToolContext


class ToyAdapter(SearchAdapter):
    base_name: ClassVar[str] = "toy"
    id_forms = ("toy: (toy:1)",)

    def __init__(self, service: ToyService, links: PageLinks) -> None:
        self._service = service
        self._links = links

    async def search(self, request: SearchRequest, call: ToolContext) -> list[DeskHit]:
        words = set(request.query.lower().split())
        return [
            DeskHit(
                id=f"toy:{number}",
                title=f"Note {number}",
                url=self._links.make_record_url(f"toy:{number}"),
                source="toy",
                snippet=note,
                score=1.0,
                published_at=None,
                citation=Citation(citation_string=f"Note {number}", url="toy"),
                base=self.base_name,
            )
            for number, note in enumerate(self._service.notes(), 1)
            if words & set(note.lower().split())
        ]

    async def fetch(self, id: str, offset: int, call: ToolContext) -> DeskRecord:
        number = int(id.removeprefix("toy:"))
        return make_desk_record(
            self.base_name,
            id,
            title=f"Note {number}",
            text=self._service.notes()[number - 1],
            url=self._links.make_record_url(id),
            citation=f"Note {number}",
            source="toy",
            details={},
            offset=offset,
        )
''',
    "cli.py": '''
"""`readingroom toy`: add a note."""

import click

from readingroom.bases.toy.service import ToyService, notes_file
from readingroom.bases.toy.settings import ToySettings
from readingroom.console.options import add_common_options, print_result


@click.group()
def toy() -> None:
    """Notes."""


@toy.command()
@click.argument("text")
@add_common_options
def add(text: str, settings: ToySettings, as_json: bool) -> None:
    """Add the note TEXT."""
    ToyService(notes_file(settings.data), settings.toy_greeting).add(text)
    print_result(as_json, {"added": text}, f"{settings.toy_greeting}: noted.")
''',
    "backup.py": '''
"""The toy base in a backup."""

import shutil
from contextlib import nullcontext

from readingroom.bases.toy.service import notes_file
from readingroom.protocol.backup import BaseBackup


class ToyBackup(BaseBackup):
    def has_data(self, settings):
        return notes_file(settings.data).exists()

    def write_backup(self, settings, folder, run, report):
        copy = notes_file(folder)
        copy.parent.mkdir(parents=True)
        shutil.copyfile(notes_file(settings.data), copy)
        return {"notes": len(copy.read_text("utf-8").splitlines())}

    def can_read_backup(self, counts):
        return True

    def is_backup_file(self, file_name):
        return file_name == "toy/notes.txt"

    def lock_base(self, data):
        return nullcontext()

    def restore_backup(self, staged, home, replace, run):
        return None


BACKUP = ToyBackup()
''',
    "doctor.py": '''
"""Checks the notes of the toy base."""

from readingroom.bases.toy.service import notes_file
from readingroom.protocol.doctor import Complaint


def check(settings, repair, run):
    path = notes_file(settings.data)
    if path.exists() and "\\t" in path.read_text("utf-8"):
        yield Complaint(subject="toy", problem="a note has a tab in it", fix="remove it")
''',
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree with the toy base in it: its package, and one line in the list."""
    folder = tmp_path_factory.mktemp("source")
    package = folder / "readingroom"
    shutil.copytree(Path(readingroom.__file__).parent, package)
    for name, text in TOY.items():
        (package / "bases" / "toy").mkdir(exist_ok=True)
        (package / "bases" / "toy" / name).write_text(text.lstrip(), "utf-8")
    bases = package / "bases" / "__init__.py"
    source = bases.read_text("utf-8")
    added = source.replace("policy, text\n", "policy, text, toy\n")
    added = added.replace("policy.SPEC, text.SPEC", "policy.SPEC, text.SPEC, toy.SPEC")
    assert added != source
    bases.write_text(added, "utf-8")
    return folder


def run(tree: Path, *arguments: str, data: Path, **variables: str) -> str:
    """What `readingroom ARGUMENTS` prints in that tree."""
    result = subprocess.run(
        [sys.executable, "-m", "readingroom", *arguments, "--data", str(data)],
        env=make_environment(tree, **variables),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def make_environment(tree: Path, **variables: str) -> dict[str, str]:
    return clean_environment({"PYTHONPATH": str(tree), **variables})


@contextmanager
def serve_tree(tree: Path, data: Path, *arguments: str) -> Iterator[str]:
    """The address of `readingroom serve` in that tree."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "readingroom", "serve", *arguments),
            *("--port", "0", "--json", "--data", str(data)),
        ],
        env=make_environment(tree),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["listening"]
    finally:
        process.terminate()
        process.wait(HANG_SECONDS)
        process.stdout.close()


@requirement("room:sixth-base")
def test_a_sixth_base_is_a_package_and_a_line(tree: Path, tmp_path: Path) -> None:
    data, restored = tmp_path / "data", tmp_path / "restored"
    assert "toy" in run(tree, "serve", "--help", data=data)
    greeting = run(tree, "toy", "add", "cycle parking", data=data, TOY_GREETING="Good day")
    assert greeting == "Good day: noted.\n"

    with serve_tree(tree, data) as url:
        found, fetched, notes = anyio.run(_use, url)
        page = httpx2.get(f"{url}/toy/notes", timeout=HANG_SECONDS, trust_env=False)
        rest = httpx2.get(f"{url}/toy/v1/notes", timeout=HANG_SECONDS, trust_env=False)
    assert "toy:1" in [hit["id"] for hit in found["results"]]
    assert (fetched["text"], notes["notes"]) == ("cycle parking", ["cycle parking"])
    assert page.status_code == 200 and "<p>cycle parking</p>" in page.text
    assert rest.json() == ["cycle parking"]

    assert "toy" in json.loads(run(tree, "doctor", "--json", data=data))["checked"]
    run(tree, "backup", str(tmp_path / "all.backup"), data=data)
    run(tree, "restore", str(tmp_path / "all.backup"), data=restored)
    assert (restored / "toy" / "notes.txt").read_text("utf-8") == "cycle parking\n"


async def _use(url: str) -> tuple[Any, Any, Any]:
    """Search and fetch over all bases, and the toy base's own tool with its own error."""
    async with connect_http(f"{url}/mcp") as client:
        found = await client.call_tool("search", {"query": "cycle parking"})
        fetched = await client.call_tool("fetch", {"id": "toy:1"})
    async with connect_http(f"{url}/toy/mcp") as client:
        notes = await client.call_tool("list_notes", {})
    return found.structured_content, fetched.structured_content, notes.structured_content


@requirement("room:sixth-base")
def test_its_error_is_rendered_like_any_other(tree: Path, tmp_path: Path) -> None:
    with serve_tree(tree, tmp_path / "data", "toy") as url:
        answer = httpx2.get(f"{url}/toy/v1/notes", timeout=HANG_SECONDS, trust_env=False)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "nothing_noted")


@requirement("room:sixth-base")
def test_nothing_outside_of_the_bases_names_one() -> None:
    package = Path(readingroom.__file__).parent
    names = ("policy", "documents", "guidance", "federal", "text")
    for layer in ("server", "federation", "commands", "console", "protocol", "storage", "core"):
        for path in (package / layer).rglob("*.py"):
            for name in names:
                assert f"readingroom.bases.{name}" not in path.read_text("utf-8"), os.fspath(path)
