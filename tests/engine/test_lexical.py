"""The lexical index finds by words, safely, within its budget, and keeps step with every write."""

import re
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unicodedata import category, ucd_3_2_0

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from readingroom.core.filters import And, Equals, Filter, FilterFields, In, Metadata, Range
from readingroom.engine.errors import SearchTimeout
from readingroom.engine.lexical import LexicalDocument, LexicalIndex
from readingroom.engine.words import (
    LexicalHit,
    extract_query_words,
    make_fts5_tokenizer_option,
    parse_query,
    sort_hits,
)
from tests.engine.test_vectors import FIELDS, FILTERS
from tests.requirements import requirement
from tests.support.filters import passes

COLUMNS = {"title": 10.0, "body": 1.0}
_WORDS = (
    "cycle",
    "cycling",
    "parking",
    "homes",
    "flood",
    "risk",
    "station",
    "green",
    "belt",
    "the",
)


def make_document(id: str, body: str, title: str = "", **metadata: Any) -> LexicalDocument:
    return LexicalDocument(id, {"title": title, "body": body}, metadata)


@pytest.fixture
def index(tmp_path: Path) -> LexicalIndex:
    return LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS)


def search_ids(
    index: LexicalIndex, question: str, k: int = 10, where: Filter | None = None
) -> list[str]:
    return [hit.id for hit in index.search(question, k, where)]


@requirement("engine:lexical:find")
def test_words_are_found_in_any_form_and_the_title_counts_most(index: LexicalIndex) -> None:
    index.upsert_documents(
        [
            make_document("body", "Parking for cycles is wanted at every door."),
            make_document("title", "Spaces are wanted at every door.", title="Cycle parking"),
            make_document("other", "Flood risk is assessed by zone."),
        ]
    )

    hits = index.search("Where should I park my bicycle or cycles?", 5)

    assert [hit.id for hit in hits] == ["title", "body"]
    assert hits[0].score > hits[1].score > 0


@requirement("engine:lexical:find")
def test_equal_documents_come_in_the_order_of_their_ids(index: LexicalIndex) -> None:
    index.upsert_documents([make_document(f"id{number}", "green belt") for number in (3, 1, 2)])

    assert search_ids(index, "green belt") == ["id1", "id2", "id3"]


@requirement("engine:lexical:words")
def test_empty_words_are_dropped_unless_there_is_nothing_else() -> None:
    assert extract_query_words("What is the state of the Green Belt?") == ["state", "green", "belt"]
    assert extract_query_words("To be or not to be") == ["to", "be", "or", "not"]
    assert len(extract_query_words(" ".join(f"w{number}" for number in range(500)))) == 64


_NASTY = (
    '"', "'", "*", "(", ")", "NEAR(", "a AND b", "title:x", "{a b}", "-x", "^x", "\0", "x'; DROP",
    "OR", "NOT", "col : x", "\ud800".encode("utf-8", "replace").decode(), "١٢٣", "ﬁ", "e\u0301",
)  # fmt: skip

# Code points that a Unicode version does not know yet may be letters to one side alone.
_KNOWN = st.characters(exclude_categories=["Cn", "Co", "Cs"], include_characters="\uf0b7")
_TEXT = st.text(_KNOWN, max_size=60)


@requirement("engine:lexical:safe")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@example("0\N{SIGNWRITING HAND-FIST INDEX}")
@given(st.one_of(_TEXT, st.lists(st.sampled_from(_NASTY)).map(" ".join)))
def test_any_text_is_a_question_and_never_syntax(index: LexicalIndex, question: str) -> None:
    index.upsert_documents(
        [make_document("one", "words and 'quotes'"), make_document("two", question)]
    )

    answered = search_ids(index, question)

    assert set(answered) <= {"one", "two"}
    if extract_query_words(question) and any(
        word.isascii() for word in extract_query_words(question)
    ):
        assert "two" in answered


@requirement("engine:lexical:find")
def test_what_stands_in_quotation_marks_is_found_as_it_stands(index: LexicalIndex) -> None:
    index.upsert_documents(
        [
            make_document("phrase", "The Clean Water Act, as amended."),
            make_document("both", "Enforcement of the clean water act is for the agency."),
            make_document("apart", "An act for clean air; water; enforcement, enforcement."),
            make_document("other", "Enforcement by zone."),
        ]
    )

    assert set(search_ids(index, "clean water act")) == {"phrase", "both", "apart"}
    assert set(search_ids(index, '"clean water act"')) == {"phrase", "both"}
    assert set(search_ids(index, "“clean water act”")) == {"phrase", "both"}
    # The other words only rank, and empty ones do not count.
    assert search_ids(index, 'the enforcement of the "clean water act"') == ["both", "phrase"]
    assert search_ids(index, 'the "clean water act"') == search_ids(index, '"clean water act"')
    assert set(search_ids(index, '"clean water act" "by zone"')) == {"phrase", "both", "other"}
    assert search_ids(index, '"water clean"') == []
    assert search_ids(index, '"of the clean water"', 3) == ["both"]
    assert search_ids(index, '"by zone"', where=Equals("source", "A")) == []


@pytest.mark.parametrize(
    ("question", "phrases", "words"),
    [
        ('"clean water', (), ("clean", "water")),
        ('5" pipes and 6" pipes', (), ("5", "pipes", "6")),
        ('"" "!?" water', (), ("water",)),
        ('"Clean-Water" act', ("clean water",), ("act",)),
        ('clean"water"act', (), ("clean", "water", "act")),
        ('"to be" or not', ("to be",), ()),
        ('x " OR "y" NEAR(z)', ("y",), ("x", "near", "z")),
    ],
)
def test_quotation_marks_in_disorder_are_no_error(
    index: LexicalIndex, question: str, phrases: tuple[str, ...], words: tuple[str, ...]
) -> None:
    asked = parse_query(question)
    assert (asked.phrases, asked.words) == (phrases, words)
    index.upsert_documents([make_document("one", question)])
    assert search_ids(index, question) == ["one"]


def test_a_question_has_at_most_64_words_those_of_phrases_included() -> None:
    many = " ".join(f"w{number}" for number in range(50))
    asked = parse_query(f'"{many}" "{many}" {many} other')
    assert [len(phrase.split()) for phrase in asked.phrases] == [50, 14]
    assert asked.words == ()
    assert len(parse_query(f'"{many}" alone {many}').words) == 14


def test_an_accent_may_come_as_a_sign_of_its_own(index: LexicalIndex) -> None:
    apart = "re\u0301sume\u0301s"
    index.upsert_documents([make_document("whole", "résumés"), make_document("apart", apart)])
    assert search_ids(index, apart) == search_ids(index, "résumés") == ["apart", "whole"]


@requirement("engine:lexical:safe")
def test_a_word_is_found_though_a_symbol_newer_than_sqlite_clings_to_it(
    index: LexicalIndex,
) -> None:
    text = "parking\N{MANUAL WHEELCHAIR} – “level access\uf0b7”"
    index.upsert_documents([make_document("one", text)])

    assert search_ids(index, "parking", 3) == search_ids(index, "access", 3) == ["one"]


class _Brute:
    """FTS5 asked without a plan: an OR of all the words over all documents."""

    def __init__(self, documents: Sequence[LexicalDocument]) -> None:
        self.documents = dict(enumerate(documents, 1))
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE VIRTUAL TABLE t USING fts5(a, b, tokenize='porter unicode61')")
        for number, one in self.documents.items():
            self.db.execute(
                "INSERT INTO t(rowid, a, b) VALUES (?, ?, ?)",
                (number, *one.texts_by_column.values()),
            )

    def search(self, question: str, where: Filter | None) -> dict[str, float]:
        match = " OR ".join(f'"{word}"' for word in extract_query_words(question))
        rows = self.db.execute("SELECT rowid, -bm25(t, 10, 1) FROM t WHERE t MATCH ?", (match,))
        return {
            self.documents[row].id: score
            for row, score in rows
            if passes(self.documents[row].metadata, where)
        }


# Without two forms of one word: FTS5 would count its stem twice, a question of ours once.
_QUESTIONS = st.lists(st.sampled_from(sorted({*_WORDS} - {"cycling"})), min_size=1, max_size=5)
_DOCUMENTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(_WORDS), max_size=3).map(" ".join),
        st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join),
        st.fixed_dictionaries(
            {},
            optional={
                "source": st.sampled_from(["A", "B", "1"]),
                "open": st.booleans(),
                "start": st.integers(20200101, 20200110),
                "end": st.one_of(st.integers(20200101, 20200110), st.just(99991231)),
            },
        ),
    ),
    max_size=25,
)


@requirement("engine:lexical:exact", "engine:lexical:filters")
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None
)
@given(_DOCUMENTS, _QUESTIONS, FILTERS)
def test_within_the_budget_the_ranking_is_that_of_fts5_over_what_passes(
    tmp_path: Path, made: list[Any], words: list[str], where: Filter | None
) -> None:
    documents = [
        make_document(f"{number:02}", body, title, **metadata)
        for number, (title, body, metadata) in enumerate(made)
    ]
    index = LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS)
    index.replace_documents(documents, 1)
    wanted = _Brute(documents).search(" ".join(words), where)

    hits = index.search(" ".join(words), 100, where)

    assert {hit.id: pytest.approx(hit.score) for hit in hits} == wanted
    assert [hit.id for hit in hits] == sorted(wanted, key=lambda id: (-round(wanted[id], 9), id))
    index.close()


@requirement("engine:lexical:budget")
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@example([("", "", {}), ("", "parking", {})], ["parking"], None)
@given(_DOCUMENTS, _QUESTIONS, FILTERS)
def test_beyond_the_budget_scores_are_still_those_of_all_the_words(
    tmp_path: Path, made: list[Any], words: list[str], where: Filter | None
) -> None:
    documents = [
        make_document(f"{number:02}", body, title, **metadata)
        for number, (title, body, metadata) in enumerate(made)
    ]
    index = LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS, max_postings=0)
    index.replace_documents(documents, 1)
    wanted = _Brute(documents).search(" ".join(words), where)

    hits = index.search(" ".join(words), 100, where)

    # So few documents are all candidates, so nothing may be missing either.
    assert {hit.id: pytest.approx(hit.score) for hit in hits} == wanted
    index.close()


@requirement("engine:lexical:writes")
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None
)
@given(_DOCUMENTS, _DOCUMENTS, st.lists(st.integers(0, 30)))
def test_after_any_writes_the_index_is_as_if_it_had_been_filled_anew(
    tmp_path: Path, first: list[Any], second: list[Any], gone: list[int]
) -> None:
    index = LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS)
    index.replace_documents([], 0)
    held: dict[str, LexicalDocument] = {}
    for made in (first, second):
        batch = [
            make_document(str(number), body, title, **metadata)
            for number, (title, body, metadata) in enumerate(made)
        ]
        index.upsert_documents(batch, 1)
        held.update({one.id: one for one in batch})
    index.delete_documents([str(number) for number in gone], 2)
    index.update_metadata(["0", "29"], [{"source": "B"}] * 2, 3)
    held = {id: one for id, one in held.items() if int(id) not in gone}
    if zero := held.get("0"):
        held["0"] = LexicalDocument("0", zero.texts_by_column, {**zero.metadata, "source": "B"})
    anew = LexicalIndex(tmp_path / "anew.sqlite", COLUMNS, FIELDS)
    anew.replace_documents(held.values(), 3)

    assert _read_state(index) == _read_state(anew)
    assert index.generation == anew.generation == 3
    where = Equals("source", "B")
    question = " ".join(_WORDS)
    assert search_ids(index, question, 99, where) == search_ids(anew, question, 99, where)
    index.close()
    anew.close()


@requirement("engine:lexical:writes")
def test_what_an_index_remembers_of_its_words_is_forgotten_with_every_write(
    tmp_path: Path,
) -> None:
    index = LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS)
    other = LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS)
    for generation, ids in enumerate(([], ["1"], ["1", "2"], ["2"]), 1):
        assert search_ids(index, "flood") == search_ids(other, "flood")
        held = [make_document(id, "a flood") for id in ids]
        index.replace_documents(held, generation)
        for one in (index, other):
            assert one.read_statistics().read_document_frequencies(["flood", "risk"]) == {
                "flood": len(ids),
                "risk": 0,
            }
            assert search_ids(one, "flood") == ids
    # As many words as before, and no number of a generation: the writer forgets all the same.
    index.upsert_documents([make_document("2", "a risk")])
    assert search_ids(index, "flood") == []
    assert index.read_statistics().read_document_frequencies(["flood", "risk"]) == {
        "flood": 0,
        "risk": 1,
    }
    index.close()
    other.close()


def _read_state(index: LexicalIndex) -> Any:
    terms = "SELECT term, documents FROM terms WHERE documents > 0 ORDER BY 1"
    facts = "SELECT generation, documents, tokens FROM facts"
    with index._connections.connection() as db:
        return [db.execute(query).fetchall() for query in (terms, facts)]


@requirement("engine:lexical:bad-input")
def test_bad_questions_are_refused_or_answered_with_nothing(index: LexicalIndex) -> None:
    assert search_ids(index, "anything") == []
    index.upsert_documents([make_document("one", "cycle parking")])

    assert search_ids(index, "") == search_ids(index, "?!") == search_ids(index, "zzz") == []
    assert search_ids(index, "cycle", 0) == []
    assert search_ids(index, "cycle", 10**6) == ["one"]
    assert search_ids(index, "cycle", 5, In("source", ())) == []
    with pytest.raises(ValueError, match="-1"):
        index.search("cycle", -1)
    with pytest.raises(ValueError, match="'colour' is not a filter field"):
        index.search("cycle", 5, Equals("colour", "red"))


@requirement("engine:lexical:deadline")
def test_a_search_that_takes_too_long_is_told_and_the_next_one_works(tmp_path: Path) -> None:
    slow = LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS, max_seconds=0)
    slow.upsert_documents(
        [make_document(str(number), "cycle parking", source="A") for number in range(3000)]
    )

    with pytest.raises(SearchTimeout, match="longer"):
        slow.search("cycle parking", 5, Equals("source", "A"))

    patient = LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS)
    assert len(patient.search("cycle", 5, Equals("source", "A"))) == 5


@requirement("engine:lexical:file")
@pytest.mark.parametrize("damage", [b"", b"not a database at all", None])
def test_a_damaged_file_or_one_made_for_other_columns_is_made_anew(
    tmp_path: Path, damage: bytes | None
) -> None:
    path = tmp_path / "words.sqlite"
    other = LexicalIndex(path, {"text": 1.0}, FilterFields())
    other.replace_documents([LexicalDocument("old", {"text": "cycle"}, {})], 7)
    other.close()
    if damage is not None:
        path.write_bytes(damage)

    index = LexicalIndex(path, COLUMNS, FIELDS)

    assert index.generation is None
    assert len(index) == 0
    index.upsert_documents([make_document("new", "cycle")], 1)
    assert search_ids(index, "cycle") == ["new"]


@requirement("engine:lexical:file")
def test_what_was_written_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    first = LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS)
    first.upsert_documents([make_document("kept", "cycle parking")], 4)
    first.close()

    again = LexicalIndex(tmp_path / "words.sqlite", COLUMNS, FIELDS)

    assert again.generation == 4
    assert search_ids(again, "parking") == ["kept"]


@requirement("engine:lexical:writes")
def test_a_write_that_fails_changes_nothing(index: LexicalIndex) -> None:
    index.upsert_documents([make_document("kept", "cycle")], 1)
    bad: Metadata = {"source": ["A"]}  # type: ignore[dict-item]

    with pytest.raises(ValueError, match="cannot be filtered by"):
        index.upsert_documents(
            [make_document("kept", "flood"), LexicalDocument("bad", {"body": "flood"}, bad)], 2
        )

    assert index.generation == 1
    assert search_ids(index, "cycle flood") == ["kept"]


@requirement("engine:lexical:concurrent")
def test_threads_search_while_one_writes(index: LexicalIndex) -> None:
    index.upsert_documents(
        [make_document(str(number), "cycle parking", source="A") for number in range(50)]
    )
    stop, wrong = threading.Event(), list[Any]()

    def read() -> None:
        while not stop.is_set():
            try:
                hits = index.search("cycle", 100, And((Equals("source", "A"),)))
            except Exception as error:
                wrong.append(error)
                return
            if len(hits) != 50:
                wrong.append(len(hits))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        index.upsert_documents(
            [make_document(str(number), "cycle racks", source="A") for number in range(50)]
        )
        index.update_metadata(["1"], [{"start": 20200101}])
    stop.set()
    for reader in readers:
        reader.join()

    assert wrong == []
    assert len(search_ids(index, "racks", 60, Range("start", low=1))) == 1


def test_separators_are_the_symbols_newer_than_the_unicode_of_sqlite() -> None:
    separators = set(make_fts5_tokenizer_option().partition("'")[2].rstrip("'"))

    assert separators >= set("🚲₿\uf0b7")
    assert not separators & set("€Ꞗ")  # SQLite knows the one, and the other is a new letter
    assert {sign for sign in separators if category(sign) != "Co"} == {
        sign
        for sign in map(chr, range(0x80, 0xE01F0))
        if ucd_3_2_0.category(sign) == "Cn"
        and category(sign) != "Cn"
        and not re.match(r"[\w\s]", sign)
    }


def test_sums_in_another_order_are_equal_scores() -> None:
    hits = [LexicalHit("b", 0.1 + 0.2), LexicalHit("a", 0.3), LexicalHit("c", 0.31)]
    assert hits[0].score > hits[1].score
    assert [hit.id for hit in sort_hits(hits)] == ["c", "a", "b"]
