"""What marks a policy off from the text around it: rules, grounds, tables, headers, watermarks."""

import pytest
from reportlab.lib.colors import Color

from readingroom.ingest.document import Document
from readingroom.ingest.read.formats.order import put_in_reading_order
from tests.ingest.test_plans import (
    PROSE,
    REASON,
    draw_box,
    get_text,
    list_policies,
    make_line,
    read_plan,
)
from tests.requirements import requirement
from tests.support.papers import HEIGHT, LEFT, RIGHT, Paper

TITLES = ("Homes", "Shops", "Inns", "Work", "Design", "Heritage", "Floods", "Trees")


def draw_rule(made: Paper, height: float, left: float = LEFT) -> None:
    made.canvas.line(left, height, RIGHT, height)


def draw_table(made: Paper, top: float, rows: list[list[str]]) -> float:
    """Draw a table with rules all round; return where it ends."""
    width, bottom = (RIGHT - LEFT) / len(rows[0]), top - 18 * len(rows)
    for index in range(len(rows[0]) + 1):
        made.canvas.line(LEFT + index * width, bottom, LEFT + index * width, top)
    for index in range(len(rows) + 1):
        made.canvas.line(LEFT, top - 18 * index, RIGHT, top - 18 * index)
    for row_index, row in enumerate(rows):
        made.canvas.setFont("Helvetica-Bold" if row_index == 0 else "Helvetica", 10)
        for cell_index, cell in enumerate(row):
            left = LEFT + 5 + cell_index * width
            made.canvas.drawString(left, top - 13 - 18 * row_index, cell)
    return bottom


def list_words(document: Document, ref: str) -> list[str]:
    return get_text(document, ref).split()


@pytest.mark.parametrize("opening", ["above", "below", "none"])
@requirement("ingest:sections:tails")
def test_a_rule_below_a_policy_ends_it(opening: str) -> None:
    made = Paper(footer="#")
    for number in range(1, 7):
        top = 740.0 if number % 2 else 420.0
        made.move_to(top)
        made.write(f"Policy H{number}: Homes", bold=True, size=13)
        if opening != "none":
            draw_rule(made, top - 6 if opening == "above" else top - 30)
        made.move_to(top - 35)
        made.write(f"Rule {number}. {PROSE * 2}")
        draw_rule(made, top - 125)
        made.move_to(top - 130)
        made.write(REASON * 2)
        if number in (2, 4):
            made.turn()

    document = read_plan(made.done())

    for number in range(1, 7):
        expected_words = f"Policy H{number}: Homes Rule {number}. {PROSE * 2}".split()
        assert list_words(document, f"Policy H{number}") == expected_words


@requirement("ingest:sections:tails")
def test_rules_drawn_at_a_page_end_do_not_end_the_policy_that_goes_on() -> None:
    made = Paper(footer="#")
    for number in range(1, 5):
        draw_rule(made, 260)
        made.move_to(255)
        made.write(f"Policy H{number}: Homes", bold=True, size=13)
        made.write(f"Rule {number}. {PROSE * 2}")
        draw_rule(made, 145)
        made.turn()
        draw_rule(made, 770)
        made.move_to(762)
        made.write(f"Furthermore, {PROSE}")
        draw_rule(made, 705)
        made.move_to(700)
        made.write(REASON * 6)

    document = read_plan(made.done())

    for number in range(1, 5):
        expected = f"Policy H{number}: Homes Rule {number}. {PROSE * 2} Furthermore, {PROSE}"
        assert list_words(document, f"Policy H{number}") == expected.split()


@requirement("ingest:sections:tails")
def test_rules_above_the_headings_inside_policies_do_not_cut_them() -> None:
    made = Paper(footer="#")
    for number in range(1, 7):
        top = 740.0 if number % 2 else 420.0
        made.move_to(top)
        made.write(f"Policy H{number}: Homes", bold=True, size=13)
        made.write(f"Rule {number}. {PROSE}")
        made.move_to(top - 90)
        draw_rule(made, top - 92)
        made.write("Villages", bold=True)
        made.write(PROSE)
        if number in (2, 4):
            made.turn()

    document = read_plan(made.done())

    for number in range(1, 7):
        expected = f"Policy H{number}: Homes Rule {number}. {PROSE} Villages {PROSE}"
        assert list_words(document, f"Policy H{number}") == expected.split()


@pytest.mark.parametrize("is_same_ground", [True, False])
@requirement("ingest:sections:boxes")
def test_a_box_goes_on_overleaf_only_on_the_same_ground(is_same_ground: bool) -> None:
    made = Paper(footer="#")
    made.write(REASON * 8)
    draw_box(made, bottom=75, top=260)
    made.move_to(256)
    made.write("Policy H1: Homes", bold=True, size=13)
    made.write(PROSE * 2)
    made.turn()
    if is_same_ground:
        draw_box(made, bottom=700, top=780)
    else:
        made.canvas.rect(60, 700, 480, 80)
    made.move_to(770)
    made.write("The parish will ask the county for a slower road by the school.")
    made.move_to(690)
    made.write(REASON * 3)

    policy = get_text(read_plan(made.done()), "Policy H1")

    assert policy.endswith("the school." if is_same_ground else "nearest town.")


@requirement("ingest:sections:boxes")
def test_a_ground_that_blends_two_colours_is_the_box_of_a_policy() -> None:
    made = Paper(footer="#")
    for number in range(1, 4):
        made.move_to(760)
        made.write(REASON * 2)
        made.canvas.saveState()
        ground = made.canvas.beginPath()
        ground.rect(60, 480, 480, 140)
        made.canvas.clipPath(ground, stroke=0, fill=0)
        made.canvas.linearGradient(60, 480, 540, 480, (Color(0.8, 0.9, 1), Color(1, 1, 1)))
        made.canvas.restoreState()
        made.move_to(616)
        made.write(f"Policy H{number}: Homes", bold=True, size=13)
        made.write(f"Rule {number}. {PROSE * 2}")
        made.move_to(470)
        made.write(REASON * 3)
        made.turn()

    document = read_plan(made.done())

    for number in range(1, 4):
        expected = f"Policy H{number}: Homes Rule {number}. {PROSE * 2}"
        assert list_words(document, f"Policy H{number}") == expected.split()


@requirement("ingest:sections:tails")
def test_a_table_at_the_margin_belongs_to_the_policy_that_announces_it() -> None:
    made = Paper(footer="#")
    made.write("1. Homes", size=18, bold=True)
    for number in range(1, 9):
        made.write(REASON, number=f"1.{number}")
    made.turn()
    made.write("Policy H1: Homes", bold=True, size=13, left=LEFT + 20)
    made.write(PROSE, left=LEFT + 20)
    made.write("Homes will be built as follows:", left=LEFT + 20)
    bottom = draw_table(made, 640, [["Place", "Homes"], ["Ambridge", "120"], ["Total", "120"]])
    made.move_to(bottom - 10)
    made.write(REASON * 3)

    words = list_words(read_plan(made.done()), "Policy H1")

    expected = f"Policy H1: Homes {PROSE} Homes will be built as follows: Place Homes Ambridge 120"
    assert words == [*expected.split(), "Total", "120"]


@requirement("ingest:sections:tails")
def test_a_table_of_indicators_below_a_policy_is_no_part_of_it() -> None:
    made = Paper(footer="#")
    made.write("Policy H1: Homes", bold=True, size=13)
    made.write(PROSE)
    made.write("Policy H2: Homes", bold=True, size=13)
    made.write(PROSE)
    head = ["Place", "Housing target"]
    bottom = draw_table(made, 600, [head, ["Ambridge", "120"]])
    bottom = draw_table(made, bottom - 20, [["Indicator", "Target", "Who"], ["Homes", "9", "Us"]])
    made.move_to(bottom - 10)
    made.write(f"Reasoned Justification. {REASON * 3}")

    words = list_words(read_plan(made.done()), "Policy H2")

    assert words == f"Policy H2: Homes {PROSE} Place Housing target Ambridge 120".split()


@requirement("ingest:sections:boxes")
def test_facts_in_a_table_stand_above_the_text_of_a_policy() -> None:
    made = Paper(footer="#")
    made.write("1. Sites", size=18, bold=True)
    for number in range(1, 10):
        made.write(REASON, number=f"1.{number}")
        if number % 3 == 0:
            made.turn()
            made.write(f"Policy SA{number}: Elm Farm", bold=True, size=13)
            made.move_to(draw_table(made, 715, [["Area", "2 ha"], ["Use", "Homes"]]))
            made.write(PROSE * 2)

    document = read_plan(made.done())

    for number in (3, 6, 9):
        expected = f"Policy SA{number}: Elm Farm Area 2 ha Use Homes {PROSE * 2}"
        assert list_words(document, f"Policy SA{number}") == expected.split()


@requirement("ingest:sections:boxes")
def test_one_sentence_in_a_box_is_a_policy() -> None:
    made = Paper(footer="#")
    for number in range(1, 4):
        top = 900.0 - 200 * number
        made.move_to(top + 80)
        made.write(REASON * 2)
        draw_box(made, bottom=top - 50, top=top)
        made.move_to(top - 4)
        made.write(f"Policy H{number}: Inns", bold=True, size=13)
        made.write("Inns will be kept.")

    document = read_plan(made.done())

    assert list_policies(document) == ["Policy H1", "Policy H2", "Policy H3"]
    assert list_words(document, "Policy H2") == [
        "Policy",
        "H2:",
        "Inns",
        "Inns",
        "will",
        "be",
        "kept.",
    ]


@requirement("ingest:sections:boxes")
def test_a_bar_at_the_foot_of_a_page_heads_the_box_overleaf() -> None:
    made = Paper(footer="#")
    made.write(REASON * 10)
    made.canvas.rect(LEFT, 80, 200, 24)
    made.move_to(101)
    made.write("Policy H1: Homes", bold=True, before=0)
    made.turn()
    draw_box(made, bottom=640, top=770)
    made.move_to(765)
    made.write(PROSE * 3)
    made.move_to(630)
    made.write(REASON * 3)

    assert (
        list_words(read_plan(made.done()), "Policy H1") == f"Policy H1: Homes {PROSE * 3}".split()
    )


@requirement("ingest:sections:occurrences")
def test_the_box_is_the_policy_and_not_the_section_of_its_name() -> None:
    made = Paper(footer="#")
    for number in range(1, 4):
        made.write(f"Policy H{number}: Homes of kind {number}", bold=True, size=16)
        made.write(REASON * 5)
        draw_box(made, bottom=400, top=500)
        made.move_to(496)
        made.write(f"POLICY H{number}", bold=True, size=13)
        made.write(f"Rule {number}. {PROSE}")
        made.turn()

    document = read_plan(made.done())

    for number in range(1, 4):
        expected_words = f"POLICY H{number} Rule {number}. {PROSE}".split()
        assert list_words(document, f"Policy H{number}") == expected_words


@requirement("ingest:sections:occurrences")
def test_a_policy_without_a_box_goes_on_below_its_name_and_continued() -> None:
    made = Paper(footer="#")
    made.write(REASON * 3)
    made.write("Policy H1: Homes", bold=True, size=13)
    made.write(f"First. {PROSE}")
    made.turn()
    made.write("Policy H1 (continued)", bold=True, size=13)
    made.write(f"Second. {PROSE * 4}")
    made.write("Reasoned Justification", bold=True)
    made.write(REASON * 3)

    policy = get_text(read_plan(made.done()), "Policy H1")

    assert policy.startswith("Policy H1: Homes\n\nFirst.")
    assert "Second." in policy
    assert policy.endswith("town.")


@pytest.mark.parametrize(
    "heading",
    [
        "Question 12: Do you agree with Policy H1?",
        "Alternative options considered",
        "Policy links: Policies H2 and H3",
        "Conforms with: NPPF paragraphs 60 and 61",
        "Conformity reference: Core Strategy Policy 4",
        "Reasons and evidence",
        "Context and reasoned justification",
        "Interpretation",
        "Supporting evidence",
        "Further guidance",
        "Policy intent",
        "Purpose",
        "Application of the policy",
        "What does this policy do?",
        "National and local policy context",
        "Related policies and guidance",
        "Reasoned justification (not part of the policy)",
        "Community objectives met",
    ],
)
@requirement("ingest:sections:tails")
def test_what_is_said_about_a_policy_is_no_part_of_it(heading: str) -> None:
    made = Paper(footer="#")
    made.write("Policy H1: Homes", bold=True, size=13)
    made.write(PROSE * 2)
    made.write(heading, bold=True)
    made.write(REASON * 3)

    assert (
        list_words(read_plan(made.done()), "Policy H1") == f"Policy H1: Homes {PROSE * 2}".split()
    )


@requirement("ingest:sections:tails")
def test_the_purpose_that_a_policy_begins_with_does_not_end_it() -> None:
    made = Paper(footer="#")
    made.write("Policy H1: Homes", bold=True, size=13)
    made.write("Purpose", bold=True)
    made.write(PROSE * 2)

    words = list_words(read_plan(made.done()), "Policy H1")

    assert words == f"Policy H1: Homes Purpose {PROSE * 2}".split()


def write_policies(made: Paper, *, header: str) -> dict[str, str]:
    """Write policies of a page and a bit; `header` tells each page's, `{}` being the heading."""
    texts: dict[str, str] = {}
    # With names that differ in more than their number, which alone would tell a header.
    for number, title in enumerate(TITLES, 1):
        heading = f"Policy H{number}: {title}"
        made.write(heading, bold=True, size=13)
        made.write(f"Rule {number}. {PROSE * 14}")
        made.canvas.setFont("Helvetica", 11)
        made.canvas.drawString(LEFT, HEIGHT - 50, header.format(heading))
        made.turn()
        made.canvas.setFont("Helvetica", 11)
        made.canvas.drawString(LEFT, HEIGHT - 50, header.format(heading))
        made.write(f"Furthermore, {PROSE}")
        made.write("Reasoned Justification", bold=True)
        made.write(REASON * 8)
        made.turn()
        texts[f"Policy H{number}"] = f"{heading} Rule {number}. {PROSE * 14} Furthermore, {PROSE}"
    return texts


@pytest.mark.parametrize("header", ["{}", "Borchester Plan | {}"])
@requirement("ingest:text:furniture")
def test_a_header_in_letters_of_the_text_that_names_the_policy_is_left_out(header: str) -> None:
    made = Paper(footer="#")
    texts = write_policies(made, header=header)

    document = read_plan(made.done())

    for ref, text in texts.items():
        assert list_words(document, ref) == text.split()


@requirement("ingest:text:furniture")
def test_headings_that_begin_every_page_are_no_headers() -> None:
    made = Paper(footer="#")
    made.write("Policies of the plan", bold=True, size=13)
    for number, title in enumerate(TITLES, 1):
        made.write(f"Policy H{number}: {title}")
    for number, title in enumerate(TITLES, 1):
        made.turn()
        made.move_to(HEIGHT - 40)
        made.write(f"Policy H{number}: {title}", bold=True, before=0)
        made.move_to(HEIGHT - 80)
        made.write(f"Rule {number}. {PROSE * 3}")

    document = read_plan(made.done())

    assert list_policies(document) == [f"Policy H{number}" for number in range(1, 9)]
    assert list_words(document, "Policy H5")[-1] == "town."


@requirement("ingest:text:furniture")
def test_a_word_across_the_pages_of_a_draft_is_no_part_of_its_text() -> None:
    made = Paper(footer="#")
    expected: dict[str, list[str]] = {}
    for number in range(1, 5):
        made.canvas.saveState()
        made.canvas.translate(200, 400)
        made.canvas.rotate(40)
        made.canvas.setFont("Helvetica", 90)
        made.canvas.drawString(0, 0, "DRAFT")
        made.canvas.restoreState()
        made.write(f"Policy H{number}: Homes", bold=True, size=13)
        made.write(f"Rule {number}. {PROSE * 10}")
        expected[f"Policy H{number}"] = (
            f"Policy H{number}: Homes Rule {number}. {PROSE * 10}".split()
        )
        made.turn()
    made.write("Reasoned Justification", bold=True)
    made.write(REASON * 2)

    document = read_plan(made.done())

    assert "DRAFT" not in document.text
    for ref, words in expected.items():
        assert list_words(document, ref) == words


@requirement("ingest:text:order")
def test_bullets_that_are_all_written_last_stand_before_their_items() -> None:
    opening = make_line("Homes will be permitted in the towns of the district where:", 63, 700)
    items = [make_line(f"it is an item of the list, {n}", 79, 680 - 19 * n) for n in range(5)]
    closing = make_line("In villages a survey of the need for homes is required.", 63, 560)
    bullets = [make_line("•", 72, 680 - 19 * n) for n in range(5)]

    ordered = put_in_reading_order([opening, *items, closing, *bullets], 842)

    pairs = [line for pair in zip(bullets, items, strict=True) for line in pair]
    assert ordered == [opening, *pairs, closing]


@pytest.mark.parametrize(
    ("heading", "ref"),
    [
        ("Policy GNLP0337R: Homes", "Policy GNLP0337R"),
        ("Policy TH1-2 Homes", "Policy TH1-2"),
        ("Policy 4/12 Homes", "Policy 4/12"),
        ("Policy S/JH: Jobs and Homes", "Policy S/JH"),
        ("Policy LPRSP4(A): Homes", "Policy LPRSP4(A)"),
        ("Policy EMP 1(ii) Homes", "Policy EMP 1(ii)"),
        ("Policy H1* Homes", "Policy H1"),
        ("Policy H1: homes in the towns", "Policy H1"),
        ("D-AGT1 Homes for all", "Policy D-AGT1"),
    ],
)
@requirement("ingest:sections:codes")
def test_codes_of_adopted_plans_are_known(heading: str, ref: str) -> None:
    made = Paper(footer="#")
    made.write(f"{REASON} It is put into effect by {ref} of this plan.")
    made.write(heading, bold=True)
    made.write(PROSE)
    made.write("Reasoned Justification")
    made.write(REASON * 2)

    document = read_plan(made.done())

    assert list_policies(document) == [ref]
    assert list_words(document, ref) == f"{heading} {PROSE}".split()
