"""How often a question over the plans finds its passage, and a bare reference its section.

`python -m benchmarks.planning.questions --data FOLDER` brings the plans of the shared data into
FOLDER, if they are not there, and asks the tuning half. `--split many` asks the hundreds of
`tests/fixtures/questions/many`. `--split test` asks the other half: do that once, at the end, and
change nothing by what you see.
"""

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import get_args

import anyio

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import NewPolicy, NewRevision
from readingroom.bases.policy.models import ListPolicySections, PolicyHit, SearchPolicy
from readingroom.bases.policy.registry.records import PolicyCategory
from readingroom.bases.policy.service import PolicyService
from readingroom.core.modes import Mode
from readingroom.core.progress import no_progress
from readingroom.engine.embedding.cross_encoder.reranker import Reranker, open_packaged_reranker
from readingroom.engine.embedding.embedder import Embedder
from tests.support.model import MODELS
from tests.support.policy.base import make_service
from tests.support.questions import Question, read_many_questions, read_questions

SHARED = Path(__file__).parents[3] / "shared" / "data"
PLANS = {
    "policy/NPPF_December_2024.md": ("NPPF", "National Planning Policy Framework", "2024-12-12"),
    "policy/NPPF_Draft_December_2025.pdf": (
        "NPPF_DRAFT",
        "Draft National Planning Policy Framework",
        "2025-12-16",
    ),
    "policy/plans/Black_Country_Core_Strategy_2011.pdf": (
        "BLACK_COUNTRY_CS",
        "Black Country Core Strategy",
        "2011-02-03",
    ),
    "policy/plans/Core_Strategy_2007_2021.pdf": (
        "CORE_STRATEGY",
        "Core Strategy 2007-2021",
        "2010-06-29",
    ),
    "policy/plans/Fenland_Local_Plan_2014.pdf": (
        "FENLAND_LOCAL_PLAN",
        "Fenland Local Plan",
        "2014-05-08",
    ),
    "policy/plans/Tewkesbury_Borough_Plan_2022.pdf": (
        "TEWKESBURY_PLAN",
        "Tewkesbury Borough Plan 2011-2031",
        "2022-06-08",
    ),
    "policy/plans/Wharf_Road_SPD_2023.pdf": (
        "WHARF_ROAD_SPD",
        "Wharf Road Supplementary Planning Document",
        "2023-01-01",
    ),
}
_DEPTH = 5
_TODAY = datetime(2026, 1, 15, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question and the place of the first right passage among the results, from 0."""

    question: Question
    rank: int | None
    section_rank: int | None
    """The same, where any passage of the section that holds the quote is right."""
    hits: Sequence[PolicyHit]


async def bring_in(service: PolicyService) -> None:
    """Add the plans that are not there yet."""
    admin = PolicyAdmin(service)
    known_sources = {policy.source for policy in (await service.list_policies()).policies}
    for path, (source, title, first_day) in PLANS.items():
        if source in known_sources:
            continue
        category = (
            PolicyCategory.NATIONAL_POLICY
            if source.startswith("NPPF")
            else PolicyCategory.LOCAL_PLAN
        )
        await admin.create_policy(NewPolicy(source=source, title=title, category=category))
        spool = service.ingestion.files.uploads_folder / Path(path).name
        spool.parent.mkdir(parents=True, exist_ok=True)
        spool.write_bytes((SHARED / path).read_bytes())
        new_revision = NewRevision(
            version_label=first_day[:4], effective_from=date.fromisoformat(first_day)
        )
        answer = await admin.revise_policy(source, new_revision, spool, no_progress, spool.suffix)
        print(f"{source}: {answer.chunks_created} chunks", flush=True)


async def ask(
    service: PolicyService, question: Question, mode: Mode, sources: list[str] | None
) -> AskedQuestion:
    """Ask a question, in one plan or in all of them."""
    answer = await service.search(
        SearchPolicy(query=question.question, sources=sources, mode=mode, n_results=_DEPTH)
    )
    are_right = [_is_right(question, hit.source, hit.text) for hit in answer.results]
    in_right_sections = [
        is_right or _is_right(question, hit.source, await _get_section_text(service, hit))
        for is_right, hit in zip(are_right, answer.results, strict=True)
    ]
    return AskedQuestion(
        question, _find_first(are_right), _find_first(in_right_sections), answer.results
    )


def _find_first(are_right: Sequence[bool]) -> int | None:
    return are_right.index(True) if True in are_right else None


async def _get_section_text(service: PolicyService, hit: PolicyHit) -> str:
    """Return the text of a hit's own section, without the sections inside it."""
    chunks = await service.store.get_chunks(hit.source, hit.revision_id)
    return "\n".join(
        chunk.text for chunk in chunks if hit.section_ref and chunk.section_ref == hit.section_ref
    )


def _is_right(question: Question, source: str, text: str) -> bool:
    return any(
        PLANS[document][0] == source and _normalise(quote) in _normalise(text)
        for document, quote in question.answers
        if document in PLANS
    )


def _normalise(text: str) -> str:
    # Marks of footnotes stand inside quotes too.
    return re.sub(r"\W+", " ", re.sub(r"\[\^\d+\]", "", text.lower())).strip()


async def measure_references(service: PolicyService) -> tuple[int, int]:
    """Return how many bare references lead to their section first, and how many there are."""
    found_count = asked_count = 0
    for source, _, _ in PLANS.values():
        listed = await service.list_section_titles(ListPolicySections(source=source))
        refs = [section.section_ref for section in listed.sections]
        for ref in refs:
            if not re.fullmatch(r"(?:Policy|Para) \S+", ref):
                continue
            query = ref.removeprefix("Policy ").replace("Para", "paragraph")
            answer = await service.search(SearchPolicy(query=query, sources=[source], n_results=1))
            asked_count += 1
            found_count += bool(answer.results) and answer.results[0].section_ref == ref
    return found_count, asked_count


def print_figures(name: str, asked: Sequence[AskedQuestion]) -> None:
    """Print how often the first, the first three and the first five results are right."""
    ranks = [[one.rank for one in asked], [one.section_rank for one in asked]]
    shares = [
        sum(rank is not None and rank < depth for rank in kind) / len(asked)
        for kind in ranks
        for depth in (1, 3, _DEPTH)
    ]
    print(f"{name:<34} {len(asked):>4}   " + "   ".join(f"{share:.3f}" for share in shares))


def print_misses(asked: Iterable[AskedQuestion]) -> None:
    """Print the questions whose passage is not first, with what is."""
    for one in asked:
        if one.rank == 0:
            continue
        question = one.question
        print(f"\n{question.id} [{question.style}] {question.question}")
        print(f"   wanted {PLANS[question.document][0]} {question.section}: {question.quote}")
        for place, hit in enumerate(one.hits):
            mark = "*" if place == one.rank else " "
            print(f"  {mark}{hit.section_ref} {hit.section_title[:40]!r} {hit.text[:90]!r}")


def _choose_questions(split: str, file_name: str = "plans") -> list[Question]:
    """Return a half of the questions over the plans, or the hundreds for tuning.

    Questions about a document that is not brought in, such as an inspector's report, are left out.
    """
    if split == "many":
        many_questions = read_many_questions("plans")
        return [question for question in many_questions if question.document in PLANS]
    questions = read_questions(file_name)
    return [one for one in questions if one.split == split and one.document in PLANS]


async def run(
    data: Path,
    file_name: str,
    split: str,
    show_misses: bool,
    with_references: bool,
    modes: Sequence[Mode],
    reranker: Reranker | None,
) -> None:
    """Measure one half of the questions over the plans in `data`."""
    embedder = Embedder(MODELS)
    embedder.reranker = reranker
    service = make_service(data, get_now=lambda: _TODAY, embedder=embedder)
    async with service.run_service():
        await bring_in(service)
        questions = _choose_questions(split, file_name)
        depths = f"first, first 3, first {_DEPTH}"
        print(f"{split} half: questions; passage {depths}; section {depths}")
        for mode in modes:
            in_plan = [await ask(service, one, mode, [PLANS[one.document][0]]) for one in questions]
            print_figures(f"{mode}, the plan named", in_plan)
            if mode == "hybrid":
                for style in ("shared_word", "no_rare_word"):
                    if chosen := [one for one in in_plan if one.question.style == style]:
                        print_figures(f"  {style}", chosen)
                in_all = [await ask(service, one, mode, None) for one in questions]
                print_figures("hybrid, all plans", in_all)
                if show_misses and split == "tuning":
                    print_misses(in_plan)
        if with_references:
            found_count, asked_count = await measure_references(service)
            print(f"bare references first: {found_count} of {asked_count}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--file", default="plans", help="in tests/fixtures/questions [plans]")
    parser.add_argument("--split", choices=("tuning", "test", "many"), default="tuning")
    parser.add_argument("--misses", action="store_true", help="of the tuning half only")
    parser.add_argument("--references", action="store_true")
    parser.add_argument("--mode", action="append", choices=get_args(Mode), help="all by default")
    parser.add_argument("--no-second-look", action="store_true")
    arguments = parser.parse_args()
    anyio.run(
        *(run, arguments.data, arguments.file, arguments.split),
        *(arguments.misses, arguments.references),
        arguments.mode or ("hybrid", "semantic", "lexical"),
        None if arguments.no_second_look else open_packaged_reranker(MODELS),
    )
