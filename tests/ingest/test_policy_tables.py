"""Tables that interrupt the box of a policy, or that it ends with, are part of it."""

import pytest

from tests.ingest.test_plans import PROSE, REASON, draw_box, read_plan
from tests.ingest.test_policy_marks import draw_table, list_words
from tests.requirements import requirement
from tests.support.papers import Paper

ROWS = [["Kind of home", "Cars", "Cycles"], ["Small", "1", "1"], ["Large", "2", "2"]]
ROW_WORDS = "Kind of home Cars Cycles Small 1 1 Large 2 2"
ANNOUNCEMENTS = (
    "Spaces for cars will be provided as follows:",
    "Spaces for cars will be provided at the rates in the table below, where there is a bus near.",
)


def write_box(made: Paper, top: float, *paragraphs: str) -> float:
    """Write paragraphs in a box, the first as a heading; return where the box ends."""
    bottom = top - 8 - 24 * len(paragraphs)
    draw_box(made, bottom=bottom, top=top)
    made.move_to(top)
    for number, paragraph in enumerate(paragraphs):
        made.write(paragraph, bold=paragraph.startswith("Policy"), size=9, before=number and 0.8)
    return bottom


@pytest.mark.parametrize("sentence", ANNOUNCEMENTS)
@pytest.mark.parametrize("side", ["apart", "touching"])
@requirement("ingest:sections:boxes")
def test_a_table_that_interrupts_a_box_is_part_of_the_policy(sentence: str, side: str) -> None:
    made = Paper(footer="#")
    made.write("4. Cars", size=18, bold=True)
    made.write(REASON * 3)
    bottom = write_box(made, 600, "Policy H1: Cars", sentence)
    table_bottom = draw_table(made, bottom - 8, ROWS)
    box_top = table_bottom - 8 if side == "apart" else table_bottom
    box_bottom = write_box(made, box_top, "Streets will stay free of cars where they can.")
    if side == "touching":
        # The sides of the table and of the box are one line at the left, as Word draws them.
        made.canvas.line(72, box_bottom, 72, table_bottom)
    made.move_to(box_bottom - 20)
    made.write(REASON * 2)

    words = list_words(read_plan(made.done()), "Policy H1")

    expected = (
        f"Policy H1: Cars {sentence} {ROW_WORDS} Streets will stay free of cars where they can."
    )
    assert words == expected.split()


@requirement("ingest:sections:boxes")
def test_a_table_that_a_policy_announces_ends_it() -> None:
    made = Paper(footer="#")
    made.write(REASON * 3)
    bottom = write_box(made, 600, "Policy H1: Cars", ANNOUNCEMENTS[0])
    made.move_to(draw_table(made, bottom - 8, ROWS) - 10)
    made.write(REASON * 2)

    words = list_words(read_plan(made.done()), "Policy H1")

    assert words == f"Policy H1: Cars {ANNOUNCEMENTS[0]} {ROW_WORDS}".split()


@requirement("ingest:sections:tails")
def test_a_table_that_no_policy_announces_is_not_part_of_the_box_above_it() -> None:
    made = Paper(footer="#")
    made.write(REASON * 3)
    bottom = write_box(made, 600, "Policy H1: Cars", "Spaces for cars will be provided.")
    made.move_to(draw_table(made, bottom - 8, ROWS) - 10)
    made.write(REASON * 2)

    words = list_words(read_plan(made.done()), "Policy H1")

    assert " ".join(words) == "Policy H1: Cars Spaces for cars will be provided."


@requirement("ingest:sections:boxes")
def test_a_box_that_ends_high_on_its_page_goes_on_overleaf_with_the_table_it_announces() -> None:
    made = Paper(footer="#")
    for _ in range(3):
        made.write(REASON * 16)
        made.turn()
    made.write(REASON * 3)
    sentences = ("Streets are for all.", "Cars will be parked in these places:")
    write_box(made, 300, "Policy H1: Cars", *sentences)
    made.turn()
    draw_box(made, bottom=580, top=760)
    made.move_to(draw_table(made, 750, ROWS) - 5)
    made.write(PROSE)
    made.move_to(570)
    made.write(REASON * 2)

    words = list_words(read_plan(made.done()), "Policy H1")

    expected = f"Policy H1: Cars {' '.join(sentences)} {ROW_WORDS} {PROSE}"
    assert words == expected.split()


@requirement("ingest:sections:boxes")
def test_the_sides_of_a_frame_may_differ_a_little_in_height() -> None:
    """Wherever on the page they stand: heights that differ by a point are never two."""
    for shift in range(0, 14, 2):
        made = Paper(footer="#")
        made.write(REASON * 2)
        top, bottom = 500.0 + shift, 400.0 + shift
        made.canvas.line(60, bottom - 0.5, 60, top + 0.5)
        made.canvas.line(540, bottom + 0.5, 540, top - 0.5)
        made.move_to(top)
        made.write("Policy H1: Homes", bold=True)
        made.write(PROSE)
        made.move_to(bottom - 4)
        made.write(REASON * 2)

        words = list_words(read_plan(made.done()), "Policy H1")

        assert words == f"Policy H1: Homes {PROSE}".split(), shift


@requirement("ingest:sections:tails")
def test_a_table_of_indicators_that_touches_the_box_of_a_policy_is_no_part_of_it() -> None:
    made = Paper(footer="#")
    made.write(REASON * 3)
    sentences = ("Homes will be small.", "Streets will stay free of cars where they can.")
    bottom = write_box(made, 600, "Policy H1: Cars", *sentences)
    indicators = [["Indicator", "Target"], ["Homes built", "200 a year"]]
    table_bottom = draw_table(made, bottom, indicators)
    made.canvas.rect(60, table_bottom, 480, 600 - table_bottom)
    made.move_to(table_bottom - 10)
    made.write(REASON * 2)

    words = list_words(read_plan(made.done()), "Policy H1")

    assert words == f"Policy H1: Cars {' '.join(sentences)}".split()


@requirement("ingest:sections:boxes")
def test_a_heading_and_facts_that_end_a_page_head_the_policy_overleaf() -> None:
    made = Paper(footer="#")
    made.write(REASON * 16)
    draw_box(made, bottom=75, top=140)
    made.move_to(140)
    made.write("Policy SA1: Gas Works", bold=True)
    draw_table(made, 112, [["Area", "4 ha"], ["Homes", "120"]])
    made.turn()
    draw_box(made, bottom=680, top=760)
    made.move_to(755)
    made.write(PROSE)
    made.move_to(670)
    made.write(REASON * 2)

    words = list_words(read_plan(made.done()), "Policy SA1")

    assert words == f"Policy SA1: Gas Works Area 4 ha Homes 120 {PROSE}".split()
