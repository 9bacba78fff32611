"""Where policies begin and end in plans of other typesetters: bars, banners, maps and notes."""

import io
import re

import pypdfium2
import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase.pdfmetrics import registerFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from readingroom.ingest.read.formats.boxes import _unite_box_pieces
from readingroom.ingest.read.formats.images import Rectangle
from readingroom.ingest.read.formats.pdf import read_raw_page
from readingroom.ingest.read.page import BROKEN_WORD_MARK, Line, RawPage
from readingroom.ingest.structure.layout import rejoin_words
from tests.ingest.test_plans import PROSE, REASON, draw_box, get_text, list_policies, read_plan
from tests.ingest.test_policy_marks import draw_table, list_words
from tests.requirements import requirement
from tests.support.papers import LEFT, Paper


def write_boxed_policy(made: Paper, top: float, height: float, heading: str, text: str) -> None:
    draw_box(made, bottom=top - height, top=top)
    made.move_to(top - 4)
    made.write(heading, bold=True, size=13)
    made.write(text)


def write_italics(made: Paper, text: str, bottom: float) -> None:
    made.canvas.setFont("Helvetica-Oblique", 11)
    made.canvas.drawString(72, bottom, text)


@requirement("ingest:sections:boxes")
def test_a_bar_with_only_the_heading_is_not_all_of_the_policy() -> None:
    made = Paper(footer="#")
    made.write("1. Homes", size=18, bold=True)
    for number in range(1, 4):
        top = 880.0 - 200 * number
        draw_box(made, bottom=top - 24, top=top)
        made.move_to(top - 2)
        made.write(f"Policy H{number}: Homes", bold=True, before=0)
        made.write(f"Rule {number}. {PROSE}")
        made.write("Reasoned Justification", bold=True)
        made.write(REASON)

    document = read_plan(made.done())

    for number in range(1, 4):
        policy = " ".join(get_text(document, f"Policy H{number}").split())
        assert policy == f"Policy H{number}: Homes Rule {number}. {PROSE.strip()}"


@requirement("ingest:text:paragraphs")
def test_letters_of_a_font_without_heights_are_all_of_one_size() -> None:
    registerFont(TTFont("Vera", "Vera.ttf"))
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    for bottom, text in ((700, "A line"), (685, "a line"), (670, "g line"), (655, "- line")):
        canvas.setFont("Vera", 12)
        canvas.drawString(72, bottom, text)
    canvas.save()
    flat_content, font_count = re.subn(
        rb"/Descent -[\d.]+", lambda match: b"/Descent 0".ljust(len(match[0])), file.getvalue()
    )
    assert font_count == 1

    with pypdfium2.PdfDocument(flat_content) as pdf_document:
        lines = read_raw_page(pdf_document, 0).lines

    assert [line.letter_height for line in lines] == pytest.approx([lines[0].letter_height] * 4)
    assert [line.bottom - lines[-1].bottom for line in lines] == pytest.approx([45, 30, 15, 0])


@requirement("ingest:text:hyphens")
def test_a_compound_keeps_its_hyphen_where_no_other_word_is_broken() -> None:
    texts = [
        f"The take{BROKEN_WORD_MARK}up of land,",
        "which firms take",
        f"up on infra{BROKEN_WORD_MARK}structure plans",
    ]
    lines = [
        Line(text, 72.0, 720.0 - 20 * index, 11.0, is_bold=False, last_bottom=720.0 - 20 * index)
        for index, text in enumerate(texts)
    ]

    rejoin_words([RawPage(1, "1", 800.0, lines)])

    assert [line.text for line in lines] == [
        *("The take-up of land,", "which firms take", "up on infrastructure plans")
    ]


@requirement("ingest:sections:boxes")
def test_a_table_across_both_columns_is_no_part_of_the_box_above_it() -> None:
    column_box, table = Rectangle(43, 519, 277, 691), Rectangle(45, 464, 539, 516)
    bar, text_box = Rectangle(301, 600, 535, 620), Rectangle(301, 540, 535, 600)

    assert _unite_box_pieces([column_box, table]) == [column_box, table]
    assert _unite_box_pieces([bar, text_box]) == [Rectangle(301, 540, 535, 620)]


@requirement("ingest:sections:tails")
def test_a_banner_or_indicators_at_the_top_of_the_next_page_do_not_continue_a_box() -> None:
    made = Paper(footer="#")
    for number, (next_heading, size) in enumerate(
        (("5. Shops and services", 20), ("Key monitoring indicators: Policy H2", 10)), 1
    ):
        made.write(REASON * 8)
        write_boxed_policy(made, 260, 190, f"Policy H{number}: Homes", f"Rule {number}. {PROSE}")
        made.turn()
        draw_box(made, bottom=690, top=780)
        made.move_to(770)
        made.write(next_heading, bold=True, size=size)
        made.move_to(680)
        made.write(REASON * 2)
    made.write(REASON * 6)

    document = read_plan(made.done())

    for number in (1, 2):
        policy = " ".join(get_text(document, f"Policy H{number}").split())
        assert policy == f"Policy H{number}: Homes Rule {number}. {PROSE.strip()}"


@requirement("ingest:sections:tails")
def test_the_caption_of_a_map_below_a_policy_is_no_part_of_it() -> None:
    made = Paper(footer="#")
    made.write("1. Homes", size=18, bold=True)
    for number in range(1, 10):
        made.write(REASON, number=f"1.{number}")
        if number == 4:
            made.write("Policy H1: Homes", bold=True, size=13)
            made.write(PROSE)
            made.write("Map 2. The green network", bold=True)
            made.write("© Crown copyright. Not to scale.", size=7, before=8)

    document = read_plan(made.done())

    assert get_text(document, "Policy H1").split() == f"Policy H1: Homes {PROSE}".split()


@requirement("ingest:sections:tails")
def test_small_print_in_upright_letters_ends_a_policy_in_italics() -> None:
    made = Paper(footer="#")
    made.write(REASON * 6)
    made.move_to(510)
    made.write("Policy H1: Homes", bold=True, size=13)
    rules = [
        "Homes will be permitted in the village where they keep its character, and where",
        "people who live in the parish, or work there, have shown that they need them.",
    ]
    for index, rule in enumerate(rules):
        write_italics(made, rule, 480 - 14 * index)
    made.move_to(455)
    made.write("In line with: District Plan policies 3 and 29; NPPF paragraph 130", size=9)
    made.write(REASON * 3)

    policy = get_text(read_plan(made.done()), "Policy H1")

    assert " ".join(policy.split()) == " ".join(["Policy H1: Homes", *rules])


@requirement("ingest:sections:occurrences")
def test_a_heading_printed_again_stands_above_the_rest_of_the_policy_and_not_in_it() -> None:
    made = Paper(footer="#")
    made.write(REASON * 8)
    heading = "Policy H1: Homes at the old gasworks in Quay Street"
    write_boxed_policy(made, 260, 190, heading, PROSE)
    made.turn()
    write_boxed_policy(made, 780, 120, heading, "The end of the policy.")
    made.move_to(640)
    made.write(REASON * 3)

    document = read_plan(made.done())

    expected_words = f"{heading} {PROSE} The end of the policy.".split()
    assert get_text(document, "Policy H1").split() == expected_words
    last_chunk = [chunk for chunk in document.chunks if chunk.section_ref == "Policy H1"][-1]
    assert document.get_chunk_text(last_chunk).startswith(heading)


@pytest.mark.parametrize(
    ("heading", "ref", "title"),
    [
        (
            "Policy M2 (Safeguarding of the mineral resources)",
            "Policy M2",
            "Safeguarding of the mineral resources",
        ),
        ("XY Allocation 7: Elm Farm", "XY Allocation 7", "Elm Farm"),
    ],
)
@requirement("ingest:sections:codes")
def test_titles_in_brackets_and_letters_before_allocation(
    heading: str, ref: str, title: str
) -> None:
    made = Paper(footer="#")
    made.write(REASON * 2)
    write_boxed_policy(made, 600, 120, heading, PROSE)

    document = read_plan(made.done())

    titles = {section.ref: section.title for section in document.sections}
    assert titles[ref] == title
    assert get_text(document, ref).split() == f"{heading} {PROSE}".split()


@requirement("ingest:sections:codes")
def test_a_code_that_heads_a_box_like_those_of_the_policies_is_one() -> None:
    made = Paper(footer="#")
    headings = [f"Core Policy {number}" for number in range(1, 6)]
    headings.insert(2, "CP2A")
    for index, heading in enumerate(headings):
        if index and index % 3 == 0:
            made.turn()
        made.move_to(760 - 230 * (index % 3))
        made.write(REASON * 2)
        write_boxed_policy(made, 680 - 230 * (index % 3), 130, heading, f"Rule {index}. {PROSE}")

    document = read_plan(made.done())

    assert get_text(document, "Policy CP2A").split() == f"CP2A Rule 2. {PROSE}".split()


@requirement("ingest:sections:tails")
def test_the_footnote_of_a_text_that_ends_in_a_code_is_no_part_of_a_policy() -> None:
    made = Paper(footer="#")
    made.write(f"{REASON} See also Policy G6.7")
    made.write("Policy H1: Homes", bold=True, size=13)
    made.write(f"First. {PROSE}")
    made.move_to(120)
    made.write("7 Assessment of the Housing Market, 2018.", size=7)
    made.turn()
    made.write(f"second {PROSE}")
    made.write("Reasoned Justification", bold=True)
    made.write(REASON * 6)

    policy = get_text(read_plan(made.done()), "Policy H1")

    expected_words = f"Policy H1: Homes First. {PROSE} second {PROSE}".split()
    assert policy.split() == expected_words


@requirement("ingest:sections:plain")
def test_numbers_that_hang_are_found_though_no_gap_divides_the_paragraphs() -> None:
    made = Paper(footer="#")
    for chapter in (1, 2):
        made.write(f"{chapter}. Homes", size=18, bold=True)
        for number in range(1, 6):
            made.write(f"Policy H{chapter}{number}: Homes", bold=True, size=13)
            made.write(PROSE)
            made.write(REASON, number=f"{chapter}.{number}.1", before=0.3)
            made.write(REASON, number=f"{chapter}.{number}.2", before=0.3)

    document = read_plan(made.done())

    assert len(list_policies(document)) == 10
    for policy in list_policies(document):
        assert get_text(document, policy).split()[3:] == PROSE.split()


@pytest.mark.parametrize(
    ("announcement", "caption", "caption_left"),
    [
        ("The sites in the table below are allocated in this plan.", "Table 3: Sites", LEFT + 17),
        ("They are allocated, subject to what Appendix 3 says.", "Table 3: Sites", LEFT + 17),
        ("They are allocated, subject to what Appendix 3 says.", "Table H1: Sites", LEFT + 17),
        ("The sites that are allocated are as follows:", "Table 4.2 Sites", LEFT),
    ],
)
@requirement("ingest:sections:boxes")
def test_a_table_with_a_caption_is_a_part_of_a_policy_that_is_set_in(
    announcement: str, caption: str, caption_left: float
) -> None:
    made = Paper(footer="#")
    for number in range(1, 5):
        made.move_to(760)
        made.write(REASON * 3)
        made.move_to(620)
        made.write(f"Policy M{number}: Sand", bold=True, size=12, left=LEFT + 17)
        made.write(f"Rule {number}. {PROSE} {announcement}", left=LEFT + 17)
        made.write(caption, left=caption_left)
        made.canvas.setFont("Helvetica", 10)
        draw_table(made, 500, [["Site", "Tonnes"], ["Cow Pasture", "1,900"], ["Ings", "2,450"]])
        made.move_to(440)
        made.write("Beyond these, sand will be dug only where it is needed.", left=LEFT + 17)
        made.move_to(380)
        made.write(REASON * 3)
        made.turn()

    document = read_plan(made.done())

    for number in range(1, 5):
        expected = (
            f"Policy M{number}: Sand Rule {number}. {PROSE} {announcement} {caption} Site Tonnes"
            " Cow Pasture 1,900 Ings 2,450 Beyond these, sand will be dug only where it is needed."
        )
        assert list_words(document, f"Policy M{number}") == expected.split()


@pytest.mark.parametrize(
    "heading", ["MONITORING", "DELIVERY", "REASONS", "JUSTIFICATION", "EVIDENCE BASE", "INDICATORS"]
)
@requirement("ingest:sections:tails")
def test_a_heading_in_capitals_ends_a_policy_as_one_in_bold_does(heading: str) -> None:
    made = Paper(footer="#")
    for number in range(1, 5):
        made.write(f"Policy M{number}: Sand", bold=True, size=12)
        made.write(f"Rule {number}. {PROSE}")
        made.write(heading, size=10)
        made.write("Permissions that were granted, of which there should be none.")

    document = read_plan(made.done())

    for number in range(1, 5):
        expected = f"Policy M{number}: Sand Rule {number}. {PROSE}"
        assert list_words(document, f"Policy M{number}") == expected.split()


@requirement("ingest:sections:tails")
def test_a_policy_whose_clauses_have_bold_marks_is_not_all_in_bold() -> None:
    made = Paper(footer="#")
    made.write("Policy H1: Homes", bold=True, size=13)
    lines = (
        "Homes will be permitted where they are small and keep the character",
        "of the place, do no harm to neighbours and can be reached by bus or on foot.",
    )
    for mark, top in (("A.", 710), ("B.", 670)):
        made.canvas.setFont("Helvetica-Bold", 11)
        made.canvas.drawString(LEFT, top, mark)
        made.canvas.setFont("Helvetica", 11)
        made.canvas.drawString(LEFT + 15, top, lines[0])
        made.canvas.drawString(LEFT, top - 13.2, lines[1])
    made.move_to(650)
    made.write("C. Sites", bold=True)
    made.write(f"The end. {PROSE}")
    made.write("Reasoned Justification", bold=True)
    made.write(REASON * 2)

    policy = get_text(read_plan(made.done()), "Policy H1")

    assert " ".join(policy.split()).endswith(f"C. Sites The end. {PROSE.strip()}")


@requirement("ingest:sections:tails")
def test_the_number_of_a_policy_that_is_named_is_no_mark_of_a_note() -> None:
    made = Paper(footer="#")
    made.write(f"{REASON} So said the county.6")
    made.write("Policy H1: Homes", bold=True, size=13)
    made.write(f"{PROSE} First (see Policy SD6).")
    made.move_to(120)
    made.write("6 Assessment of the Housing Market, 2018.", size=7)
    made.turn()
    made.write(f"Second. {PROSE}")
    made.write("Reasoned Justification", bold=True)
    made.write(REASON * 6)

    policy = get_text(read_plan(made.done()), "Policy H1")

    expected = f"Policy H1: Homes {PROSE} First (see Policy SD6). Second. {PROSE}"
    assert policy.split() == expected.split()
