"""The shared index beside the embedded one: the same commands, the same answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readingroom.core.filters import And, Equals, Filter, FilterFields, In
from readingroom.engine.errors import SearchTimeout
from readingroom.engine.index import EmbeddedIndex
from readingroom.engine.shared import counts, words
from readingroom.engine.shared.index import SharedIndex
from readingroom.engine.shared.terms import SqlAndValues, Term, build_occurrences_sql
from readingroom.engine.vectors import VectorIndex
from readingroom.storage.chunks import Chunks, ChunkStore
from readingroom.storage.postgres.chunks import PostgresChunkStore, PostgresCollection
from readingroom.storage.postgres.database import open_database
from tests.support.model import WordEmbedder
from tests.support.postgres import PostgresServer, make_database

FIELDS = FilterFields(exact_match_fields=("source", "revision_id"))
WORDS = ("cycle", "cycling", "parking", "the", "homes", "trees", "bats'", "naïve", "2024")
EMBEDDER: Any = WordEmbedder()

phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(
    lambda words: f'"{" ".join(words)}"'
)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
ids = st.sampled_from([f"chunk {number}" for number in range(8)])
sources = st.sampled_from(["A", "B"])
filters: st.SearchStrategy[Filter | None] = st.one_of(
    st.none(),
    sources.map(lambda source: Equals("source", source)),
    st.just(And((In("source", ("A", "B")), In("revision_id", ("one",))))),
)
commands = st.lists(
    st.one_of(
        st.tuples(st.just("put"), ids, texts, sources),
        st.tuples(st.just("delete"), ids),
        st.tuples(st.just("move"), ids, sources),
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def both(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[EmbeddedIndex, SharedIndex]]:
    folder: Path = tmp_path_factory.mktemp("index")
    store = ChunkStore(folder / "chroma")
    embedded = EmbeddedIndex(
        store.open_collection("policy_docs"), FIELDS, EMBEDDER, folder / "words.db"
    )
    with make_database(postgres) as url:
        collection = PostgresChunkStore(open_database(url)).open_collection("policy_docs", FIELDS)
        yield embedded, SharedIndex(collection, FIELDS, EMBEDDER)
        embedded.close()
        store.close()


@pytest.mark.parametrize("exact_rows", [8_000, 0])
@given(
    commands=commands,
    query=st.one_of(
        texts, st.lists(st.one_of(phrases, texts), min_size=1, max_size=3).map(" ".join)
    ),
    where=filters,
)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_same_commands_give_the_same_answers(
    both: tuple[EmbeddedIndex, SharedIndex],
    exact_rows: int,
    commands: list[tuple[str, ...]],
    query: str,
    where: Filter | None,
) -> None:
    embedded, shared = both
    with pytest.MonkeyPatch.context() as patch:
        # At 0 every search by meaning asks the copy of the vectors.
        patch.setattr(counts, "MAX_CHUNKS_COMPARED_IN_SQL", exact_rows)
        patch.setattr(counts, "_COUNTS_CACHE_SECONDS", -1.0)
        patch.setattr(counts, "_PASSING_COUNT_CACHE_SECONDS", -1.0)
        for index in both:
            index.delete_chunks(index.read_chunks().ids)
            for command in commands:
                apply(index, *command)
        vector = EMBEDDER.embed(query)
        near = [
            [
                (hit.id, round(hit.distance, 4))
                for hit in index.get_vector_index().search(vector, 20, where)
            ]
            if len(index.get_vector_index())
            else []
            for index in both
        ]
        assert sorted(near[0]) == sorted(near[1])
        word_scores = [
            {hit.id: hit.score for hit in index.search_words(query, 20, where)} for index in both
        ]
        assert word_scores[0].keys() == word_scores[1].keys()
        for chunk_id, score in word_scores[0].items():
            assert word_scores[1][chunk_id] == pytest.approx(score, rel=1e-4, abs=1e-6)
        assert embedded.count_chunks() == shared.count_chunks()


def apply(index: EmbeddedIndex | SharedIndex, verb: str, chunk_id: str, *values: str) -> None:
    if verb == "put":
        text, source = values
        metadata = {"source": source, "revision_id": "one" if len(text) % 2 else "two"}
        index.put_chunks(Chunks([chunk_id], [text], [metadata], np.array([EMBEDDER.embed(text)])))
    elif verb == "delete":
        index.delete_chunks([chunk_id])
    else:
        index.update_metadata([chunk_id], [{"source": values[0]}])


def test_phrases_are_found_and_ranked_as_they_stand(
    both: tuple[EmbeddedIndex, SharedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    # How many chunks there are is else believed for a second.
    monkeypatch.setattr(counts, "_COUNTS_CACHE_SECONDS", -1.0)
    for index in both:
        index.delete_chunks(index.read_chunks().ids)
        texts = ("the duty to cooperate", "cooperate on the duty", "to cooperate, to cooperate")
        for number, text in enumerate((*texts, *(f"trees {number}" for number in range(9)))):
            apply(index, "put", f"chunk {number}", text, "AB"[number % 2])
    for query in (
        *('"duty to cooperate"', '"to cooperate" duty', "the", '"no such words"'),
        *('"trees"', '"duty" the cooperate', '"trees" "duty"'),
        *('"to cooperate" "the duty"', '"to cooperate to" trees', '"trees" "duty to"'),
    ):
        for where in (None, Equals("source", "A")):
            hits = [index.search_words(query, 10, where) for index in both]
            assert len(hits[0]) == len(hits[1]), query
            found = [{hit.id: hit.score for hit in each} for each in hits]
            assert found[1] == pytest.approx(found[0], rel=1e-4), query


def fill_with_common_phrases(index: SharedIndex) -> None:
    """Put two chunks of source A, and 20 of B, that have the same phrase."""
    index.delete_chunks(index.read_chunks().ids)
    for number in range(22):
        apply(index, "put", f"chunk {number}", f"of the trees {number}", "AB"[number > 1])


def test_words_and_phrases_are_counted_only_in_what_passes_the_filter(
    both: tuple[EmbeddedIndex, SharedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, index = both
    monkeypatch.setattr(counts, "_COUNTS_CACHE_SECONDS", -1.0)
    fill_with_common_phrases(index)
    with index.collection.lend_search_connection() as connection:
        connection.execute("CREATE SEQUENCE counted")

    def build_and_number(field_sql: str, term_stems: Term) -> SqlAndValues:
        count_sql, values = build_occurrences_sql(field_sql, term_stems)
        return f"({count_sql} + 0 * nextval('counted'))", values

    monkeypatch.setattr(words, "build_occurrences_sql", build_and_number)
    found = index.search_words('"of the" trees', 10, Equals("source", "A"))
    assert {hit.id for hit in found} == {"chunk 0", "chunk 1"}
    with index.collection.lend_search_connection() as connection:
        assert connection.execute("SELECT last_value FROM counted").fetchone() == (4,)


def test_a_search_for_a_phrase_that_takes_too_long_is_told_and_the_next_one_works(
    both: tuple[EmbeddedIndex, SharedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, index = both
    monkeypatch.setattr(counts, "_COUNTS_CACHE_SECONDS", -1.0)
    fill_with_common_phrases(index)

    def build_slowly(field_sql: str, term_stems: Term) -> SqlAndValues:
        return "(SELECT 1 FROM pg_sleep(600))", []

    with monkeypatch.context() as patch:
        patch.setattr(words, "build_occurrences_sql", build_slowly)
        patch.setattr(words, "_MAX_SEARCH_SECONDS", 0.05)
        with pytest.raises(SearchTimeout, match=r"longer than 0\.05 s"):
            index.search_words('"of the" trees', 10)
    database = index.collection.database
    with database.transaction() as shared_transaction:
        assert len(index.search_words('"of the" trees', 30)) == 22
        limit = shared_transaction.connection.execute("SHOW statement_timeout").fetchone()
    assert limit == ("0",)
    assert len(index.search_words('"of the" trees', 30)) == 22
    with index.collection.lend_search_connection() as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_chunks_of_an_older_release_are_embedded_under_their_headings(
    postgres: PostgresServer,
) -> None:
    class LoadedEmbedder(WordEmbedder):
        def load(self) -> None:
            """There is nothing to load."""

    embedder: Any = LoadedEmbedder()
    ids = [f"chunk {number}" for number in range(3)]
    metadatas: list[Any] = [{"source": "A"}, {"source": "A", "embedded_under": ""}, {"source": "B"}]
    with make_database(postgres) as url:
        collection = PostgresChunkStore(open_database(url)).open_collection("policy_docs", FIELDS)
        index = SharedIndex(collection, FIELDS, embedder, lambda chunks: ["cycle"] * len(chunks))
        index.put_chunks(Chunks(ids, ["trees"] * 3, metadatas, EMBEDDER.embed_batch(["trees"] * 3)))
        index.get_vector_index().search(EMBEDDER.embed("cycle"), 3)
        with collection.database.hold_lock("embed anew policy_docs"):
            for step in index.list_warm_up_steps():  # another process is at it
                step()
            assert len(collection.get_chunks_without_field("embedded_under")) == 2
        for _ in range(2):
            for step in index.list_warm_up_steps():
                step()
        chunks = collection.read_chunks(with_vectors=True)
        assert chunks.ids == ids
        assert [one["embedded_under"] for one in chunks.metadatas] == ["cycle", "", "cycle"]
        expected = EMBEDDER.embed_batch(["cycle\ntrees", "trees", "cycle\ntrees"])
        np.testing.assert_allclose(chunks.vectors, expected, atol=1e-6)
        hits = index.get_vector_index().search(EMBEDDER.embed("cycle"), 3)
        assert {hit.id for hit in hits[:2]} == {"chunk 0", "chunk 2"}


def test_a_copy_that_another_thread_puts_in_place_meanwhile_is_the_one_that_is_asked(
    both: tuple[EmbeddedIndex, SharedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the thread does that hears of a write, just when a search compares generations."""
    _, shared = both
    shared.delete_chunks(shared.read_chunks().ids)
    copy = shared._memory_copy
    copy.open_vectors()  # an empty one, which is not added to but read anew
    apply(shared, "put", "chunk 1", "trees", "A")
    read_generation: Any = PostgresCollection.generation.fget

    def update_and_read(collection: PostgresCollection) -> int:
        monkeypatch.setattr(PostgresCollection, "generation", property(read_generation))
        copy.apply_new_changes()
        return int(read_generation(collection))

    copy.vectors = VectorIndex(FIELDS)  # whatever the notice of the write has brought by now
    copy._copied_generation = -1
    monkeypatch.setattr(PostgresCollection, "generation", property(update_and_read))
    assert len(copy.open_vectors()) == 1
