"""Sections of policy documents: found by look and sequence, never by mention."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from readingroom.ingest.document import Document, DocumentSection, ReadOptions
from readingroom.ingest.read.reader import read_file
from readingroom.ingest.structure.numbering import find_rising_number_indexes
from tests.requirements import requirement
from tests.support.papers import Paper, typeset_framework

OPTIONS = ReadOptions(find_sections=True, enable_ocr=False)


def read_policy(data: bytes) -> Document:
    document = read_file(data, "policy.pdf", OPTIONS, lambda *_: None)
    assert isinstance(document, Document)
    return document


def list_refs(document: Document) -> list[str]:
    return [section.ref for section in document.sections]


def list_paths(document: Document) -> list[str]:
    return [" > ".join(section.path) for section in document.sections]


def read_section_text(document: Document, ref: str) -> str:
    found = [section for section in document.sections if section.ref == ref]
    return "\n\n".join(
        document.text[section.start_offset : section.end_offset].strip() for section in found
    )


@pytest.mark.data
@requirement("ingest:sections:framework")
def test_all_paragraphs_of_the_framework_are_found_under_their_chapters(shared_data: Path) -> None:
    markdown = (shared_data / "policy" / "NPPF_December_2024.md").read_text("utf-8")

    document = read_policy(typeset_framework(markdown))

    assert list_paths(document) == list_expected_paths(markdown)


def list_expected_paths(markdown: str) -> list[str]:
    """What the transcript itself says, by its headings and its line starts."""
    said = []
    above = ""
    body = markdown[markdown.index("# 1. Introduction") :]
    for match in re.finditer(r"(?:^|(?<=\.))# (?:(\d+)\.|(Annex \d):)|^(\d+)\. \D", body, re.M):
        chapter, annex, number = match.groups()
        if number is None:
            above = f"Chapter {chapter}" if chapter else annex
            said.append(above)
        else:
            said.append(f"{above} > Para {number}")
    assert sum(path.partition(" > ")[2].startswith("Para") for path in said) == 243
    return said


def list_expected_refs(markdown: str) -> set[str]:
    return {path.rpartition(" > ")[2] for path in list_expected_paths(markdown)}


# The policies of the draft of December 2025, counted in the document by eye: code, how many.
DRAFT = {
    "PM": 17,
    "DM": 10,
    "S": 6,
    "CC": 3,
    "HO": 13,
    "E": 4,
    "TC": 4,
    "CO": 2,
    "W": 4,
    "M": 6,
    "L": 4,
    "GB": 8,
    "DP": 4,
    "TR": 8,
    "HC": 8,
    "P": 6,
    "F": 9,
    "N": 6,
    "HE": 11,
}


def list_draft_refs() -> set[str]:
    return {
        *(f"Chapter {number}" for number in range(1, 21)),
        *(f"Policy {code}{n}" for code, most in DRAFT.items() for n in range(1, most + 1)),
        *(f"Annex {letter}" for letter in "ABCDEF"),
        *(f"Para {number}" for number in range(1, 18)),
        *(f"Table {number}" for number in (1, 2, 3)),
    }


@pytest.mark.data
@requirement("ingest:sections:draft")
def test_every_chapter_and_policy_of_the_draft_framework_is_found(shared_data: Path) -> None:
    document = read_policy((shared_data / "policy" / "NPPF_Draft_December_2025.pdf").read_bytes())

    found = Counter(list_refs(document))

    assert found.keys() == list_draft_refs()
    repeated = [ref for ref, times in found.items() if times > 1]
    # Annex F goes on after its tables, a policy after the note of another at the foot of a page.
    assert [ref for ref in repeated if not ref.startswith(("Chapter", "Policy"))] == ["Annex F"]
    openings: defaultdict[str, list[str]] = defaultdict(list)
    for section in document.sections:
        openings[section.ref].append(
            document.text[section.start_offset : section.end_offset].lstrip()
        )
    notes = [text for ref in repeated if ref.startswith("Chapter") for text in openings[ref][1:]]
    assert notes and all(re.match(r"\d{1,2} \w", note) for note in notes)


@pytest.mark.data
@requirement("ingest:sections:own-numbering")
def test_a_policys_own_clauses_belong_to_the_policy(shared_data: Path) -> None:
    document = read_policy((shared_data / "policy" / "NPPF_Draft_December_2025.pdf").read_bytes())

    policy = read_section_text(document, "Policy DM5")

    assert policy.startswith("DM5: Development viability")
    assert re.findall(r"^(\d)\. ", policy, re.M)[:3] == ["1", "2", "3"]


def make_guidance_pdf() -> bytes:
    """A guide in the manner of a design note: decimal paragraphs, tables, cross-references."""
    made = Paper(header="Street design guide", footer="Page #")
    made.write("Contents", size=20, bold=True)
    for number, (title, page) in enumerate(
        [("Introduction", 2), ("Planning", 2), ("Networks", 3), ("Junctions", 3), ("Widths", 4)], 1
    ):
        made.write(f"{number} {title} {page}", before=0)
    for chapter, title in enumerate(["Introduction", "Planning", "Networks", "Junctions"], 1):
        made.turn()
        made.write(f"Chapter {chapter} {title}", size=20, bold=True)
        for number in (1, 2):
            made.write(f"{PROSE} This is said in short.", number=f"{chapter}.1.{number}")
    made.turn()
    made.write("Chapter 5 Widths of tracks", size=20, bold=True)
    made.write("5.1 Principles", size=13, bold=True)
    made.write(f"{PROSE} For junctions see Chapter 9.", number="5.1.1")
    made.write("Wheels need room, and where the width is shared with others, as in", number="5.1.2")
    for line in (
        "Chapter 9 and in",
        "Table 5-2 below, more of it is needed; the same is true of",
        "Policy TR4 and of what",
        "Figure 4.1 shows.",
    ):
        made.write(line, before=0, left=108)
    made.write("5.2 Widths", size=13, bold=True)
    made.write(PROSE, number="5.2.1")
    made.write("The width of a track follows from its flow and is not less than", number="5.2.2")
    made.write("5.5 m where carts meet.", before=0, left=108)
    made.write("Table 5-2: Least widths by flow", size=10, bold=True)
    for row in ("TextFlow Width", "0 to 200 2.0 m", "200 to 800 3.0 m", "over 800 4.0 m"):
        made.write(row, size=10, before=0)
    made.write(PROSE, left=108)
    made.write(PROSE, number="5.2.3")
    made.write("Annex A Measuring", size=20, bold=True)
    made.write(PROSE)
    return made.done()


PROSE = (
    "A track is wide enough when two riders can pass each other and a third can overtake, with the "
    "kerb, the drain and the wall counted out, for nobody rides in them. "
)


def list_guidance_refs() -> set[str]:
    return {
        *(f"Chapter {number}" for number in range(1, 6)),
        *(f"Para {chapter}.1.{number}" for chapter in range(1, 6) for number in (1, 2)),
        *("Section 5.1", "Section 5.2", "Para 5.2.1", "Para 5.2.2", "Para 5.2.3"),
        *("Table 5-2", "Annex A"),
    }


@pytest.fixture(scope="module")
def guide() -> Document:
    return read_policy(make_guidance_pdf())


@requirement("ingest:sections:decimal")
def test_decimal_paragraphs_and_tables_lie_under_their_sections(guide: Document) -> None:
    assert [path for path in list_paths(guide) if path.startswith("Chapter 5")] == [
        "Chapter 5",
        "Chapter 5 > Section 5.1",
        "Chapter 5 > Section 5.1 > Para 5.1.1",
        "Chapter 5 > Section 5.1 > Para 5.1.2",
        "Chapter 5 > Section 5.2",
        "Chapter 5 > Section 5.2 > Para 5.2.1",
        "Chapter 5 > Section 5.2 > Para 5.2.2",
        "Chapter 5 > Section 5.2 > Para 5.2.2 > Table 5-2",
        "Chapter 5 > Section 5.2 > Para 5.2.2",
        "Chapter 5 > Section 5.2 > Para 5.2.3",
    ]


@requirement("ingest:sections:mentions")
def test_a_cross_reference_starts_no_section_even_at_the_start_of_a_line(guide: Document) -> None:
    lines = guide.text.splitlines()
    assert {"Chapter 9 and in", "Figure 4.1 shows.", "5.5 m where carts meet."} <= set(lines)

    invented = {"Chapter 9", "Policy TR4", "Figure 4.1", "Para 5.5", "Section 5.5"}

    assert not invented & set(list_refs(guide))
    assert set(list_refs(guide)) == list_guidance_refs()
    assert list_refs(guide).count("Table 5-2") == 1


@requirement("ingest:sections:tables")
def test_a_table_ends_where_the_text_goes_on(guide: Document) -> None:
    table = read_section_text(guide, "Table 5-2")

    assert table.startswith("Table 5-2: Least widths by flow")
    assert table.endswith("over 800 4.0 m")
    assert read_section_text(guide, "Para 5.2.2").endswith("nobody rides in them.")


@requirement("ingest:sections:contents")
def test_a_table_of_contents_holds_no_sections(guide: Document) -> None:
    assert [section.page for section in guide.sections if section.ref == "Chapter 1"] == [2]
    assert guide.sections[0].ref == "Chapter 1"


@requirement("ingest:sections:contents")
def test_titles_and_pages_are_told(guide: Document) -> None:
    chapter = find_section(guide, "Chapter 5")

    assert (chapter.title, chapter.page) == ("Widths of tracks", 6)
    assert find_section(guide, "Section 5.2").title == "Widths"


def find_section(document: Document, ref: str) -> DocumentSection:
    (found,) = [section for section in document.sections if section.ref == ref]
    return found


@requirement("ingest:sections:own-numbering")
def test_paragraphs_go_on_after_a_policy_between_them() -> None:
    made = Paper()
    made.write("1. Homes", size=20, bold=True)
    for number in (1, 2, 3):
        made.write(PROSE, number=f"{number}.")
    made.write("Policy BSC 1: District Wide Housing Distribution", bold=True)
    for number in (1, 2):
        made.write(PROSE, number=f"{number}.")
    for number in (4, 5):
        made.write(PROSE, number=f"{number}.")
    made.write("Policy Bicester 12 – South East", bold=True)
    made.write(PROSE)

    document = read_policy(made.done())

    assert list_paths(document) == [
        "Chapter 1",
        "Chapter 1 > Para 1",
        "Chapter 1 > Para 2",
        "Chapter 1 > Para 3",
        "Chapter 1 > Policy BSC 1",
        "Chapter 1 > Para 4",
        "Chapter 1 > Para 5",
        "Chapter 1 > Policy Bicester 12",
    ]


@requirement("ingest:sections:mentions")
def test_headings_in_capitals_are_what_they_say() -> None:
    made = Paper()
    for heading in ("PART 1: SCOPE", "POLICY H 4: HOMES", "TABLE 3: COSTS", "ANNEX 2: TERMS"):
        made.write(heading, bold=True)
        made.write(PROSE)

    assert list_refs(read_policy(made.done())) == [
        *("Part 1", "Policy H 4", "Table 3"),
        *("Policy H 4", "Annex 2"),  # the text after the table, and the annex
    ]


def typeset_plainly(*paragraphs: str) -> bytes:
    """A PDF in one size and weight."""
    made = Paper()
    for paragraph in paragraphs:
        made.write(paragraph)
    return made.done()


@pytest.mark.parametrize(
    ("headings", "refs"),
    [
        (
            ("Introduction", "Walking", "Cycle parking"),
            ["Introduction", "Walking", "Cycle parking"],
        ),
        (("1. Introduction", "2. Walking", "3 Homes"), ["Chapter 1", "Chapter 2", "Chapter 3"]),
    ],
)
@requirement("ingest:sections:mentions")
def test_without_other_letters_a_line_of_its_own_above_text_is_a_heading(
    headings: tuple[str, ...], refs: list[str]
) -> None:
    paragraphs = [part for heading in headings for part in (heading, PROSE * 2, PROSE * 2)]
    assert list_refs(read_policy(typeset_plainly(*paragraphs))) == refs


@pytest.mark.parametrize(
    ("paragraphs", "refs"),
    [
        # A name at the head of a letter, and a signature below it.
        (("Fenton District Council", PROSE * 2, PROSE * 2, "Jane Brown"), []),
        # A list, whose last item alone stands above text.
        ((PROSE * 2, "Bicycles", "Cars", "Buses", PROSE * 2), []),
        # Numbered paragraphs, one of them as short as a title.
        (
            (f"1. {PROSE}", "2. Bicycles", PROSE * 2, f"3. {PROSE}", f"4. {PROSE}"),
            ["Para 1", "Para 2", "Para 3", "Para 4"],
        ),
    ],
)
@requirement("ingest:sections:mentions")
def test_a_short_line_that_heads_nothing_is_no_heading(
    paragraphs: tuple[str, ...], refs: list[str]
) -> None:
    assert list_refs(read_policy(typeset_plainly(*paragraphs))) == refs


@requirement("ingest:sections:mentions")
def test_a_schedule_of_policies_at_the_end_does_not_take_their_place() -> None:
    made = Paper()
    for number in (1, 2, 3):
        made.write(f"Policy H{number}: Homes", bold=True)
        made.write(PROSE * 3)
    made.write("Annex A: Schedule", size=16, bold=True)
    for number in (1, 2, 3):
        made.write(f"Policy H{number}: Homes", bold=True)

    document = read_policy(made.done())

    assert list_refs(document) == ["Policy H1", "Policy H2", "Policy H3", "Annex A"]


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 2, 1, 2, 3, 3, 4], [1, 2, 3, 4]),
        ([1, 2, 4, 3, 4, 5], [1, 2, 3, 4, 5]),
        ([1, 2, 30, 3, 5], [1, 2, 3, 5]),
        ([], []),
    ],
)
@requirement("ingest:sections:rising")
def test_the_best_rising_sequence_is_kept(numbers: list[int], kept: list[int]) -> None:
    assert [numbers[index] for index in find_rising_number_indexes(numbers, max_step=3)] == kept
