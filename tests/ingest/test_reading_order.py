"""Pages whose file has their lines in another order than a reader: headers, lists, notes."""

import pytest

from readingroom.ingest.read.formats.order import put_in_reading_order
from readingroom.ingest.read.page import Line
from tests.ingest.test_plans import make_line
from tests.requirements import requirement

HEADER = make_line("Homes", 57, 806)
FOOTER = make_line("Borchester Local Plan 30", 57, 23)
HEADING = make_line("Policy H1: Homes in the towns and villages", 57, 610)
OPENING = make_line("Homes will be permitted in the towns of the district where they:", 57, 590)
CLAUSES = [
    make_line(f"{letter}. are near to the shops and the school of the place; and", 57, height)
    for letter, height in (("A", 570), ("B", 551), ("C", 533))
]
CLOSING = make_line("In villages a survey of the need for homes is required.", 57, 514)
REASONS = [
    make_line(
        "Homes are needed in the villages too, though fewer of them than in towns", 57, height
    )
    for height in (440, 426, 412)
]


def read_in_order(page_lines: list[Line]) -> list[Line]:
    return put_in_reading_order(page_lines, 842)


@pytest.mark.parametrize("furniture", [[], [FOOTER], [HEADER, FOOTER], [FOOTER, HEADER]])
@requirement("ingest:text:order")
def test_lists_that_are_written_last_go_to_their_place_whatever_the_page_begins_with(
    furniture: list[Line],
) -> None:
    text = [HEADING, OPENING, CLOSING, *REASONS]

    ordered = read_in_order([*furniture, *text, *CLAUSES])

    assert ordered == [*furniture, HEADING, OPENING, *CLAUSES, CLOSING, *REASONS]


@pytest.mark.parametrize(
    ("furniture", "distance"),
    [*(([HEADER, FOOTER], distance) for distance in (18, 40, 90)), ([FOOTER], 18), ([], 18)],
)
@requirement("ingest:text:order")
def test_the_end_of_a_list_at_the_top_of_a_page_stands_before_the_text_below_it(
    furniture: list[Line], distance: int
) -> None:
    last_clause = make_line("D. are needed by people of the parish for their own use.", 57, 767)
    below = make_line("What is needed in a village will be shown by a survey.", 57, 767 - distance)

    ordered = read_in_order([*furniture, below, HEADING, OPENING, *REASONS, last_clause])

    assert ordered == [*furniture, last_clause, below, HEADING, OPENING, *REASONS]


@requirement("ingest:text:order")
def test_a_header_that_is_written_last_divides_no_paragraph_below_a_large_heading() -> None:
    chapter = Line("Chapter 3 Design", 57, 740, 32, True, 740)
    header = make_line("Chapter 3 Design", 469, 800)

    ordered = read_in_order([chapter, HEADING, OPENING, CLOSING, *CLAUSES, header, FOOTER])

    assert ordered == [chapter, HEADING, OPENING, *CLAUSES, CLOSING, header, FOOTER]


@requirement("ingest:text:order")
def test_the_last_clause_at_the_foot_of_a_page_follows_the_one_above_it() -> None:
    clauses = [
        make_line(f"{letter}. are near to the shops and the school of the place;", 57, height)
        for letter, height in (("A", 118), ("B", 100), ("C", 82), ("D", 64))
    ]
    text = [HEADING, OPENING, *REASONS]

    assert read_in_order([FOOTER, *text, *clauses]) == [FOOTER, *text, *clauses]
    assert read_in_order([FOOTER, *clauses, *text]) == [FOOTER, *text, *clauses]


@requirement("ingest:text:order")
def test_a_note_at_the_foot_of_a_page_stays_where_its_file_has_it() -> None:
    note = make_line("1 The map was published as a separate document by the council.", 57, 60)

    ordered = read_in_order([HEADING, OPENING, CLOSING, *REASONS, note, *CLAUSES])

    assert ordered == [HEADING, OPENING, *CLAUSES, CLOSING, *REASONS, note]


@requirement("ingest:text:order")
def test_a_page_with_nothing_but_a_header_and_a_footer_keeps_their_order() -> None:
    assert read_in_order([FOOTER, HEADER]) == [FOOTER, HEADER]
    assert read_in_order([]) == []
