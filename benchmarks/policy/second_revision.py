"""A second revision that shares nine paragraphs in ten with the first: what it costs to ingest."""

import os
import random
import statistics
import tempfile
from datetime import date
from pathlib import Path

import anyio

from benchmarks.table import Table
from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import NewPolicy, NewRevision
from readingroom.bases.policy.registry.records import PolicyCategory
from readingroom.core.progress import no_progress
from tests.support.policy.base import make_policy_pdf, make_service

_VOCABULARY = (
    "development homes access cycle parking green belt heritage flood risk transport assessment "
    "harm benefit design character landscape supply delivery viability housing need retail centre "
    "biodiversity noise daylight storey ridge height setting listed building conservation area"
)


def measure(paragraphs: int, rounds: int) -> Table:
    """Return processor seconds of the first and of the second revision, and their ratio."""
    seconds = [anyio.run(_ingest_two, paragraphs, seed) for seed in range(rounds)]
    ratios = [second / first for first, second in seconds]
    return Table(
        "Policy: a second revision that shares nine paragraphs in ten",
        ("rounds", "first, CPU s", "second, CPU s", "second / first", "wanted"),
        (
            (
                str(rounds),
                f"{statistics.median(first for first, _ in seconds):.2f}",
                f"{statistics.median(second for _, second in seconds):.2f}",
                f"{statistics.median(ratios):.3f} ({min(ratios):.3f}–{max(ratios):.3f})",
                "0.2",
            ),
        ),
        f"A PDF of {paragraphs} numbered paragraphs of about 700 characters, ingested whole: read "
        "in the sandbox, cut, embedded, stored. Processor time of the process and of its children, "
        "with the model loaded beforehand.",
    )


async def _ingest_two(paragraphs: int, seed: int) -> tuple[float, float]:
    randomness = random.Random(seed)
    first = [_make_paragraph(randomness) for _ in range(paragraphs)]
    second = [
        _make_paragraph(randomness) if number % 10 == 5 else text
        for number, text in enumerate(first)
    ]
    with tempfile.TemporaryDirectory() as folder:
        service = make_service(Path(folder))
        async with service.run_service():
            admin = PolicyAdmin(service)
            await admin.create_policy(
                NewPolicy(source="PLAN", title="Plan", category=PolicyCategory.LOCAL_PLAN)
            )
            await service.warm_up()
            costs = []
            for day, texts in ((date(2020, 1, 1), first), (date(2024, 1, 1), second)):
                spool = service.ingestion.files.uploads_folder / f"{day}.pdf"
                spool.parent.mkdir(parents=True, exist_ok=True)
                spool.write_bytes(make_policy_pdf([("Policies", texts)]))
                revision = NewRevision(version_label=str(day), effective_from=day)
                before = _measure_processor_seconds()
                await admin.revise_policy("PLAN", revision, spool, no_progress, ".pdf")
                costs.append(_measure_processor_seconds() - before)
    return costs[0], costs[1]


def _make_paragraph(randomness: random.Random) -> str:
    words = _VOCABULARY.split()
    return " ".join(randomness.choice(words) for _ in range(95)).capitalize() + "."


def _measure_processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
