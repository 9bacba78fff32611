"""Quotations by every convention: all as they deserve, and none verified that should not be."""

import difflib
import random

import pytest

from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.compare import quotes
from readingroom.bases.policy.compare.quotes import find_closest_stretch, locate_quote
from tests.requirements import requirement
from tests.support.papers import Paper
from tests.support.policy.chunks import read_chunks


def make_policy() -> bytes:
    """A policy of three pages: footnote marks, a list, and a sentence over the end of a page."""
    made = Paper(footer="#")
    made.write("1. Homes and stations", size=18, bold=True)
    made.write(
        "Development should be focused on places within reach of a railway station44, and homes12 "
        "should be well-designed. It is expected that 300,000 homes are built.45",
        number="1.",
    )
    made.write(
        "Plans should be prepared with the objective of sustainable development13 – as the "
        "Act says – and ‘positively’ so. Policy HOU2 applies. It must not harm trees.",
        number="2.",
    )
    made.write("Decisions should ensure that:", number="3.")
    for letter, item in zip(
        "abc",
        [
            "safe and suitable access to the site can be achieved for all users;",
            "any significant impacts can be mitigated; and",
            "parking is not provided in excess of the standard.",
        ],
        strict=True,
    ):
        made.write(f"{letter}) {item}", left=108, before=0.3)
    made.write(
        "In all cases the council will refuse permission where the harm would be",
        number="4.",
    )
    made.move_to(120)
    made.write("44 The stations are listed in Annex 2.", size=8)
    made.write("45 See the standard method.", size=8, before=0)
    made.turn()
    made.write(
        "greater than the benefit, unless the site is allocated in the plan for housing.",
        left=108,
    )
    made.write("Homes must be accessible to all people, whatever their age.", number="5.")
    made.write("Trees shall be kept. They may be felled where they are unsafe.", number="6.")
    return made.done()


@pytest.fixture(scope="module")
def chunks() -> list[StoredChunk]:
    return read_chunks(make_policy())


VERIFIED = [
    "Development should be focused on places",
    "  development SHOULD   be\nfocused on places ",
    "within reach of a railway station, and homes should be well-designed",
    "railway station44, and homes12 should be",
    "homes should be well\u2011designed",
    "It is expected that 300,000 homes are built.",
    "300,000 homes are built. Plans should be prepared",
    "sustainable development – as the Act says – and 'positively' so",
    "sustainable development — as the Act says — and “positively” so".replace("“", "‘").replace(
        "”", "’"
    ),
    "“Plans should be prepared with the objective of sustainable development”",
    "Policy HOU2 applies.",
    "Decisions should ensure that: safe and suitable access to the site",
    "Decisions should ensure that: a) safe and suitable access",
    "ensure that: (a) safe and suitable access",
    "for all users; any significant impacts can be mitigated; and parking is not provided",
    "the council will refuse permission where the harm would be greater than the benefit",
    "In all cases the council will refuse permission where the harm would be greater than the "
    "benefit, unless the site is allocated",
    "Development should be focused on places … and homes should be well-designed",
    "Development should be focused [...] within reach of a railway station",
    "Development should be focused […] homes should be well-designed",
    "[d]evelopment should be focused on places",
    "[D]ecisions should ensure that",
    "the council will refuse permission ... unless the site is allocated in the plan",
    "It must not harm trees",
    "places within reach [emphasis added]",
    "“[p]lans should be prepared … and ‘positively’ so.”",
    "It [must] not harm trees",
    "44 The stations are listed in Annex 2.",
]
NOT_FOUND = [
    "Development must be focused on places",
    "It must harm trees",
    "Policy HOU applies",
    "000 homes are built",
    "the council will permission where the harm would be",
    "Trees shall be kept … whatever their age",
    "Homes must be accessible … where they are unsafe",
    "parking is provided in excess of the standard",
    "Trees shall [not] be kept",
    "safe … trees",
    "unless the site is allocated … the council will refuse permission",
    "They may be felled where they are safe",
    "are unsafe. Trees shall be kept",
    "suitable access to the site can be achieved for users",
    "30,000 homes are built",
]


@pytest.mark.parametrize("quote", VERIFIED)
@requirement("policy:verify")
def test_a_true_quotation_is_found(chunks: list[StoredChunk], quote: str) -> None:
    assert locate_quote(quote, chunks) is not None


@pytest.mark.parametrize("quote", NOT_FOUND)
@requirement("policy:verify")
def test_words_that_do_not_stand_so_are_not_found(chunks: list[StoredChunk], quote: str) -> None:
    assert locate_quote(quote, chunks) is None


@requirement("policy:verify")
def test_a_quotation_over_the_end_of_a_page_begins_on_the_first(chunks: list[StoredChunk]) -> None:
    first = locate_quote("refuse permission where the harm would be greater than", chunks)
    second = locate_quote("greater than the benefit", chunks)

    assert first and second
    assert (first.page_number, second.page_number) == (1, 2)
    assert first.chunk.section_ref == "Para 4"


@requirement("policy:verify")
def test_what_has_more_words_than_any_quotation_is_not_looked_for(
    chunks: list[StoredChunk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotes, "_compile_segment", lambda segment: pytest.fail("it was compiled"))
    assert locate_quote("a " * 2000, chunks) is None
    assert locate_quote("a b … " * 600, chunks) is None


@requirement("policy:verify")
def test_a_quotation_of_a_few_words_again_and_again_is_compared_with_few_passages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0

    class CountingMatcher(difflib.SequenceMatcher):  # type: ignore[type-arg]
        def ratio(self) -> float:
            nonlocal compared
            compared += 1
            return super().ratio()

    monkeypatch.setattr(difflib, "SequenceMatcher", CountingMatcher)
    letters = random.Random(1)
    text = " ".join(letters.choice("ab") for _ in range(1000))
    closest, similarity = find_closest_stretch(
        " ".join(letters.choice("ab") for _ in range(500)), text
    )
    # A window has 125,000 pairs of equal words; there are 500 windows.
    assert compared <= 3
    assert closest in text and 0 < similarity <= 1
    # Of twice as many words not even one window is compared in full.
    compared = 0
    closest, similarity = find_closest_stretch(
        " ".join(letters.choice("ab") for _ in range(1990)), text
    )
    assert compared == 0
    assert closest in text and 0 < similarity <= 1
