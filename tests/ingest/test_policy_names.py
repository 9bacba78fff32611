"""What plans call their policies beside "Policy H1": strategies, proposals, words, mere codes."""

import pytest

from readingroom.ingest.document import Document
from tests.ingest.test_plans import PROSE, REASON, draw_box, read_plan
from tests.ingest.test_policy_marks import draw_table, list_words
from tests.requirements import requirement
from tests.support.papers import LEFT, Paper

TITLES = ("Homes", "Shops", "Inns", "Work", "Design")


def list_policy_refs(document: Document) -> list[str]:
    return [section.ref for section in document.sections if section.kind == "policy"]


def write_contents(made: Paper, headings: list[str]) -> None:
    made.write("Borchester Local Plan", size=20, bold=True)
    made.write("Every policy of this plan counts. The policies have numbers. A policy is law.")
    made.write("Contents", size=18, bold=True)
    for number, heading in enumerate(headings, 2):
        made.write(f"{heading} {number}", before=0.2)
    made.turn()


def make_plan_of(headings: list[str], *, in_contents: bool = True) -> Document:
    """Read a plan with a policy below each heading, and reasons after it."""
    made = Paper(footer="#")
    write_contents(made, headings if in_contents else [])
    made.write("1. The places of the plan", size=18, bold=True)
    for number, heading in enumerate(headings, 1):
        made.write(heading, bold=True, size=13)
        made.write(f"Rule {number}. {PROSE}")
        made.write("Reasoned Justification", bold=True)
        made.write(REASON * 2)
    return read_plan(made.done())


@pytest.mark.parametrize("in_contents", [True, False])
@pytest.mark.parametrize(
    ("heading", "refs"),
    [
        ("Strategy {number} – {title}", ["Strategy 1", "Strategy 2", "Strategy 3"]),
        ("STRATEGY {number}: {title}", ["Strategy 1", "Strategy 2", "Strategy 3"]),
        ("Proposal T{number}: {title}", ["Proposal T1", "Proposal T2", "Proposal T3"]),
        ("Policy {word}: {title}", ["Policy One", "Policy Two", "Policy Three"]),
        ("Policy {number}a: {title}", ["Policy 1a", "Policy 2a", "Policy 3a"]),
        ("POLICY {word} – {title}", ["Policy One", "Policy Two", "Policy Three"]),
        ("Policy {roman}: {title}", ["Policy I", "Policy II", "Policy III"]),
        ("Opportunity Site {number}: {title}", ["Opportunity Site 1", "Opportunity Site 2"]),
        ("GT{number}. {title}", ["Policy GT1", "Policy GT2", "Policy GT3"]),
    ],
)
@requirement("ingest:sections:codes")
def test_policies_are_found_whatever_they_are_called(
    heading: str, refs: list[str], in_contents: bool
) -> None:
    words, romans = ("One", "Two", "Three", "Four", "Five"), ("I", "II", "III", "IV", "V")
    headings = [
        heading.format(number=number, title=title, word=word, roman=roman)
        for number, (title, word, roman) in enumerate(zip(TITLES, words, romans, strict=True), 1)
    ]

    document = make_plan_of(headings, in_contents=in_contents)

    assert list_policy_refs(document)[: len(refs)] == refs
    assert len(list_policy_refs(document)) == len(TITLES)
    assert list_words(document, refs[1]) == f"{headings[1]} Rule 2. {PROSE}".split()


@requirement("ingest:sections:codes")
def test_codes_that_skip_numbers_are_policies_where_the_contents_list_them() -> None:
    codes = ["TC2 – Homes", "TC4 – Shops", "RC5 – Inns", "EN14 – Work", "EN21 – Design"]
    strategies = [f"Strategy {number} – Place {number}" for number in range(1, 6)]

    document = make_plan_of([*strategies, *codes])

    assert list_policy_refs(document) == [
        *(f"Strategy {number}" for number in range(1, 6)),
        *("Policy TC2", "Policy TC4", "Policy RC5", "Policy EN14", "Policy EN21"),
    ]
    assert list_words(document, "Policy EN14") == f"EN14 – Work Rule 9. {PROSE}".split()


@requirement("ingest:sections:codes")
def test_proposals_that_the_contents_do_not_list_are_none_of_a_plans_policies() -> None:
    made = Paper(footer="#")
    policies = [f"Policy H{number}: {title}" for number, title in enumerate(TITLES, 1)]
    write_contents(made, policies)
    for number, heading in enumerate(policies, 1):
        made.write(heading, bold=True, size=13)
        made.write(f"Rule {number}. {PROSE}")
        made.write("Reasoned Justification", bold=True)
        made.write(REASON)
    made.write("2. What the parish hopes for", size=18, bold=True)
    for number, title in enumerate(TITLES, 1):
        made.write(f"Proposal {number}: {title}", bold=True, size=13)
        made.write("The parish will ask the county, which should help to pay for it.")

    document = read_plan(made.done())

    assert list_policy_refs(document) == [f"Policy H{number}" for number in range(1, 6)]


@requirement("ingest:sections:boxes")
def test_the_label_of_a_policy_stands_in_a_box_that_holds_a_table_too() -> None:
    made = Paper(footer="#")
    made.write("1. Homes", size=18, bold=True)
    for number in range(1, 4):
        made.write(f"HOU{number} Homes of kind {number}", bold=True, size=13)
        made.write(f"Spatial objectives. Policy HOU{number} meets the third of them. {REASON}")
        draw_box(made, bottom=300, top=560)
        made.move_to(556)
        made.write("Policy", bold=True)
        made.write(f"Rule {number}. {PROSE}")
        made.write("Homes will be built as follows:")
        draw_table(made, 400, [["Place", "Homes"], ["Ambridge", "120"], ["Total", "120"]])
        made.move_to(290)
        made.write(REASON * 2)
        made.turn()

    document = read_plan(made.done())

    for number in range(1, 4):
        expected = f"HOU{number} Homes of kind {number} Policy Rule {number}. {PROSE} Homes will be"
        table = "built as follows: Place Homes Ambridge 120 Total 120"
        assert list_words(document, f"Policy HOU{number}") == f"{expected} {table}".split()


@requirement("ingest:sections:tails")
def test_a_note_hardly_smaller_than_the_text_is_no_part_of_another_policy() -> None:
    made = Paper(footer="#")
    made.write("1. Homes", size=18, bold=True)
    for number in range(1, 4):
        made.move_to(760)
        made.write(REASON * 12, size=9)
        made.write(f"Rain has to fall on leaves before it reaches a pipe.{number}", size=9)
        made.move_to(300)
        made.write(f"Policy H{number}: Homes", bold=True, size=12)
        made.write(f"Rule {number}. {PROSE}", size=10)
        made.canvas.setFont("Helvetica", 8.4)
        made.canvas.drawString(LEFT, 95, f"{number}The figure was agreed with the drainage board.")
        made.turn()
        made.write(f"Furthermore, {PROSE}", size=10)
        made.write("Reasoned Justification", bold=True, size=10)
        made.write(REASON * 9, size=9)
        made.turn()

    document = read_plan(made.done())

    for number in range(1, 4):
        expected = f"Policy H{number}: Homes Rule {number}. {PROSE} Furthermore, {PROSE}"
        assert list_words(document, f"Policy H{number}") == expected.split()


@requirement("ingest:sections:boxes")
def test_codes_that_skip_numbers_are_policies_where_each_heads_a_box() -> None:
    made = Paper(footer="#")
    write_contents(made, [])
    for number, title in enumerate(TITLES, 1):
        top = 740.0 if number % 2 else 420.0
        made.move_to(top + 40)
        made.write(REASON)
        draw_box(made, bottom=top - 110, top=top)
        made.move_to(top - 4)
        made.write(f"TC{3 * number} – {title}", bold=True, size=13)
        made.write(f"Rule {number}. {PROSE}")
        made.move_to(top - 120)
        made.write(REASON * 2)
        if number % 2 == 0:
            made.turn()

    document = read_plan(made.done())

    assert list_policy_refs(document) == [f"Policy TC{3 * number}" for number in range(1, 6)]
    assert list_words(document, "Policy TC9") == f"TC9 – Inns Rule 3. {PROSE}".split()


@requirement("ingest:sections:tails")
def test_a_policy_in_italics_ends_where_most_of_the_plan_is_in_italics_too() -> None:
    made = Paper(footer="#")
    for number, title in enumerate(TITLES, 1):
        made.write(f"Policy H{number}: {title}", bold=True, size=13)
        made.write(f"Rule {number}. {PROSE * 2}", italic=True)
        made.write(REASON)

    document = read_plan(made.done())

    for number, title in enumerate(TITLES, 1):
        expected = f"Policy H{number}: {title} Rule {number}. {PROSE * 2}"
        assert list_words(document, f"Policy H{number}") == expected.split()


def make_plan_of_numbers(mention: str, *, is_boxed: bool = True) -> Document:
    """Read a plan that heads its policies `1. Homes`, and names them in its text."""
    made = Paper(footer="#")
    write_contents(made, [f"{number}. {title}" for number, title in enumerate(TITLES, 1)])
    for number, title in enumerate(TITLES, 1):
        if is_boxed:
            draw_box(made, bottom=650, top=760)
        made.move_to(750)
        made.write(f"{number}. {title}", bold=True, size=14)
        made.write(f"A. Rule {number}. {PROSE}")
        made.move_to(640)
        for paragraph in (1, 2):
            reason = f"{REASON} {mention.format(number % 5 + 1)} says more."
            made.write(reason, number=f"{number}.{paragraph}")
        made.turn()
    return read_plan(made.done())


@pytest.mark.parametrize("is_boxed", [True, False])
@requirement("ingest:sections:codes")
def test_a_number_heads_a_policy_where_the_text_calls_it_one(is_boxed: bool) -> None:
    document = make_plan_of_numbers("Policy {0}", is_boxed=is_boxed)

    assert list_policy_refs(document) == [f"Policy {number}" for number in range(1, 6)]
    assert list_words(document, "Policy 3") == f"3. Inns A. Rule 3. {PROSE}".split()
    assert "Chapter 3" not in {ref for section in document.sections for ref in section.path}
    assert "Para 3.1" in {section.ref for section in document.sections}


@pytest.mark.parametrize("mention", ["Chapter {0}", "Policy H{0}", "Policy 2{0}"])
@requirement("ingest:sections:codes")
def test_a_number_heads_a_chapter_where_the_text_calls_it_no_policy(mention: str) -> None:
    document = make_plan_of_numbers(mention)

    assert list_policy_refs(document) == []
    assert "Chapter 3" in {section.ref for section in document.sections}


@pytest.mark.parametrize("is_bold", [True, False])
@requirement("ingest:sections:codes")
def test_clauses_that_begin_with_the_code_of_their_policy_are_no_policies(is_bold: bool) -> None:
    made = Paper(footer="#")
    for number, title in enumerate(TITLES, 1):
        draw_box(made, bottom=540, top=760)
        made.move_to(750)
        made.write(f"Policy SP{number}: {title}", bold=True, size=13)
        for clause in (1, 2, 3):
            made.write(f"SP{number}.{clause} Rule {clause}: homes will be small.", bold=is_bold)
        made.move_to(530)
        made.write(REASON * 2)
        made.turn()

    document = read_plan(made.done())

    assert list_policy_refs(document) == [f"Policy SP{number}" for number in range(1, 6)]
    expected = " ".join(f"SP2.{clause} Rule {clause}: homes will be small." for clause in (1, 2, 3))
    assert " ".join(list_words(document, "Policy SP2")) == f"Policy SP2: Shops {expected}"


@requirement("ingest:sections:codes")
def test_codes_in_larger_letters_right_below_their_reasons_are_policies() -> None:
    made = Paper(footer="#")
    write_contents(made, [])
    for number, title in enumerate(TITLES, 1):
        made.write(f"{REASON} There are policies.", before=0)
        made.write(f"LP{number} {title}", bold=True, size=12.5, before=0)
        made.write(f"Rule {number}. {PROSE}")
        made.write("Reasoned Justification", bold=True)

    document = read_plan(made.done())

    assert list_policy_refs(document) == [f"Policy LP{number}" for number in range(1, 6)]
    assert list_words(document, "Policy LP3") == f"LP3 Inns Rule 3. {PROSE}".split()
