"""Passages marked on their pages: how many are found, and whether anything else is marked."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine.corpus import SHARED
from benchmarks.table import Table
from readingroom.core.progress import no_progress_sync
from readingroom.ingest.document import Chunk, Document, PageWord, ReadOptions, Refusal, SkippedFile
from readingroom.ingest.page_pictures import PassageRectangle, find_passage_rectangles
from readingroom.ingest.read.reader import find_page_words, read_file

_MIN_PASSAGE_WORDS = 8
"""A heading alone is no passage that somebody quotes."""
_LOCATED_SHARE = 0.9
_STRAY_SHARE = 0.1
_SHARED_WORDS = 5
"""In a row: a page that has so many of a passage's words holds a part of it."""
_LETTERS = re.compile(r"[^\W_]+")
_NOTE = (
    "Every passage as the bases cut it, from {texts} shared PDFs with a text layer and {scans} "
    "that are read by OCR, at most {per_file} of a file, drawn evenly. On the page where a passage "
    "begins, the words it has there are counted by where its text lies in the document, without "
    "looking at the page. Located: nine tenths of them lie inside marks. Wrong: more than a tenth "
    "of the words inside the marks are not the passage's. Elsewhere: the same passage looked for "
    "on a page of another file that has no {shared} of its words in a row, where nothing may be "
    "marked. Letterheads stand in several files, and some of the scans are of the same page."
)


@dataclass
class _Count:
    passages: int = 0
    located: int = 0
    unmarked: int = 0
    wrong: int = 0
    elsewhere: int = 0
    elsewhere_marked: int = 0

    def describe(self, name: str, wanted_share: float) -> tuple[str, ...]:
        share = self.located / self.passages if self.passages else 0.0
        found = f"{self.located} of {self.passages} ({100 * share:.1f} %)"
        verdict = "met" if share >= wanted_share else "**missed**"
        wrong = "met" if self.wrong + self.elsewhere_marked == 0 else "**missed**"
        return (
            name,
            found,
            f"{verdict} (at least {100 * wanted_share:g} %)",
            str(self.wrong),
            f"{self.elsewhere_marked} of {self.elsewhere}",
            f"{wrong} (0)",
        )


@dataclass(frozen=True)
class _ReadFile:
    path: Path
    content: bytes
    document: Document

    def find_words(self, page: int) -> tuple[PageWord, ...]:
        kept = self.document.pages[page - 1].words
        return kept or find_page_words(self.content, self.path.name, page, _OPTIONS)


_OPTIONS = ReadOptions()


def measure(quick: bool) -> Table:
    """Return the shares of passages that are located, of text and of scans."""
    per_file = 3 if quick else 25
    texts = list(_read_files(_list_texts()[: 2 if quick else None], "text_layer"))
    scans = list(_read_files(_list_scans()[: 2 if quick else None], "ocr"))
    rows = []
    for name, files, wanted in (("text layer", texts, 0.95), ("OCR", scans, 0.9)):
        count = _Count()
        for number, file in enumerate(files):
            others = [*files[number + 1 :], *files[:number]]
            _count_marks(file, others, per_file, count)
        rows.append(count.describe(name, wanted))
    note = _NOTE.format(texts=len(texts), scans=len(scans), per_file=per_file, shared=_SHARED_WORDS)
    header = ("read by", "located", "wanted", "wrong marks", "marked elsewhere", "wanted")
    return Table("Passages marked on their pages", header, tuple(rows), note)


def _list_texts() -> list[Path]:
    plans = SHARED / "policy" / "plans"
    policies = [
        SHARED / "policy" / "NPPF_Draft_December_2025.pdf",
        plans / "Wharf_Road_SPD_2023.pdf",
        plans / "Core_Strategy_2007_2021.pdf",
        plans / "Inspectors_Report_Broxbourne.pdf",
    ]
    statements = sorted((SHARED / "federal" / "saps").rglob("*.pdf"))
    return policies + statements[::12]


def _list_scans() -> list[Path]:
    names = (
        *("cardinal", "linn", "multipage", "skew", "ccitt-endofline-true", "graph", "epson"),
        *("cmyk", "poster", "masks", "overlay"),
    )
    folder = SHARED / "documents"
    scans = [path for name in names for path in sorted(folder.rglob(f"{name}.pdf"))]
    return [*scans, folder / "ocrmypdf" / "typewriter.png"]


def _read_files(paths: Sequence[Path], method: str) -> Iterator[_ReadFile]:
    for path in paths:
        content = path.read_bytes()
        try:
            document = read_file(content, path.name, _OPTIONS, no_progress_sync)
        except Refusal:
            continue
        if not isinstance(document, SkippedFile) and document.method == method:
            print(f"{path.name}: {len(document.chunks)} passages", flush=True)
            yield _ReadFile(path, content, document)


def _count_marks(
    file: _ReadFile, others: Sequence[_ReadFile], per_file: int, count: _Count
) -> None:
    document = file.document
    passages = [
        (chunk, expected)
        for chunk in document.chunks
        if len(expected := _list_expected_words(document, chunk)) >= _MIN_PASSAGE_WORDS
    ]
    step = max(1, len(passages) // per_file)
    for number, (chunk, expected) in enumerate(passages[::step][:per_file]):
        text = document.get_chunk_text(chunk)
        words = file.find_words(chunk.pages[0])
        marked = _list_marked_words(words, find_passage_rectangles(words, text))
        count.passages += 1
        found = sum((Counter(marked) & Counter(expected)).values())
        count.located += found >= _LOCATED_SHARE * len(expected)
        stray = sum((Counter(marked) - Counter(_list_words(text))).values())
        if stray > _STRAY_SHARE * max(1, len(marked)):
            count.wrong += 1
            print(f"wrong: {file.path.name} p. {chunk.pages[0]}: {text[:80]!r}", flush=True)
        elif found < _LOCATED_SHARE * len(expected):
            print(
                f"{found} of {len(expected)}: {file.path.name} p. {chunk.pages[0]}: {text[:80]!r}",
                flush=True,
            )
        other_words = _find_foreign_page(text, others, number)
        if other_words is not None:
            count.elsewhere += 1
            count.elsewhere_marked += bool(find_passage_rectangles(other_words, text))


def _find_foreign_page(
    passage: str, others: Sequence[_ReadFile], number: int
) -> tuple[PageWord, ...] | None:
    """Return the words of a page of another file that holds no part of a passage."""
    for other in others:
        page_words = other.find_words(number % len(other.document.pages) + 1)
        sequences = _list_sequences([word.text for word in page_words])
        if page_words and not sequences & _list_sequences(passage.split()):
            return page_words
    return None


def _list_sequences(words: Sequence[str]) -> set[tuple[str, ...]]:
    folded = [letters for word in words for letters in _list_words(word)]
    return {tuple(folded[start : start + _SHARED_WORDS]) for start in range(len(folded))}


def _list_expected_words(document: Document, chunk: Chunk) -> list[str]:
    """Return the words of a passage that stand on its first page, by their place in the text."""
    page = document.pages[chunk.pages[0] - 1]
    return _list_words(document.text[chunk.start_offset : min(chunk.end_offset, page.end_offset)])


def _list_marked_words(words: Sequence[PageWord], marks: Sequence[PassageRectangle]) -> list[str]:
    return [
        folded
        for word in words
        if any(_is_inside(word, mark) for mark in marks)
        for folded in _list_words(word.text)
    ]


def _is_inside(word: PageWord, mark: PassageRectangle) -> bool:
    middle, height = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    return mark.left <= middle <= mark.right and mark.top <= height <= mark.bottom


def _list_words(text: str) -> list[str]:
    return _LETTERS.findall(text.casefold())
