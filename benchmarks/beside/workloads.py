"""Work on the code of either version, and the processor time it takes.

    PYTHONPATH=SRC python -P benchmarks/beside/workloads.py NAME ARGUMENT…

It prints one JSON object: the seconds of each row, or what was found. `PLACES` says where either
version has a thing; the rest of the code is the same for both.
"""

import hashlib
import importlib
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

Costs = dict[str, float]
Rankings = dict[str, dict[str, list[str]]]
"""The ids found for each question, by the way of searching."""


PLACES = {
    "split_into_spans": ("engine.chunking:split_into_spans", "engine.chunking:split"),
    "Embedder": ("engine.embedding.embedder:Embedder", "engine.embedding:Embedder"),
    "VectorIndex": ("engine.vectors:VectorIndex",),
    "LexicalIndex": ("engine.lexical:LexicalIndex",),
    "LexicalDocument": ("engine.lexical:LexicalDocument", "engine.lexical:Document"),
    "Fields": ("core.filters:FilterFields", "core.filters:Fields"),
    "ChunkStore": ("storage.chunks:ChunkStore",),
    "Chunks": ("storage.chunks:Chunks",),
    "EmbeddedIndex": ("engine.index:EmbeddedIndex", "engine.shelf:Shelf"),
    "read_file": ("ingest.read.reader:read_file", "ingest.reading:read"),
    "ReadOptions": ("ingest.document:ReadOptions", "ingest.document:Options"),
    "GovukPage": ("bases.guidance.pages.page:GovukPage", "bases.guidance.page:Page"),
    "ConfinedReader": ("ingest.read.sandbox:ConfinedReader", "ingest.sandbox:ConfinedReader"),
    "no_progress": ("core.progress:no_progress", "core.progress:unheard"),
}
"""Where the present tree has a thing, then where 0.1.0 had it, if that was elsewhere."""


def find(name: str) -> Any:
    """Return an object of the version that is on the path; raise ImportError if it is nowhere."""
    for place in PLACES[name]:
        module, _, attribute = place.partition(":")
        try:
            return getattr(importlib.import_module(f"readingroom.{module}"), attribute)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise ImportError(f"{name} is at none of {PLACES[name]}")


def pick_method(owner: Any, name: str, old_name: str) -> Any:
    """Return a method by its present name, else by the name it had in 0.1.0."""
    return getattr(owner, name, None) or getattr(owner, old_name)


def measure_engine(texts_path: str, models: str) -> Costs:
    """Chunks, vectors and words: cut, embedded, stored and searched."""
    costs: Costs = {}
    texts = json.loads(Path(texts_path).read_text("utf-8"))
    _measure_splitting(costs, texts)
    _measure_embedding(costs, texts, Path(models))
    _measure_vectors(costs)
    _measure_words(costs, texts)
    return costs


def _measure_splitting(costs: Costs, texts: list[str]) -> None:
    split = find("split_into_spans")
    text = "\n\n".join(texts[:1500])
    with add_cost(
        costs, "cutting 1,500 paragraphs into chunks, 10 times", work=lambda: split(text)
    ):
        for _ in range(10):
            split(text)


def _measure_embedding(costs: Costs, texts: list[str], models: Path) -> None:
    embedder_class = find("Embedder")
    long_texts = [text for text in texts if len(text) > 760]
    for precision in ("float32", "int8"):
        embedder = embedder_class(models, precision=precision)
        embedder.embed("loads the model")
        with add_cost(costs, f"embedding 16 chunks of 800 characters, {precision}"):
            embedder.embed_batch(long_texts[:16])
        questions = [text[:80] for text in texts[:40]]
        with add_cost(costs, f"embedding 40 questions, {precision}"):
            for question in questions:
                embedder.embed(question)


def _measure_vectors(costs: Costs) -> None:
    index_class = find("VectorIndex")
    filters = importlib.import_module("readingroom.core.filters")
    numbers = np.random.default_rng(1)
    rows = numbers.standard_normal((30_000, 384), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = [str(number) for number in range(len(rows))]
    metadatas = [{"group": f"G{number % 20}", "day": number % 365} for number in range(len(rows))]
    index = index_class(find("Fields")(("group",), ("day",)))
    with add_cost(costs, "30,000 vectors into the index"):
        for start in range(0, len(rows), 5_000):
            stop = start + 5_000
            pick_method(index, "upsert_rows", "upsert")(
                ids[start:stop], rows[start:stop], metadatas[start:stop]
            )
    narrow = filters.And((filters.Equals("group", "G7"), filters.Range("day", high=180)))
    for row, where, count in (("all", None, 60), ("2 % of", narrow, 600)):
        with add_cost(costs, f"{count} searches in {row} 30,000 vectors"):
            for question in rows[:count]:
                assert len(index.search(question, 10, where)) == 10


def _measure_words(costs: Costs, texts: list[str]) -> None:
    index_class = find("LexicalIndex")
    document = find("LexicalDocument")
    fields = find("Fields")()
    documents = [document(str(row), {"text": text}, {}) for row, text in enumerate(texts)]
    questions = [" ".join(text.split()[3:11]) for text in texts[:120]]
    with tempfile.TemporaryDirectory() as folder:
        index = index_class(Path(folder) / "words.sqlite", {"text": 1.0}, fields)
        with add_cost(costs, f"{len(texts):,} chunks into the index of words"):
            pick_method(index, "replace_documents", "fill")(documents, 1)
        with add_cost(costs, f"{len(questions)} searches by words, the 10 best"):
            for question in questions:
                assert index.search(question, 10)
        index.close()


def measure_store(texts_path: str, models: str) -> Costs:
    """The chunks of a base in ChromaDB with both indexes: written, read again, searched."""
    costs: Costs = {}
    store_class = find("ChunkStore")
    chunks_class = find("Chunks")
    filters = importlib.import_module("readingroom.core.filters")
    fields = find("Fields")(("source",), ("effective_from",))
    texts = json.loads(Path(texts_path).read_text("utf-8"))[:2000]
    vectors = np.random.default_rng(1).standard_normal((len(texts), 384), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        store = store_class(Path(folder) / "chroma")
        open_collection = getattr(store, "open_collection", None) or store.collection
        collection = open_collection("policy_docs")
        index = _open_index(collection, fields, Path(models), Path(folder) / "words.sqlite")
        with add_cost(costs, f"{len(texts):,} chunks into the store"):
            for start in range(0, len(texts), 500):
                numbers = range(start, start + 500)
                pick_method(index, "put_chunks", "put")(
                    chunks_class(
                        [f"chunk-{number:06}" for number in numbers],
                        [texts[number] for number in numbers],
                        [_describe_chunk(number) for number in numbers],
                        vectors[numbers.start : numbers.stop],
                    )
                )
            pick_method(index, "get_word_index", "words")()
        again = _open_index(collection, fields, Path(models), Path(folder) / "words.sqlite")
        with add_cost(costs, f"both indexes opened on {len(texts):,} stored chunks"):
            pick_method(again, "get_vector_index", "vectors")()
            pick_method(again, "get_word_index", "words")()
        where = filters.And(
            (filters.In("source", ("S01", "S02")), filters.Range("effective_from", high=20_200_601))
        )
        questions = [text[:60] for text in texts[:60]]
        other_questions = [text[:60] for text in texts[60:120]]
        _search_vectors(again, "loads the model", where)
        with add_cost(costs, f"{len(questions)} searches by meaning under a filter, with texts"):
            for question in questions:
                _search_vectors(again, question, where)
        with add_cost(costs, f"{len(other_questions)} hybrid searches under a filter"):
            for question in other_questions:
                _search_hybrid(again, question, where)
        store.close()
    return costs


def measure_searches(texts_path: str, models: str, chunk_count: str) -> Costs:
    """The time of one search in a base of so many chunks: the median of 60 questions."""
    texts = json.loads(Path(texts_path).read_text("utf-8"))
    count = int(chunk_count)
    vectors = np.random.default_rng(1).standard_normal((count, 384), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks_class, fields = find("Chunks"), find("Fields")(("source",), ("effective_from",))
    costs: Costs = {}
    with tempfile.TemporaryDirectory() as folder:
        store = find("ChunkStore")(Path(folder) / "chroma")
        collection = (getattr(store, "open_collection", None) or store.collection)("policy_docs")
        index = _open_index(collection, fields, Path(models), Path(folder) / "words.sqlite")
        for start in range(0, count, 5_000):
            numbers = range(start, min(start + 5_000, count))
            pick_method(index, "put_chunks", "put")(
                chunks_class(
                    [f"chunk-{number:06}" for number in numbers],
                    [f"{texts[number % len(texts)]} {number}" for number in numbers],
                    [_describe_chunk(number) for number in numbers],
                    vectors[numbers.start : numbers.stop],
                )
            )
        # As a server does before anybody asks; 0.1.0 had nothing to prepare that is not below.
        for prepare in index.list_warm_up_steps() if hasattr(index, "list_warm_up_steps") else ():
            prepare()
        questions = [text[:60] for text in texts[:65]]
        for row, search in (("by meaning", _search_vectors), ("by both", _search_hybrid)):
            seconds, cpu_seconds = [], []
            for question in questions:
                started, cpu_before = time.perf_counter(), time.process_time()
                search(index, f"{question} {row}", None)
                seconds.append(time.perf_counter() - started)
                cpu_seconds.append(time.process_time() - cpu_before)
            costs[f"a search {row}"] = sorted(seconds[5:])[30]
            costs[f"a search {row}, processor time"] = sorted(cpu_seconds[5:])[30]
        store.close()
    return costs


def _open_index(collection: Any, fields: Any, models: Path, words: Path) -> Any:
    embedder = find("Embedder")(models)
    index_class = find("EmbeddedIndex")
    if index_class.__name__ == "EmbeddedIndex":
        return index_class(collection, fields, embedder, words)
    lexical = find("LexicalIndex")
    return index_class(collection, fields, embedder, lexical(words, {"text": 1.0}, fields))


def _search_vectors(index: Any, question: str, where: Any) -> None:
    if hasattr(index, "near"):
        assert index.named([hit.id for hit in index.near(question, 10, where)]).texts
        return
    hits = index.search(question, 10, where, "semantic").hits
    assert pick_method(index, "fetch_chunks", "fetch")([hit.chunk_id for hit in hits]).texts


def _search_hybrid(index: Any, question: str, where: Any) -> None:
    mode = () if hasattr(index, "near") else ("hybrid",)
    assert index.search(question, 10, where, *mode)


def _describe_chunk(number: int) -> dict[str, Any]:
    return {
        "source": f"S{number % 20:02}",
        "effective_from": 20_180_101 + 20_000 * (number % 2),
        "section_ref": f"Para {number % 243}",
        "page_number": number % 90,
    }


def measure_reading(shared: str) -> Costs:
    """Files read: a policy with its sections, other PDFs, a scan, GOV.UK pages."""
    costs: Costs = {}
    data = Path(shared)
    read = find("read_file")
    options = find("ReadOptions")
    policy = (data / "policy" / "NPPF_Draft_December_2025.pdf").read_bytes()
    with add_cost(costs, "a policy of 127 pages read, with its sections"):
        document = read(policy, "policy.pdf", options(find_sections=True), ignore_progress)
    assert len(document.sections) > 100
    others = [
        (data / "documents" / name).read_bytes()
        for name in ("pypdf/GeoBase_NHNC1_Data_Model_UML_EN.pdf", "pikepdf/form_dd0293.pdf")
    ]
    with add_cost(costs, "two other PDFs read"):
        for content in others:
            read(content, "paper.pdf", options(), ignore_progress)
    # Several threads of tesseract wait for each other by spinning, which is noise.
    os.environ["OMP_THREAD_LIMIT"] = "1"
    scan = (data / "documents" / "ocrmypdf" / "typewriter.png").read_bytes()
    with add_cost(costs, "a scanned page read by OCR, with tesseract"):
        read(scan, "scan.png", options(), ignore_progress)
    contents = _read_examples(data)
    with add_cost(costs, f"{len(contents)} GOV.UK pages rendered as Markdown, 3 times"):
        for _ in range(3):
            assert all(find("GovukPage")(content).text is not None for content in contents)
    return costs


def _read_examples(data: Path) -> list[dict[str, Any]]:
    """Return the content items that GOV.UK publishes as examples."""
    paths = sorted((data / "guidance" / "examples").rglob("*.json"))
    contents = [json.loads(path.read_text("utf-8")) for path in paths]
    return [content for content in contents if isinstance(content, dict)]


def measure_sandbox(shared: str) -> Costs:
    """One page read in a confined process, and what that takes beside reading it here."""
    import anyio

    costs: Costs = {}
    sandbox_class = find("ConfinedReader")
    options = find("ReadOptions")
    progress = find("no_progress")
    path = Path(shared) / "documents" / "pypdf" / "crazyones.pdf"

    async def read_five_times() -> None:
        for _ in range(5):
            with path.open("rb", buffering=0) as file:
                await pick_method(sandbox_class(), "read_document", "read")(
                    file, path.name, options(), progress
                )

    with add_cost(costs, "a page read in a confined process, 5 times"):
        anyio.run(read_five_times)
    return costs


def rank_questions(test_path: str, vectors_path: str, models: str) -> Rankings:
    """Rank the texts of a test set for each question: by words, by meaning, by both ranks."""
    test = json.loads(Path(test_path).read_text("utf-8"))
    texts, questions = test["texts"], test["questions"]
    fields = find("Fields")()
    embedder, vector_index = find("Embedder")(Path(models)), find("VectorIndex")(fields)
    pick_method(vector_index, "upsert_rows", "upsert")(
        list(texts), np.load(vectors_path), [{}] * len(texts)
    )
    vectors = {id: embedder.embed(question) for id, question in questions.items()}
    document = find("LexicalDocument")
    with tempfile.TemporaryDirectory() as folder:
        word_index = find("LexicalIndex")(Path(folder) / "words.sqlite", {"text": 1.0}, fields)
        pick_method(word_index, "replace_documents", "fill")(
            (document(id, {"text": text}, {}) for id, text in texts.items()), 1
        )
        words = {
            id: [hit.id for hit in word_index.search(question, 100)]
            for id, question in questions.items()
        }
        word_index.close()
    meaning = {id: [hit.id for hit in vector_index.search(vectors[id], 100)] for id in questions}
    return {"words": words, "meaning": meaning}


def read_documents(shared: str) -> dict[str, str]:
    """Describe what is found in files: how much, and a hash of it all."""
    data = Path(shared)
    read, options = find("read_file"), find("ReadOptions")
    files = {
        "the draft NPPF": (data / "policy" / "NPPF_Draft_December_2025.pdf", True),
        "a PDF of 19 pages": (data / "documents/pypdf/GeoBase_NHNC1_Data_Model_UML_EN.pdf", False),
        "a scan": (data / "documents" / "ocrmypdf" / "typewriter.png", False),
    }
    found = {}
    for name, (path, has_sections) in files.items():
        document = read(
            path.read_bytes(), path.name, options(find_sections=has_sections), ignore_progress
        )
        sections = [(section.ref, *_get_offsets(section)) for section in document.sections]
        chunks = [_get_offsets(chunk) for chunk in document.chunks]
        found[f"{name}: text"] = _describe(document.text, f"{len(document.text):,} characters")
        found[f"{name}: sections"] = _describe(sections, f"{len(sections)} sections")
        found[f"{name}: chunks"] = _describe(chunks, f"{len(chunks)} chunks")
    pages = [find("GovukPage")(content).text for content in _read_examples(data)]
    found["GOV.UK pages as Markdown"] = _describe(pages, f"{sum(map(len, pages)):,} characters")
    return found


def _get_offsets(span: Any) -> tuple[int, int]:
    """Return where a section or a chunk begins and ends, whatever the version calls that."""
    if hasattr(span, "start_offset"):
        return span.start_offset, span.end_offset
    return span.start, span.end


def _describe(value: object, size: str) -> str:
    return f"{size}, {hashlib.sha256(repr(value).encode()).hexdigest()[:12]}"


def ignore_progress(*_: Any) -> None:
    """Take a report of progress and do nothing."""


@contextmanager
def add_cost(costs: Costs, row: str, work: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Add to `costs` what this process and its ended children spend in the block.

    `work` is done before, so that what happens only once is not counted.
    """
    work()
    before = _read_seconds()
    yield
    costs[row] = _read_seconds() - before


def _read_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


WORKLOADS: dict[str, Callable[..., Any]] = {
    "engine": measure_engine,
    "store": measure_store,
    "searches": measure_searches,
    "reading": measure_reading,
    "sandbox": measure_sandbox,
    "rankings": rank_questions,
    "documents": read_documents,
}


if __name__ == "__main__":
    print(json.dumps(WORKLOADS[sys.argv[1]](*sys.argv[2:])))
