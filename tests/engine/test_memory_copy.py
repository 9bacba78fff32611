"""The words that a process keeps in memory rank as the database does, whoever writes meanwhile."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from readingroom.core.filters import Equals, Filter, FilterFields
from readingroom.engine import vectors
from readingroom.engine.shared import counts, memory_copy
from readingroom.engine.shared.index import SharedIndex
from readingroom.storage.chunks import Chunks
from readingroom.storage.postgres.chunks import PostgresChunkStore
from readingroom.storage.postgres.database import PostgresDatabase
from readingroom.storage.postgres.encoding import decode_words
from tests.support.model import WordEmbedder
from tests.support.postgres import PostgresServer, make_database

FIELDS = FilterFields(exact_match_fields=("source",))
EMBEDDER: Any = WordEmbedder()
WORDS = ("cycle", "parking", "homes", "trees", "bats'", "naïve", "2024", "width", "the")
FILTERS: tuple[Filter | None, ...] = (None, Equals("source", "A"), Equals("source", "B"))


@pytest.fixture(autouse=True)
def fresh_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """How common words are is read for every search, and not believed for a second."""
    monkeypatch.setattr(counts, "_COUNTS_CACHE_SECONDS", -1.0)
    monkeypatch.setattr(counts, "_PASSING_COUNT_CACHE_SECONDS", -1.0)


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with make_database(postgres) as url:
        yield url


@contextmanager
def open_index(url: str) -> Iterator[SharedIndex]:
    """An index as another process has it: with connections and a copy of its own."""
    database = PostgresDatabase(url)
    try:
        collection = PostgresChunkStore(database).open_collection("policy_docs", FIELDS)
        index = SharedIndex(collection, FIELDS, EMBEDDER)
        yield index
        index.close()
    finally:
        database.close()


def fill_copy(index: SharedIndex) -> None:
    """Let an index take its copy, as a search does whose filter leaves many chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "MAX_CHUNKS_COMPARED_IN_SQL", 0)
        index.get_vector_index().search(EMBEDDER.embed("cycle"), 1)


def put_texts(index: SharedIndex, texts_by_id: dict[str, str], source: str = "A") -> None:
    vectors = np.array([EMBEDDER.embed(text) for text in texts_by_id.values()])
    metadatas: list[Any] = [{"source": source}] * len(texts_by_id)
    index.put_chunks(Chunks(list(texts_by_id), list(texts_by_id.values()), metadatas, vectors))


def rank_words(index: SharedIndex, query: str, where: Filter | None) -> dict[str, float]:
    return {hit.id: hit.score for hit in index.search_words(query, 100, where)}


def make_text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 12)))


@pytest.mark.parametrize(
    "small_limit",
    [
        None,
        # Rows are numbered anew after four deleted ones; all words are read anew after any write.
        (vectors, "_MIN_ROWS_TO_REMOVE", 4),
        (memory_copy, "_MAX_CHUNKS_UPDATED_AT_ONCE", 0),
        (memory_copy, "_MAX_COPIED_STEMS", 4),
    ],
    ids=["appended", "renumbered", "read anew", "few stems"],
)
def test_words_in_memory_rank_as_in_the_database(
    url: str, small_limit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small_limit is not None:
        monkeypatch.setattr(*small_limit)
    chance = random.Random(25)
    with open_index(url) as writer, open_index(url) as reader:
        put_texts(writer, {f"chunk {number}": make_text(chance) for number in range(12)})
        fill_copy(reader)
        for _ in range(40):
            chosen_ids = [f"chunk {chance.randrange(20)}" for _ in range(2)]
            match chance.choice(("put", "put", "delete", "move")):
                case "put":
                    put_texts(writer, {id: make_text(chance) for id in chosen_ids}, "A")
                case "delete":
                    writer.delete_chunks(chosen_ids)
                case "move":
                    writer.update_metadata(chosen_ids, [{"source": "B"}] * len(chosen_ids))
            query, where = " ".join(chance.sample(WORDS, 3)), chance.choice(FILTERS)
            assert rank_words(reader, query, where) == pytest.approx(
                rank_words(writer, query, where), abs=1e-9
            )
        assert reader._memory_copy.is_usable and not writer._memory_copy.is_usable


def test_stems_that_are_read_while_others_write_miss_nothing(url: str) -> None:
    chance = random.Random(7)
    texts = [f"{make_text(chance)} rare{number}" for number in range(60)]
    with open_index(url) as writer, open_index(url) as reader:
        put_texts(writer, {"chunk": "cycle"})
        fill_copy(reader)

        def write_all() -> None:
            for number, text in enumerate(texts):
                put_texts(writer, {f"chunk {number}": text})

        writing = threading.Thread(target=write_all)
        writing.start()
        number = 0
        while writing.is_alive():
            number += 1
            rank_words(reader, f"{WORDS[number % len(WORDS)]} rare{number % 60}", None)
        writing.join()
        for word in (*WORDS, *(f"rare{number}" for number in range(60))):
            assert rank_words(reader, word, None) == pytest.approx(
                rank_words(writer, word, None), abs=1e-9
            ), word


def test_a_transaction_that_is_rolled_back_leaves_nothing_in_a_copy(url: str) -> None:
    with open_index(url) as writer, open_index(url) as reader:
        put_texts(writer, {"chunk": "cycle"})
        for index in (writer, reader):
            fill_copy(index)
            assert rank_words(index, "cycle trees", None).keys() == {"chunk"}
        with pytest.raises(KeyError), writer.collection.database.transaction():
            put_texts(writer, {"other": "cycle trees"})
            assert rank_words(writer, "cycle", None).keys() == {"chunk", "other"}
            raise KeyError
        for index in (writer, reader):
            assert rank_words(index, "cycle trees", None).keys() == {"chunk"}
        put_texts(writer, {"other": "cycle trees"})
        for index in (writer, reader):
            assert rank_words(index, "trees", None).keys() == {"other"}


def test_a_copy_of_an_empty_collection_takes_what_comes(url: str) -> None:
    with open_index(url) as writer, open_index(url) as reader:
        reader._memory_copy.open_vectors()
        put_texts(writer, {"chunk": "cycle trees"})
        assert rank_words(reader, "trees", None).keys() == {"chunk"}
        assert reader.get_vector_index().get_vectors(["chunk"]).keys() == {"chunk"}


def test_a_copy_that_is_too_far_behind_is_not_served_while_it_is_read_anew(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_index(url) as writer, open_index(url) as reader:
        put_texts(writer, {"chunk": "cycle"})
        fill_copy(reader)
        # Nobody else wakes it up meanwhile, and nobody remembers what was written.
        reader.collection.database.notices.close()
        put_texts(writer, {"other": "trees"})
        with writer.collection.lend_search_connection() as connection:
            connection.execute("DELETE FROM chunk_changes")
        copy, read_vectors = reader._memory_copy, reader._memory_copy._read_vectors
        is_taken_for_new = []

        def read_slowly(stop_event: Any) -> Any:
            is_taken_for_new.append(copy._copied_generation == reader.collection.generation)
            return read_vectors(stop_event)

        monkeypatch.setattr(copy, "_read_vectors", read_slowly)
        assert rank_words(reader, "trees", None).keys() == {"other"}
        assert is_taken_for_new == [False]


def test_stems_and_their_counts_are_read_from_what_the_database_sends(url: str) -> None:
    with open_index(url) as index:
        put_texts(index, {"chunk": "bats' bat naïve " + "the " * 300})
        ((chunk_id, _, encoded_words, token_count),) = index._memory_copy._read_words(["chunk"])
    assert (chunk_id, token_count) == ("chunk", 303)
    # PostgreSQL keeps 255 positions of a word.
    assert dict(decode_words(encoded_words)) == {"bat": 2, "naiv": 1, "the": 255}
