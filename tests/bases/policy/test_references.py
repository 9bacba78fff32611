"""References in a question go to the exact section first."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from readingroom.bases.policy.chunks.references import (
    find_asked_references,
    find_section_ref,
    fold_ref,
    index_by_folded_ref,
    list_folded_forms,
)
from readingroom.bases.policy.errors import SectionNotFound
from readingroom.bases.policy.models import GetPolicySection, SearchPolicy
from readingroom.core.modes import Mode
from tests.requirements import requirement
from tests.support.papers import Paper
from tests.support.policy.base import PolicyLibrary, make_policy_pdf, open_library

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines("full")]

FILLER = (
    "A council that prepares a plan looks at what is there, at what is missing and at what people "
    "who live and work in the place have asked for, and says what follows from it. "
)
TOPICS = ["parking", "heritage", "flooding", "homes", "trees", "noise", "shops", "schools"]


def make_plan() -> bytes:
    """A plan with the policies GB1 to GB8 and TR1 to TR8, each with three clauses."""
    made = Paper(footer="#")
    for chapter, letters in enumerate(("GB", "TR"), 1):
        made.write(f"{chapter}. Chapter on {letters}", size=18, bold=True)
        for number, topic in enumerate(TOPICS, 1):
            made.write(f"{FILLER} This is about {topic}.", number=f"{chapter}.{number}")
            made.write(f"Policy {letters}{number}: On {topic}", bold=True)
            for clause in (1, 2, 3):
                made.write(f"{clause}. Clause {clause} of {letters}{number}. {FILLER * 3}")
    return made.done()


def make_plan_of_two_kinds() -> bytes:
    """A plan with core policies, development policies and policies such as 7.3 (b)."""
    made = Paper(footer="#")
    names = [f"{kind} Policy {number}" for kind in ("Core", "Development") for number in (1, 2, 3)]
    for name in (*names, "Policy 7.3 (a)", "Policy 7.3 (b)"):
        made.write(f"{name}: A matter", bold=True)
        made.write(f"The rule of {name}. {FILLER}")
    made.write("Policy QQ1: The look of shops", bold=True)
    made.write(f"What explains it comes first. {FILLER}")
    made.write("Policy", bold=True)
    made.write(f"The rule of QQ1. {FILLER}")
    return made.done()


@pytest.fixture(scope="module")
async def library(
    engine: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PolicyLibrary]:
    paragraphs = [f"{FILLER} It concerns {topic}." for topic in TOPICS * 15]
    framework = make_policy_pdf(
        [(f"Chapter of {topic}", paragraphs[i::8]) for i, topic in enumerate(TOPICS)]
    )
    async with open_library(tmp_path_factory.mktemp("data") / "policy") as library:
        await library.add("NPPF", "National Planning Policy Framework")
        await library.revise("NPPF", "September 2023", "2023-09-05", content=framework)
        await library.revise("NPPF", "December 2024", "2024-12-12", content=framework)
        await library.add("NPPF_DRAFT", "Draft National Planning Policy Framework")
        draft = make_policy_pdf([("Chapter of homes", paragraphs[:12])])
        await library.revise("NPPF_DRAFT", "Draft", "2025-12-16", content=draft)
        await library.add("FENTON_LOCAL_PLAN", "Fenton Local Plan", "local_plan")
        await library.revise("FENTON_LOCAL_PLAN", "2014", "2014-05-08", content=make_plan())
        await library.add("VALE_PLAN", "Vale Plan", "local_plan")
        await library.revise("VALE_PLAN", "2016", "2016-12-14", content=make_plan_of_two_kinds())
        yield library


QUESTIONS = {
    "paragraph 116": ("NPPF", "Para 116"),
    "Para 7": ("NPPF", "Para 7"),
    "what does paragraph 11(b) say?": ("NPPF", "Para 11"),
    "NPPF 11d": ("NPPF", "Para 11"),
    "NPPF 57": ("NPPF", "Para 57"),
    "NPPF para. 100": ("NPPF", "Para 100"),
    "paras 20 and 21 of the Framework": ("NPPF", "Para 20"),
    "chapter 3 of the NPPF": ("NPPF", "Chapter 3"),
    "GB7": ("FENTON_LOCAL_PLAN", "Policy GB7"),
    "gb7": ("FENTON_LOCAL_PLAN", "Policy GB7"),
    "Policy GB 6": ("FENTON_LOCAL_PLAN", "Policy GB6"),
    "TR6(3)": ("FENTON_LOCAL_PLAN", "Policy TR6"),
    "what does policy TR4 say about parking?": ("FENTON_LOCAL_PLAN", "Policy TR4"),
    "Policy TR2 overlooking": ("FENTON_LOCAL_PLAN", "Policy TR2"),
    "policies GB1 and GB2": ("FENTON_LOCAL_PLAN", "Policy GB1"),
    "does TR-8 apply to schools": ("FENTON_LOCAL_PLAN", "Policy TR8"),
    "Fenton 1.4": ("FENTON_LOCAL_PLAN", "Para 1.4"),
    "paragraph 2.5 of the Fenton Local Plan": ("FENTON_LOCAL_PLAN", "Para 2.5"),
}


@pytest.mark.parametrize("mode", ["semantic", "lexical", "hybrid"])
@pytest.mark.parametrize("query", QUESTIONS)
@requirement("policy:references")
async def test_a_reference_in_a_question_comes_first(
    library: PolicyLibrary, query: str, mode: Mode
) -> None:
    answer = await ask(library, query, mode=mode, effective_date="2025-06-01")

    first = answer.results[0]
    source, ref = QUESTIONS[query]
    assert first.source == source
    assert ref in (first.section_ref, *first.citation.split(", "))
    assert first.exact_reference
    assert answer.confidence == "strong"
    scores = [hit.relevance_score for hit in answer.results]
    assert scores == sorted(scores, reverse=True) or mode != "semantic"


async def ask(library: PolicyLibrary, query: str, **asked: Any) -> Any:
    return await library.service.search(SearchPolicy(query=query, **asked))


@requirement("policy:references")
async def test_the_policy_whose_whole_name_is_in_the_question_comes_first(
    library: PolicyLibrary,
) -> None:
    first, second = (await ask(library, "NPPF 11d", effective_date="2026-01-01")).results[:2]

    assert (first.source, second.source) == ("NPPF", "NPPF_DRAFT")
    assert first.section_ref == second.section_ref == "Para 11"


@requirement("policy:references")
async def test_of_a_section_that_begins_with_a_heading_alone_its_text_is_shown(
    library: PolicyLibrary,
) -> None:
    (first, *_) = (await ask(library, "QQ1", sources=["VALE_PLAN"])).results

    assert first.exact_reference and "The rule of QQ1." in first.text


@requirement("policy:references")
async def test_a_clause_leads_to_the_passage_in_which_it_begins(library: PolicyLibrary) -> None:
    (first, *_) = (await ask(library, "TR6(3)", effective_date="2025-06-01")).results

    assert "Clause 3 of TR6" in first.text


@requirement("policy:references")
async def test_without_a_day_the_revision_in_force_comes_before_the_one_it_replaced(
    library: PolicyLibrary,
) -> None:
    first, second, *_ = (await ask(library, "NPPF paragraph 116")).results

    assert (first.version_label, second.version_label) == ("December 2024", "September 2023")
    assert first.exact_reference and second.exact_reference


@pytest.mark.parametrize(
    "query", ["parking near the A38", "class B1 uses", "homes in 2031", "what about trees", "GB99"]
)
@requirement("policy:references")
async def test_what_names_no_section_is_searched_as_before(
    library: PolicyLibrary, query: str
) -> None:
    answer = await ask(library, query, effective_date="2025-06-01")

    assert not any(hit.exact_reference for hit in answer.results)


@requirement("policy:references")
async def test_pages_of_a_search_that_names_a_section_repeat_nothing(
    library: PolicyLibrary,
) -> None:
    ids: list[str] = []
    cursor = None
    for _ in range(4):
        answer = await ask(library, "policy GB7 parking", n_results=3, cursor=cursor)
        ids += [hit.id for hit in answer.results]
        cursor = answer.next_cursor

    assert len(ids) == len(set(ids)) == 12


@pytest.mark.parametrize("ref", ["TR6(3)", "policy tr 6", "TR-6", "Policy TR6 (3)"])
@requirement("policy:references")
async def test_a_section_is_read_by_any_spelling_of_its_reference(
    library: PolicyLibrary, ref: str
) -> None:
    section = await library.service.get_section(
        GetPolicySection(source="FENTON_LOCAL_PLAN", section_ref=ref)
    )

    assert section.section_ref == "Policy TR6"
    assert section.text.startswith("Policy TR6: On noise")
    assert (section.section_title, section.passage_kind) == ("On noise", "policy")


@pytest.mark.parametrize(
    ("query", "refs"),
    [
        ("Policies LP3, LP4 and LP5", ["policy lp3", "policy lp4", "policy lp5"]),
        ("Core Policy 41 or DM3.2", ["core policy 41", "policy dm3.2"]),
        ("table 5-2 and Annex 2", ["table 5-2", "annex 2"]),
        ("the A38, M5 and B4063", []),
    ],
)
@requirement("policy:references")
async def test_references_are_read_as_people_write_them(query: str, refs: list[str]) -> None:
    found = [reference.folded_refs[0] for reference in find_asked_references(query)]

    assert set(map(fold_ref, refs)) <= set(found) if refs else "policy lp3" not in found
    assert fold_ref("Paragraph 116") in list_folded_forms("116")


@pytest.mark.parametrize(
    ("query", "ref"),
    [
        ("H1(a)", "Site H1(a)"),
        ("what is built at H1(a)?", "Site H1(a)"),
        ("H1(12)", "Policy H1(12)"),
        ("H2(b)", "Policy H2"),
        ("Policy 9 Part A", "Policy 9 Part A"),
        ("what does policy 9 part B ask of farms", "Policy 9 Part B"),
        ("Policy 10 part A", "Policy 10"),
        ("Spatial Policy 6", "Spatial Policy 6"),
        ("policy 6", "Spatial Policy 6"),
        ("Policy H&D1", "Policy H&D1"),
        ("what does Strategy 9 say about noise?", "Strategy 9"),
        ("shops under proposal T2", "Proposal T2"),
        ("homes on opportunity site 3", "Opportunity Site 3"),
        ("is policy twelve about floods?", "Policy Twelve"),
        ("policy IV on work", "Policy IV"),
        ("what does policy 5a ask?", "Policy 5a"),
        ("what does policy 10a ask?", "Policy 10"),
        ("access to HG2-36", "Policy HG2-36"),
        ("HG2-36", "Policy HG2-36"),
        ("what does policy HG2-36 ask?", "Policy HG2-36"),
        ("Policies MX1/4 and HG2-36", "Policy HG2-36"),
        ("policies HG2-5 on homes", "Policy HG2"),
        ("what does policy JP-Strat 1 say?", "Policy JP-Strat 1"),
        ("homes under S.SG1", "Policy S.SG1"),
        ("sub area policy BD1", "Sub Area Policy BD1"),
    ],
)
@requirement("policy:references")
async def test_sites_parts_and_kinds_of_policies_are_found_as_they_are_named(
    query: str, ref: str
) -> None:
    refs = index_by_folded_ref(
        [
            *("Site H1(a)", "Policy H1", "Policy H1(12)", "Policy H2", "Part A", "Policy 10"),
            *("Policy 9 Part A", "Policy 9 Part B", "Spatial Policy 6", "Policy H&D1"),
            *("Strategy 9", "Proposal T2", "Opportunity Site 3", "Policy Twelve", "Policy IV"),
            *("Policy 5a", "Policy HG2", "Policy HG2-36", "Policy JP-Strat 1", "Policy S.SG1"),
            "Sub Area Policy BD1",
        ]
    )

    found = [
        refs[next(form for form in reference.folded_refs if form in refs)]
        for reference in find_asked_references(query)
        if any(form in refs for form in reference.folded_refs)
    ]

    assert {*found} == {ref}
    assert find_section_ref(ref, refs) == ref


@pytest.mark.parametrize(
    ("asked", "ref"),
    [
        ("Core Policy 2", "Core Policy 2"),
        ("development policy 2", "Development Policy 2"),
        ("Policy 2", "Core Policy 2"),
        ("Policy 7.3 (b)", "Policy 7.3 (b)"),
        ("7.3(b)", "Policy 7.3 (b)"),
    ],
)
@requirement("policy:references")
async def test_policies_of_two_kinds_with_the_same_number_are_not_one(
    library: PolicyLibrary, asked: str, ref: str
) -> None:
    section = await library.service.get_section(
        GetPolicySection(source="VALE_PLAN", section_ref=asked)
    )
    (first, *_) = (await ask(library, asked, sources=["VALE_PLAN"])).results

    assert section.section_ref == first.section_ref == ref
    assert section.text.count("The rule of") == 1 and f"The rule of {ref}." in section.text
    assert first.exact_reference


@requirement("policy:references")
async def test_a_policy_of_another_kind_is_not_the_one_that_was_asked_for(
    library: PolicyLibrary,
) -> None:
    with pytest.raises(SectionNotFound):
        await library.service.get_section(
            GetPolicySection(source="VALE_PLAN", section_ref="Strategic Policy 2")
        )
