"""Policies for tests: PDFs in the shape of the real ones, and a base on a folder of its own."""

import contextlib
import io
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import anyio
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import simpleSplit
from reportlab.pdfgen.canvas import Canvas

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import NewPolicy, NewRevision
from readingroom.bases.policy.registry.records import PolicyCategory, RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.progress import no_progress
from readingroom.ingest.context import IngestContext
from readingroom.ingest.document import Chunk, Classification, Document, Page
from readingroom.ingest.errors import NoContent
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.private_copy import AllowedFolders, PrivateCopy
from readingroom.ingest.read.sandbox import Sandbox
from tests.support import engines
from tests.support.model import EMBEDDER, WordEmbedder

TODAY = datetime(2025, 6, 1, 12, tzinfo=UTC)


def make_policy_pdf(
    chapters: Sequence[tuple[str, Sequence[str]]], first: int = 1, headed: bool = True
) -> bytes:
    """A policy of chapters, each with a title and paragraphs numbered through the document."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    top, left, right = A4[1] - 80, 72.0, A4[0] - 72
    at = top
    number = first

    def line(text: str, font: str, size: float, indent: float) -> None:
        nonlocal at
        if at < 90:
            canvas.showPage()
            at = top
        canvas.setFont(font, size)
        canvas.drawString(indent, at, text)
        at -= 1.25 * size

    for index, (title, paragraphs) in enumerate(chapters, 1):
        at -= 12
        line(f"Chapter {index}: {title}" if headed else "", "Helvetica-Bold", 18, left)
        for text in paragraphs:
            at -= 6
            parts = simpleSplit(text, "Helvetica", 11, right - left - 36)
            for row, part in enumerate(parts):
                if row == 0:
                    if at < 90:
                        canvas.showPage()
                        at = top
                    canvas.setFont("Helvetica", 11)
                    canvas.drawString(left, at, f"{number}.")
                line(part, "Helvetica", 11, left + 36)
            number += 1
    canvas.save()
    return file.getvalue()


class PlainPipeline:
    """Reads what `plain` writes: every paragraph is a section and a chunk. No process, no PDF."""

    async def read_document(
        self, private_copy: PrivateCopy, report: Any, *, find_sections: bool
    ) -> Document:
        text = private_copy.read_first_bytes(1 << 20).decode().partition("\n")[2]
        if not text:
            raise NoContent("No text was found")
        chunks, at = [], 0
        for index, paragraph in enumerate(text.split("\n\n")):
            path = ("Chapter 1", f"Para {index + 1}")
            chunks.append(Chunk(index, at, at + len(paragraph), (1,), path[1], path))
            at += len(paragraph) + 2
        await report(1, 1, "page 1 of 1")
        page = Page(1, "1", 0, len(text), text, "text_layer", 0.0, None, None)
        kind = Classification("policy", "fallback", "low")
        return Document(text, (page,), (), tuple(chunks), "text_layer", 0.0, False, kind)


PLAIN: dict[str, Any] = {"pipeline": PlainPipeline(), "embedder": WordEmbedder()}
"""For tests of consistency, which make hundreds of changes: without the edges that take long."""


BROKEN = b"%PDF-plain"
"""What `PlainPipeline` cannot read."""


def plain(*paragraphs: str) -> bytes:
    return b"%PDF-plain\n" + "\n\n".join(paragraphs).encode()


@dataclass
class PolicyLibrary:
    """An open policy base and the ways a test fills it."""

    service: PolicyService
    folder: Path
    admin: PolicyAdmin = field(init=False)

    def __post_init__(self) -> None:
        self.admin = PolicyAdmin(self.service)

    async def add(
        self, source: str, title: str | None = None, category: str = "national_policy"
    ) -> None:
        await self.admin.create_policy(
            NewPolicy(
                source=source, title=title or f"The {source}", category=PolicyCategory(category)
            )
        )

    async def revise(
        self, source: str, label: str, start: str, end: str | None = None, content: bytes = b""
    ) -> str:
        """A revision, ingested; its id."""
        answer = await self.admin.revise_policy(
            source,
            make_revision(label, start, end),
            self.spool(content or make_brief_pdf(label)),
            no_progress,
        )
        return answer.revision_id

    async def register(
        self, source: str, label: str, start: str, end: str | None = None, content: bytes = b""
    ) -> str:
        """A revision that stays in `processing`; its id."""
        new = make_revision(label, start, end)
        made, _ = await self.service.ingestion.create_revision(
            source,
            self.spool(content or make_brief_pdf(label)),
            new.version_label,
            new.effective_from,
            new.effective_to,
            None,
        )
        return made.revision_id

    async def settled(self) -> None:
        """Return when nothing that was begun before the start is in the works any more."""
        while await self._in_the_works():  # noqa: ASYNC110 - it tells nobody when it ends
            await anyio.sleep(0.005)

    async def _in_the_works(self) -> bool:
        catalogue = await self.service.registry.read_catalogue()
        return any(
            one.status == RevisionStatus.PROCESSING
            or self.service.ingestion.find_progress(one.revision_id)
            for revisions in catalogue.timelines_by_slug.values()
            for one in revisions
        )

    def spool(self, content: bytes) -> Path:
        uploads = self.service.ingestion.files.uploads_folder
        uploads.mkdir(parents=True, exist_ok=True)
        path = uploads / f"{len(list(uploads.iterdir()))}-{id(content)}.pdf"
        path.write_bytes(content)
        return path

    def inbox(self, name: str, content: bytes) -> str:
        path = self.folder / "inbox" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)


def make_revision(label: str, start: str, end: str | None = None) -> NewRevision:
    return NewRevision(
        version_label=label,
        effective_from=date.fromisoformat(start),
        effective_to=date.fromisoformat(end) if end else None,
    )


def make_brief_pdf(label: str) -> bytes:
    """A small policy whose text names its revision."""
    return make_policy_pdf(
        [
            ("Sustainable transport", [f"Cycle parking follows the {label} standard.", *FILLER]),
            ("Housing", [f"Homes are built to the {label} rules.", *FILLER]),
        ]
    )


FILLER = (
    "Planning decisions should take account of the needs of people who walk and cycle, and of "
    "the safety of junctions and crossings along the way.",
    "Development should only be refused on highways grounds if there would be an unacceptable "
    "impact on highway safety, following mitigation.",
)


def make_service(
    folder: Path,
    redis_url: str | None = None,
    get_now: Callable[[], datetime] = lambda: TODAY,
    on_step: Callable[[str], None] = lambda name: None,
    embedder: Any = EMBEDDER,
    pipeline: Any = None,
) -> PolicyService:
    roots = AllowedFolders("POLICY_ROOTS", (folder / "inbox",), 256 * 2**20)
    database = engines.find_database(folder) if redis_url is None else None
    context = IngestContext(
        pipeline or Pipeline(Sandbox()), embedder, roots, get_now, on_step, database
    )
    return PolicyService(folder, redis_url, context)


@contextlib.asynccontextmanager
async def open_library(folder: Path, **options: Any) -> AsyncIterator[PolicyLibrary]:
    """A policy base on this folder, open."""
    service = make_service(folder, **options)
    async with service.run_service():
        yield PolicyLibrary(service, folder)


def texts(hits: Iterable[Any]) -> str:
    return "\n".join(hit.text for hit in hits)


SEEDS: tuple[tuple[str, str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "LTN_1_20",
        "Cycle Infrastructure Design (LTN 1/20)",
        "national_guidance",
        (("July 2020", "2020-07-27"),),
    ),
    (
        "NPPF",
        "National Planning Policy Framework",
        "national_policy",
        (("September 2023", "2023-09-05"), ("December 2024", "2024-12-12")),
    ),
    (
        "MANUAL_FOR_STREETS",
        "Manual for Streets",
        "national_guidance",
        (("March 2007", "2007-03-29"),),
    ),
    (
        "CHERWELL_LOCAL_PLAN",
        "Cherwell Local Plan 2011-2031",
        "local_plan",
        (("July 2015", "2015-07-20"),),
    ),
    (
        "OCC_LTCP",
        "Oxfordshire Local Transport and Connectivity Plan",
        "county_strategy",
        (("July 2022", "2022-07-12"),),
    ),
    (
        "BICESTER_LCWIP",
        "Bicester Local Cycling and Walking Infrastructure Plan",
        "local_guidance",
        (("March 2020", "2020-03-01"),),
    ),
)
"""The contract's seed policies: slug, title, category, and the label and first day of each."""

_SUBJECTS = ("cycle tracks", "junctions", "parking", "crossings", "buses", "homes", "trees")
_RULES = (
    "should be designed for everybody who uses them",
    "must keep to the widths given in the table",
    "are assessed with the authority before an application is made",
)


def seed_pdf(source: str, label: str, paragraphs: int) -> bytes:
    """A text in the shape of a seed policy: chapters of numbered paragraphs, none of it real."""
    said = [
        f"In {source} of {label} rule {number} holds: {_SUBJECTS[number % 7]} "
        f"{_RULES[number % 3]}, {FILLER[number % 2]}"
        for number in range(paragraphs)
    ]
    chapters = [(f"Part {at // 20 + 1}", said[at : at + 20]) for at in range(0, paragraphs, 20)]
    return make_policy_pdf(chapters)
