"""Sections of plans as councils publish them: a reference leads to its policy, whole and alone."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.read.formats.order import put_in_reading_order
from readingroom.ingest.read.page import BROKEN_WORD_MARK, Line
from readingroom.ingest.read.reader import read_file
from readingroom.ingest.structure.policy_headings import is_continued_heading
from tests.requirements import requirement
from tests.support.papers import Paper
from tests.support.plan_maker import STYLES, MadePlan, PlanStyle, judge_policies, make_plan
from tests.support.plans import (
    COUNCIL_PLANS,
    NotedSection,
    fold,
    judge_council_policy,
    judge_section,
    read_council_notes,
    read_notes,
)

PRINTED_PLANS = Path(__file__).parents[1] / "fixtures" / "plans"
OPTIONS = ReadOptions(find_sections=True, enable_ocr=False)
PROSE = (
    "Development will be permitted where it keeps the character of the place, does no harm to its "
    "neighbours and can be reached on foot, by bicycle and by bus from the nearest town. "
)
REASON = (
    "The council has looked at the evidence and finds that homes are needed in the villages too, "
    "though fewer of them than in the towns, where the shops and the schools and the buses are. "
)


def read_plan(content: bytes) -> Document:
    document = read_file(content, "plan.pdf", OPTIONS, lambda *_: None)
    assert isinstance(document, Document)
    return document


def get_text(document: Document, ref: str) -> str:
    spans = [section for section in document.sections if ref in section.path]
    return "\n\n".join(
        document.text[section.start_offset : section.end_offset].strip() for section in spans
    )


def list_policies(document: Document) -> list[str]:
    refs = (section.ref for section in document.sections)
    return [
        *dict.fromkeys(
            ref for ref in refs if "policy" in ref.casefold() and "Supporting" not in ref
        )
    ]


@pytest.fixture(scope="module")
def plans(shared_data: Path) -> dict[str, Document]:
    folder = shared_data / "policy" / "plans"
    return {path.stem: read_plan(path.read_bytes()) for path in folder.glob("*.pdf")}


@pytest.mark.data
@requirement("ingest:sections:plans")
def test_the_sections_that_a_reader_noted_are_whole_and_exact(plans: dict[str, Document]) -> None:
    verdicts: defaultdict[str, list[NotedSection]] = defaultdict(list)
    for noted in read_notes():
        verdicts[judge_section(plans[noted.plan], noted)].append(noted)

    counts = Counter({verdict: len(sections) for verdict, sections in verdicts.items()})
    assert not verdicts["wrong"], "another text under a right reference"
    assert counts["exact"] >= 0.95 * counts.total(), verdicts["stray"] + verdicts["missing"]


@pytest.mark.data
@requirement("ingest:sections:plans")
def test_plans_have_the_policies_that_they_have_and_other_documents_none(
    plans: dict[str, Document],
) -> None:
    counts = {name: len(list_policies(document)) for name, document in plans.items()}

    assert counts == {
        "Tewkesbury_Borough_Plan_2022": 95,
        "Fenland_Local_Plan_2014": 19,
        "Core_Strategy_2007_2021": 25,
        "Black_Country_Core_Strategy_2011": 49,
        "Inspectors_Report_Broxbourne": 0,
        "Wharf_Road_SPD_2023": 0,
    }


@requirement("ingest:sections:occurrences")
def test_the_policy_wins_over_contents_monitoring_tables_and_an_appendix() -> None:
    made = Paper(footer="#")
    made.write("Contents", size=18, bold=True)
    for number in range(1, 8):
        made.write(f"Policy H{number} Homes {number + 1}", before=0, bold=True)
    made.turn()
    made.write("1. Homes", size=18, bold=True)
    for number in range(1, 8):
        for paragraph in (2 * number - 1, 2 * number):
            made.write(REASON, number=f"1.{paragraph}")
        made.write(f"Policy H{number}: Homes", bold=True)
        made.write(f"Rule {number}. {PROSE}")
    made.write("2. Monitoring", size=18, bold=True)
    for number in range(1, 8):
        made.write(f"Policy H{number}: Homes", bold=True)
        made.write("Indicator: the number of homes that were built. " * 12)
    made.write("Appendix A: Policies of this plan", size=18, bold=True)
    for number in range(1, 8):
        made.write(f"Policy H{number}: Homes", bold=True)
        made.write(f"Rule {number}. {PROSE * 2}")

    document = read_plan(made.done())

    for number in range(1, 8):
        policy = get_text(document, f"Policy H{number}")
        assert " ".join(policy.split()) == f"Policy H{number}: Homes Rule {number}. {PROSE}".strip()
    appendix = [section for section in document.sections if section.ref == "Appendix A"]
    assert {section.kind for section in appendix} == {"appendix"}


@requirement("ingest:sections:boxes")
def test_a_box_is_the_policy_from_its_first_line_to_its_last_on_the_next_page() -> None:
    made = Paper(footer="#")
    made.write(REASON * 10)
    draw_box(made, bottom=80, top=400)
    made.move_to(390)
    made.write("Policy H1: Homes", bold=True)
    made.write("Part A – Towns", bold=True)
    made.write(PROSE * 4)
    made.turn()
    draw_box(made, bottom=500, top=760)
    made.move_to(755)
    made.write("Part B – Villages", bold=True)
    made.write(PROSE * 3)
    made.write("The end of the policy.")
    made.move_to(490)
    made.write("Evidence of need")
    made.write(REASON * 3)

    document = read_plan(made.done())

    policy = get_text(document, "Policy H1")
    assert policy.startswith("Policy H1: Homes")
    assert "Part A" in policy and "Part B" in policy
    assert policy.endswith("The end of the policy.")
    assert list_policies(document) == ["Policy H1"]


@requirement("ingest:sections:boxes")
def test_a_policy_whose_paragraphs_are_shaded_one_by_one_is_whole() -> None:
    made = Paper(footer="#")
    made.write(REASON * 3)
    top = 560.0
    for text in ("Policy H1: Homes", PROSE, PROSE, "a) it is small; and", "b) it is needed."):
        height = 22 if len(text) < 60 else 60
        draw_box(made, bottom=top - height, top=top)
        made.move_to(top - 2)
        made.write(text, bold=text.startswith("Policy"), before=0.2)
        top -= height + 8
    made.move_to(top - 10)
    made.write(f"Homes are needed here. {REASON * 2}")

    document = read_plan(made.done())

    assert get_text(document, "Policy H1").endswith("b) it is needed.")


def draw_box(made: Paper, bottom: float, top: float) -> None:
    made.canvas.setFillColorRGB(0.9, 0.85, 0.95)
    made.canvas.rect(60, bottom, 480, top - bottom, stroke=0, fill=1)
    made.canvas.setFillColorRGB(0, 0, 0)


@requirement("ingest:sections:tails")
def test_a_heading_between_two_paragraphs_belongs_to_neither_and_is_found_with_the_second() -> None:
    made = Paper(footer="#")
    for number in range(1, 10):
        made.write(REASON, number=f"3.{number}")
        if number == 4:
            made.write("Homes for older people")

    document = read_plan(made.done())

    assert get_text(document, "Para 3.4").endswith("buses are.")
    assert get_text(document, "Para 3.5").startswith("3.5")
    (chunk,) = [chunk for chunk in document.chunks if chunk.section_ref == "Para 3.5"]
    assert document.get_chunk_text(chunk).startswith("Homes for older people")
    assert document.text[chunk.own_start_offset : chunk.end_offset].startswith("3.5")


@pytest.mark.parametrize("gap", [0.0, 0.8])
@requirement("ingest:sections:plain")
def test_paragraphs_of_a_plainly_typeset_framework_are_found(gap: float) -> None:
    made = Paper()
    number = 0
    for chapter in range(1, 8):
        made.write(f"{chapter}. Chapter about homes", before=gap, size=10)
        for _ in range(8):
            number += 1
            made.write(f"{number}. {REASON}", before=gap, size=10)
            made.write("a) for the first thing;", before=0, size=10)
            made.write("b) for the second.", before=0, size=10)
    made.write("Annex 1: Implementation", before=gap, size=10)
    made.write(f"{number + 1}. {REASON}", before=gap, size=10)

    document = read_plan(made.done())

    texts = {
        section.ref: document.text[section.start_offset : section.end_offset]
        for section in document.sections
    }
    for expected in range(1, number + 2):
        assert texts[f"Para {expected}"].startswith(f"{expected}. The council"), expected


SAMPLED_STYLES = STYLES[::6]


def check_made_plan(style: PlanStyle, seed: int) -> None:
    plan = make_plan(style, seed)
    document = read_plan(plan.content)

    verdicts = judge_policies(document, plan)
    assert [*verdicts.values()] == ["exact"] * len(verdicts), verdicts
    expected = {*map(fold, plan.policies)}
    kinds = {section.kind for section in document.sections if fold(section.ref) in expected}
    assert kinds == {"policy"}
    assert {fold(ref) for ref in list_policies(document)} <= expected


@pytest.mark.parametrize("style", SAMPLED_STYLES, ids=lambda style: style.name)
@requirement("ingest:sections:styles")
def test_a_plan_has_its_policies_however_it_is_set(style: PlanStyle) -> None:
    check_made_plan(style, seed=1)


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@requirement("ingest:sections:styles")
def test_plans_of_every_typesetting_have_their_policies(style: PlanStyle, seed: int) -> None:
    check_made_plan(style, seed)


@pytest.mark.parametrize("name", [path.stem for path in sorted(PRINTED_PLANS.glob("*.pdf"))])
@requirement("ingest:sections:plans")
def test_plans_of_other_typesetters_give_their_policies_whole(name: str) -> None:
    """Boxes that go on as `Policy H1 continued`, codes in margins and cells, reasons beside."""
    truth = json.loads((PRINTED_PLANS / "truth.json").read_text("utf-8"))[name]

    document = read_plan((PRINTED_PLANS / f"{name}.pdf").read_bytes())

    verdicts = judge_policies(document, MadePlan(b"", truth))
    assert set(verdicts.values()) == {"exact"}, verdicts
    listed = {fold(section.ref) for section in document.sections if section.kind == "policy"}
    assert {*map(fold, truth)} <= listed
    assert {*map(fold, list_policies(document))} <= {*map(fold, truth)}


UNMARKED_COUNCIL_PLANS = (
    *("harrowmere_sites", "aldermouth_plan_2021", "severnmoor_joint_strategy"),
    *("estershire_minerals_and_waste_plan", "east_merrow_local_plan_2031"),
    "ellerdene_and_moorside_joint_local_plan",
    *("thornhythe_local_plan_2041", "ottersdale_site_allocations_and_development_management"),
    *("city_of_aldminster_city_plan_2040", "lower_hartwell_neighbourhood_plan_2038"),
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in UNMARKED_COUNCIL_PLANS else pytest.mark.full)
        for name in sorted(COUNCIL_PLANS)
    ],
)
@requirement("ingest:sections:plans")
def test_plans_that_look_like_councils_give_their_policies_whole(name: str) -> None:
    """Badges, boxes printed on with their heading, notes below them, maps, text in columns."""
    noted_policies = [*read_council_notes(name)]

    document = read_plan(COUNCIL_PLANS[name].read_bytes())

    verdicts = {noted.reference: judge_council_policy(document, noted) for noted in noted_policies}
    assert set(verdicts.values()) == {"exact"}, verdicts
    policy_paths = [section.path for section in document.sections if section.kind == "policy"]
    refs = {path[-1] for path in policy_paths}
    # A table inside a policy is a section of its own.
    inner_refs = {path[-1] for path in policy_paths if refs & {*path[:-1]}}
    assert len(refs - inner_refs) == len(noted_policies), refs - inner_refs


def make_line(text: str, left: float, bottom: float) -> Line:
    return Line(text, left, bottom, 12.0, False, bottom)


@requirement("ingest:text:order")
def test_lines_that_are_written_layer_by_layer_are_read_from_top_to_bottom() -> None:
    heading = make_line("Policy H1: Homes in the towns and villages", 70, 700)
    opening = make_line("Homes will be permitted in the towns of the district where:", 70, 680)
    closing = make_line("In villages a survey of the need for homes is required.", 70, 600)
    clauses = [
        make_line("they are small and near to the shops and the school of", 100, 660),
        make_line("the place; and", 100, 645),
        make_line("a)", 75, 660),
        make_line("they are needed by people of the parish for their own use.", 100, 625),
        make_line("b)", 75, 625),
    ]

    ordered = put_in_reading_order([heading, opening, closing, *clauses], 842)

    assert [line.text.split()[0] for line in ordered] == [
        *("Policy", "Homes", "a)", "they", "the", "b)", "they", "In")
    ]


@requirement("ingest:text:order")
def test_columns_cells_and_footers_keep_their_order() -> None:
    footer = make_line("12", 290, 30)
    left = [make_line(f"Left column, a line of text, {n}", 50, 700 - 20 * n) for n in range(10)]
    right = [make_line(f"Right column, a line of text, {n}", 310, 700 - 20 * n) for n in range(10)]
    row = [
        make_line("STRAT-1", 50, 300),
        make_line("Title below", 50, 285),
        make_line("Its text", 200, 300),
    ]
    lines = [footer, *left, *right, *row]

    assert put_in_reading_order(lines, 842) == lines


@requirement("ingest:text:order")
def test_a_row_that_ends_in_a_broken_word_is_as_wide_as_its_column() -> None:
    left = [make_line(f"Left column, a line of text {n}", 50, 700 - 20 * n) for n in range(10)]
    right = [make_line(f"Right column, a line of text {n}", 310, 700 - 20 * n) for n in range(10)]
    # PDFium gives a row that ends in a broken word together with the next one.
    left[4].text += f" that ends in a bro{BROKEN_WORD_MARK}ken word and goes on below it for long"
    lines = [*left, *right]

    assert put_in_reading_order(lines, 842) == lines


@requirement("ingest:text:order")
def test_words_on_a_map_do_not_divide_the_paragraph_above_them() -> None:
    paragraph = [
        make_line(
            "No more than 300 homes shall be occupied until the defences have been raised", 70, n
        )
        for n in (700, 685)
    ]
    paragraph.append(make_line("and are complete.", 70, 670))
    caption = make_line(
        "Map 1: the place of the homes, the defences and the park along the river", 70, 400
    )
    label = make_line("River", 330, 500)

    ordered = put_in_reading_order([*paragraph, caption, label], 842)

    assert ordered == [*paragraph, label, caption]


@requirement("ingest:sections:codes")
def test_a_code_below_the_word_policy_is_the_heading_of_the_title_beside_it() -> None:
    made = Paper(footer="#")
    made.write("4. Homes", size=18, bold=True)
    for number in range(1, 4):
        made.move_to(880 - 200 * number)
        made.write(REASON * 2)
        top = 780 - 200 * number
        for text, left, rise, size in (
            (f"Homes of kind {number}", 160, 0, 13),
            ("POLICY", 72, 7, 7),
            (f"HO{number}", 74, -9, 16),
        ):
            made.canvas.setFont("Helvetica-Bold", size)
            made.canvas.drawString(left, top + rise, text)
        made.move_to(top - 30)
        made.write(f"Rule {number}. {PROSE}")

    document = read_plan(made.done())

    assert list_policies(document) == ["Policy HO1", "Policy HO2", "Policy HO3"]
    titles = {section.ref: section.title for section in document.sections}
    assert titles["Policy HO2"] == "Homes of kind 2"
    assert "Rule 2." in get_text(document, "Policy HO2")


@requirement("ingest:text:order")
def test_a_code_that_is_written_first_stands_in_the_row_of_its_title() -> None:
    code = make_line("Policy H3", 470, 480)
    text = [
        make_line(
            "A line of text about homes that fills the whole width of its page, or nearly", 60, n
        )
        for n in (700, 680, 660, 640)
    ]
    title = make_line("Affordable homes", 70, 480)
    rule = make_line(
        "Homes will be permitted where people who live here already need them.", 70, 455
    )

    ordered = put_in_reading_order([code, *text, title, rule], 842)

    assert ordered == [*text, title, code, rule]


@requirement("ingest:sections:codes")
def test_a_title_with_the_code_at_the_right_of_its_bar_heads_the_policy() -> None:
    made = Paper(footer="#")
    made.write("4. Homes", size=18, bold=True)
    for number, title in enumerate(("Affordable homes", "Mix", "Sites", "Gardens"), 1):
        top = 850.0 - 180 * number
        made.move_to(top + 65)
        made.write(REASON)
        draw_box(made, bottom=top - 80, top=top)
        made.move_to(top - 4)
        made.write(f"{title} Policy H{number}", bold=True)
        made.write(f"Rule {number}. {PROSE}")

    document = read_plan(made.done())

    assert list_policies(document) == [f"Policy H{number}" for number in range(1, 5)]
    assert get_text(document, "Policy H3").startswith("Sites Policy H3\n\nRule 3.")
    assert get_text(document, "Policy H3").endswith("town.")


@requirement("ingest:sections:tails")
def test_why_a_policy_is_needed_is_no_part_of_it() -> None:
    made = Paper(footer="#")
    made.write("Policy H1: Homes", bold=True)
    made.write(f"{PROSE} The end of the policy.")
    made.write("Why we need this policy")
    made.write(REASON * 2)

    policy = get_text(read_plan(made.done()), "Policy H1")

    assert " ".join(policy.split()).endswith("The end of the policy.")


@requirement("ingest:sections:occurrences")
def test_a_policy_that_only_a_chapter_on_monitoring_names_is_not_its_indicators() -> None:
    made = Paper(footer="#")
    made.write("1. Homes", size=18, bold=True)
    for number in range(1, 5):
        made.write(REASON)
        made.write(f"Policy H{number}: Homes", bold=True)
        made.write(f"Rule {number}. {PROSE}")
    made.write("2. Monitoring", size=18, bold=True)
    for number in range(1, 6):
        made.write(f"Policy H{number}: Homes", bold=True)
        made.write("Indicator: homes that were permitted. Target: none contrary to the policy.")

    document = read_plan(made.done())

    assert list_policies(document) == [f"Policy H{number}" for number in range(1, 5)]


@pytest.mark.parametrize(
    ("line", "is_continued"),
    [
        ("Policy H1 continued", True),
        ("POLICY H1: HOMES (CONT'D)", True),
        ("Policy H1 (cont.)", True),
        ("Policy H10 continued", False),
        ("Policy H2 continued", False),
        ("Policy H1", False),
        ("continued", False),
    ],
)
@requirement("ingest:sections:boxes")
def test_a_line_says_that_a_policy_goes_on(line: str, is_continued: bool) -> None:
    assert is_continued_heading(line, "Policy H1: Homes") is (is_continued)
