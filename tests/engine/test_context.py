"""Passages are embedded under what they stand under, and older vectors are made anew."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from readingroom.engine.context import CONTEXT_FIELD_NAME, make_heading_context, prepend_context
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex
from readingroom.engine.shared.index import open_chunk_index
from readingroom.ingest.document import Chunk, Document, DocumentSection
from readingroom.ingest.embed import list_chunk_contexts
from readingroom.storage.chunks import ChunkCollection, Chunks, ChunkStore
from tests.storage.test_chunks import FIELDS
from tests.support.model import WordEmbedder

BARE_TEXTS = ["one space in twenty", "stands by the door"]


class LoadableEmbedder(WordEmbedder):
    """Has the method that a warm-up calls."""

    def load(self) -> None:
        pass


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[ChunkCollection]:
    store = ChunkStore(tmp_path / "chroma")
    yield store.open_collection("policy_docs")
    store.close()


def open_with_contexts(collection: ChunkCollection, tmp_path: Path) -> ChunkIndex:
    embedder = cast(Embedder, LoadableEmbedder())
    return open_chunk_index(
        collection,
        FIELDS,
        embedder,
        tmp_path / "words.db",
        lambda chunks: ["Parking"] * len(chunks),
    )


def put_bare(index: ChunkIndex) -> None:
    vectors = LoadableEmbedder().embed_batch(BARE_TEXTS)
    index.put_chunks(Chunks(["a", "b"], BARE_TEXTS, [{"source": "A"}, {"source": "A"}], vectors))


def run_steps(index: ChunkIndex) -> None:
    for step in index.list_warm_up_steps():
        step()


def test_a_context_names_title_and_headings_once_and_is_short() -> None:
    assert (
        make_heading_context(["Cycle  Design", "", "Parking", "Parking"]) == "Cycle Design. Parking"
    )
    assert len(make_heading_context(["long " * 100])) <= 160
    assert prepend_context("", "text") == "text"


def test_a_chunk_stands_under_the_headings_of_all_its_sections() -> None:
    sections = (
        DocumentSection("Chapter 11", ("Chapter 11",), "Cycle parking", 0, 10, 1),
        DocumentSection("Para 11.3", ("Chapter 11", "Para 11.3"), "", 10, 20, 1),
    )
    chunk = Chunk(0, 10, 20, (1,), "Para 11.3", ("Chapter 11", "Para 11.3"))
    document = cast(Document, SimpleNamespace(sections=sections, chunks=(chunk,)))
    assert list_chunk_contexts(document, "Cycle Design") == ["Cycle Design. Cycle parking"]


def test_vectors_of_an_older_release_are_made_anew_at_the_start(
    collection: ChunkCollection, tmp_path: Path
) -> None:
    index = open_with_contexts(collection, tmp_path)
    put_bare(index)
    run_steps(index)
    stored = collection.read_chunks(with_vectors=True)
    for text, metadata, vector in zip(stored.texts, stored.metadatas, stored.vectors, strict=True):
        assert metadata == {"source": "A", CONTEXT_FIELD_NAME: "Parking"}
        assert np.allclose(vector, LoadableEmbedder().embed(f"Parking\n{text}"), atol=1e-6)
    assert index.search("parking", 2, None, "semantic").hits[0].relevance_score > 0.3
    # Once is enough: nothing is embedded again at the next start.
    assert len(index.list_warm_up_steps()) == 4
    index.close()


def change_text(collection: ChunkCollection) -> None:
    vectors = LoadableEmbedder().embed_batch(["new"])
    collection.upsert_chunks(Chunks(["a"], ["new"], [{"source": "A"}], vectors))


@pytest.mark.parametrize(
    "change",
    [lambda collection: collection.delete_chunks(["a"]), change_text],
    ids=["deleted", "changed"],
)
def test_a_chunk_that_changes_meanwhile_is_left_alone(
    collection: ChunkCollection,
    tmp_path: Path,
    change: Callable[[ChunkCollection], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = open_with_contexts(collection, tmp_path)
    put_bare(index)
    embed_batch = LoadableEmbedder.embed_batch

    def change_and_embed(self: LoadableEmbedder, texts: Any, **options: Any) -> Any:
        change_once()
        return embed_batch(self, texts, **options)

    changes = iter([partial(change, collection)])

    def change_once() -> None:
        for run_change in changes:
            run_change()

    monkeypatch.setattr(LoadableEmbedder, "embed_batch", change_and_embed)
    steps = index.list_warm_up_steps()
    for step in steps:
        step()
    stored = dict(
        zip(collection.read_chunks().ids, collection.read_chunks().metadatas, strict=True)
    )
    assert CONTEXT_FIELD_NAME not in stored.get("a", {})
    assert CONTEXT_FIELD_NAME in stored["b"]
    index.close()
