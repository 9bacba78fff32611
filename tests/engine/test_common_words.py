"""Common words that are read before anybody asks: the same answers, whatever happens meanwhile."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from readingroom.engine import vectors
from readingroom.engine.shared import common_words, counts, memory_copy
from readingroom.engine.shared.common_words import BackgroundReader
from readingroom.engine.shared.index import SharedIndex
from readingroom.engine.shared.memory_copy import MemoryCopy
from readingroom.engine.stems import get_shared_stemmer
from readingroom.storage.errors import StoreUnusable
from readingroom.storage.postgres.encoding import StemFinder, decode_words
from tests.engine.test_memory_copy import (
    WORDS,
    fill_copy,
    make_text,
    open_index,
    put_texts,
    rank_words,
)
from tests.support.postgres import PostgresServer, make_database


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """How common words are is read for every search, and what was dropped is read at once."""
    monkeypatch.setattr(counts, "_COUNTS_CACHE_SECONDS", -1.0)
    monkeypatch.setattr(counts, "_PASSING_COUNT_CACHE_SECONDS", -1.0)
    monkeypatch.setattr(common_words, "_QUIET_SECONDS_BEFORE_READING", 0.0)


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with make_database(postgres) as url:
        yield url


class Turns(threading.Event):
    """An event that tells nobody to stop, and does something whenever others have their turn."""

    def __init__(self, take_turn: Callable[[], object]) -> None:
        super().__init__()
        self.take_turn = take_turn
        self.count = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.count += 1
        self.take_turn()
        return False


def is_ready(copy: MemoryCopy) -> bool:
    words = copy._copied_words
    return words is not None and words.common_words is not None and words.common_words.is_complete


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def refuse(*_: Any) -> Any:
    raise AssertionError("words were read that had been read in advance")


def assert_ranks_alike(reader: SharedIndex, writer: SharedIndex) -> None:
    assert reader._memory_copy.is_usable and not writer._memory_copy.is_usable
    for query in (*WORDS, "cycle parking the", "naïve trees 2024"):
        expected = rank_words(writer, query, None)
        assert rank_words(reader, query, None) == pytest.approx(expected, abs=1e-9), query


@pytest.mark.parametrize(
    "small_limit",
    [
        None,
        # Rows are numbered anew after four deleted ones; all words are read anew after any write.
        (vectors, "_MIN_ROWS_TO_REMOVE", 4),
        (memory_copy, "_MAX_CHUNKS_UPDATED_AT_ONCE", 0),
        (common_words, "_MAX_WAITING_POSTINGS", 10),
    ],
    ids=["appended", "renumbered", "read anew", "handed out often"],
)
@pytest.mark.parametrize("seed", range(6))
def test_words_read_in_advance_have_what_was_written_between_turns(
    url: str, small_limit: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_copy, "_CHUNKS_PER_TURN", 3)
    monkeypatch.setattr(memory_copy, "_STEMS_PER_TURN", 2)
    if small_limit is not None:
        monkeypatch.setattr(*small_limit)
    chance = random.Random(seed)
    with open_index(url) as writer, open_index(url) as reader:
        put_texts(writer, {f"chunk {number}": make_text(chance) for number in range(20)})
        fill_copy(reader)
        copy = reader._memory_copy

        def write_or_search() -> None:
            if turns.count > 12:
                return
            chosen_ids = [f"chunk {chance.randrange(25)}" for _ in range(2)]
            match chance.choice(("put", "put", "delete", "move", "search", "follow")):
                case "put":
                    put_texts(writer, {id: make_text(chance) for id in chosen_ids})
                case "delete":
                    writer.delete_chunks(chosen_ids)
                case "move":
                    writer.update_metadata(chosen_ids, [{"source": "B"}] * len(chosen_ids))
                case "search":
                    query = chance.choice(WORDS)
                    expected = rank_words(writer, query, None)
                    assert rank_words(reader, query, None) == pytest.approx(expected, abs=1e-9)
                case "follow":
                    copy.apply_new_changes()

        turns = Turns(write_or_search)
        while not is_ready(copy) or turns.count <= 12:
            copy._read_common_words(turns)
            turns.count += 1
        assert copy._copied_words is not None
        for stem in get_shared_stemmer().stem_all_words(" ".join(WORDS)):
            postings = copy._copied_words.postings_by_stem.get(stem)
            assert postings is not None
            rows = postings.read_rows_before(1_000_000)["row"].tolist()
            assert rows == sorted(set(rows)), f"{stem} is counted twice in a row"
        copy.open_vectors()
        if small_limit is None:
            monkeypatch.setattr(copy, "_read_postings", refuse)
        assert_ranks_alike(reader, writer)


def test_a_process_that_is_warmed_up_asks_for_no_common_words(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MAX_CHUNKS_COMPARED_IN_SQL", 0)
    chance = random.Random(3)
    with open_index(url) as writer, open_index(url) as reader:
        put_texts(writer, {f"chunk {number}": make_text(chance) for number in range(30)})
        copy = reader._memory_copy
        reader._keep_copy_ready()
        wait_until(lambda: is_ready(copy))
        with monkeypatch.context() as patch:
            patch.setattr(copy, "_read_postings", refuse)
            assert_ranks_alike(reader, writer)
        # A large change drops the words, and they are read again.
        monkeypatch.setattr(memory_copy, "_MAX_CHUNKS_UPDATED_AT_ONCE", 0)
        first_words = copy._copied_words
        put_texts(writer, {f"chunk {number}": make_text(chance) for number in range(10, 40)})
        copy.apply_new_changes()
        assert copy._copied_words is not first_words
        wait_until(lambda: is_ready(copy))
        monkeypatch.setattr(copy, "_read_postings", refuse)
        assert_ranks_alike(reader, writer)


def test_few_chunks_are_not_copied_before_a_search_has_read_them(url: str) -> None:
    with open_index(url) as index:
        (keep_ready,) = index.list_warm_up_steps()
        keep_ready()
        put_texts(index, {"chunk": "cycle trees"})
        assert index._memory_copy.vectors is None
        assert rank_words(index, "trees", None).keys() == {"chunk"}
        assert index._memory_copy.vectors is None
        fill_copy(index)
        wait_until(lambda: is_ready(index._memory_copy))


@pytest.mark.parametrize("slow_step", ["_read_some_common_words", "_read_vector_pages"])
def test_reading_in_advance_ends_with_the_index(
    url: str, slow_step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_reading = threading.Event()

    def read_on(*_: Any) -> Any:
        is_reading.set()
        return ((["chunk"], np.ones((1, 2), np.float32), [{}]) for _ in iter(int, 1))

    with open_index(url) as index:
        put_texts(index, {"chunk": "cycle"})
        copy = index._memory_copy
        monkeypatch.setattr(copy, slow_step, read_on)
        copy.keep_ready(with_vectors=True)
        reader = copy._common_words_reader
        assert reader is not None and is_reading.wait(60)
        index.close()
        assert not reader._thread.is_alive()
        assert copy.vectors is None


def test_a_failure_is_logged_and_searches_read_for_themselves(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise StoreUnusable("The chunk store failed: no room")

    chance = random.Random(5)
    with open_index(url) as writer, open_index(url) as reader:
        put_texts(writer, {f"chunk {number}": make_text(chance) for number in range(12)})
        fill_copy(reader)
        copy = reader._memory_copy
        monkeypatch.setattr(memory_copy.CommonWords, "add_chunks", fail)
        with caplog.at_level(logging.WARNING):
            copy.keep_ready(with_vectors=True)
            wait_until(lambda: bool(caplog.records))
        assert "no room" in caplog.text
        assert copy._copied_words is not None and copy._copied_words.common_words is None
        put_texts(writer, {"chunk 3": make_text(chance)})
        assert_ranks_alike(reader, writer)


def test_what_is_stopped_before_it_began_again_reads_nothing_more() -> None:
    read_count = 0
    has_read = threading.Event()

    def read(stop_event: threading.Event) -> None:
        nonlocal read_count
        read_count += 1
        has_read.set()

    reader = BackgroundReader(read)
    assert has_read.wait(60)
    reader.stop()
    reader.read_again()
    assert read_count == 1 and not reader._thread.is_alive()


def test_stems_are_found_as_they_are_decoded_one_by_one(url: str) -> None:
    chance = random.Random(11)
    letters = [*"abcdefghij", "é", "ß", "水", "1", "_", "-"]
    made_words = ["".join(chance.choices(letters, k=chance.randint(1, 24))) for _ in range(400)]
    texts = [" ".join(chance.choices(made_words, k=chance.randint(1, 400))) for _ in range(30)]
    # Positions that end with a zero, more than are kept, and a word without any.
    texts += ["the " * 700, "?", "trees " * 16_500 + "zebra", " ".join(made_words * 3)]
    with open_index(url) as index:
        put_texts(index, {f"chunk {number:02}": text for number, text in enumerate(texts)})
        encoded_words = [
            row[2]
            for row in sorted(
                index._memory_copy._read_words(
                    [f"chunk {number:02}" for number in range(len(texts))]
                )
            )
        ]
        chunk_counts = index.collection.list_common_stems(10_000)
    assert list(chunk_counts.values()) == sorted(chunk_counts.values())
    finder = StemFinder(chunk_counts)
    short_stems = {stem for stem in chunk_counts if len(stem.encode()) <= 16}
    assert set(finder.stems) == short_stems and len(short_stems) < len(chunk_counts)
    stem_places, text_places, occurrence_counts = finder.find_stems(encoded_words)
    found = zip(stem_places.tolist(), text_places.tolist(), occurrence_counts.tolist(), strict=True)
    assert sorted((text, finder.stems[stem], count) for stem, text, count in found) == sorted(
        (text, stem, count)
        for text, words in enumerate(encoded_words)
        for stem, count in decode_words(words)
        if stem in short_stems
    )
    with pytest.raises(ValueError, match="not as PostgreSQL sends them"):
        finder.find_stems([encoded_words[0], encoded_words[1][:-6]])
