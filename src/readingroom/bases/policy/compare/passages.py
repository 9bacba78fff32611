"""Texts of policies: put together from chunks, compared word by word, searched for quotations."""

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from readingroom.bases.policy.chunks.references import fold_ref
from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.models import DiffPart
from readingroom.core.text import fold_dashes

_PLAIN_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_WHITE_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\S+\s*")
# PDFs print a footnote's number right after the word, so the text has `homes12`.
_FOOTNOTE_NUMBER = r"(?:(?<=[^\W\d_]{3})\d{1,3})?"
_SHOWN_WORDS_PER_END = 12  # of a long unchanged run, at either end


def list_references(chunks: Iterable[StoredChunk]) -> dict[str, str]:
    """Return folded reference → reference as the document writes it, in reading order."""
    references: dict[str, str] = {}
    for chunk in chunks:
        for ref in filter(None, (*chunk.section_path, chunk.section_ref)):
            references.setdefault(fold_ref(ref), ref)
    return references


def select_section(chunks: Iterable[StoredChunk], ref: str) -> list[StoredChunk]:
    """Return the chunks of a section and of the sections in it."""
    folded_ref = fold_ref(ref)
    return [
        chunk
        for chunk in chunks
        if folded_ref in map(fold_ref, (*chunk.section_path, chunk.section_ref))
    ]


def join_chunks(chunks: Sequence[StoredChunk]) -> str:
    """Return the text of chunks in order: overlaps stand once, gaps become blank lines."""
    return "".join(text for _, _, text in _list_own_texts(chunks))


def join_section(chunks: Sequence[StoredChunk]) -> str:
    """Return the text of a section; headings that only stand above it are left out."""
    return join_chunks([*_cut_headings_above(chunks)])


def _cut_headings_above(chunks: Sequence[StoredChunk]) -> Iterator[StoredChunk]:
    last_index: int | None = None
    for chunk in sorted(chunks, key=lambda chunk: chunk.chunk_index):
        # Inside a chapter, the headings above its paragraphs are part of it.
        if chunk.own_start > chunk.start and chunk.chunk_index - 1 != last_index:
            yield replace(chunk, text=chunk.own_text, start=chunk.own_start)
        else:
            yield chunk
        last_index = chunk.chunk_index


def find_title(section: Sequence[StoredChunk], ref: str) -> str:
    """Return the title of a section, which its own chunks know; empty where it has none."""
    return next((chunk.section_title for chunk in section if chunk.section_ref == ref), "")


def list_printed_pages(section: Sequence[StoredChunk], pages: Sequence[int]) -> list[str]:
    """Return the numbers printed on these pages; none where one of them is not known."""
    labels = {
        page: label
        for chunk in section
        for page, label in zip(chunk.pages, chunk.printed_pages, strict=False)
    }
    return [labels[page] for page in pages] if all(page in labels for page in pages) else []


def group_by_section(chunks: Sequence[StoredChunk]) -> dict[str, list[StoredChunk]]:
    """Return the chunks that stand directly in each section, in reading order."""
    sections: dict[str, list[StoredChunk]] = {}
    for chunk in chunks:
        sections.setdefault(chunk.section_ref, []).append(chunk)
    return sections


def diff_words(before: str, after: str) -> list[DiffPart]:
    """Return the runs of words that are the same, deleted and inserted."""
    old_words, new_words = _WORD.findall(before), _WORD.findall(after)
    # Compared without white space, because each PDF breaks its lines elsewhere.
    stripped_old_words, stripped_new_words = (
        [word.strip() for word in old_words],
        [word.strip() for word in new_words],
    )
    diff_parts: list[DiffPart] = []
    # autojunk would ignore the frequent words of a long text, and tear the diff apart there.
    matcher = difflib.SequenceMatcher(None, stripped_old_words, stripped_new_words, autojunk=False)
    for operation, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if operation == "equal":
            diff_parts.append(DiffPart(op="equal", text=_shorten(new_words[new_start:new_end])))
            continue
        if old_end > old_start:
            diff_parts.append(
                DiffPart(op="delete", text="".join(old_words[old_start:old_end]).strip())
            )
        if new_end > new_start:
            diff_parts.append(
                DiffPart(op="insert", text="".join(new_words[new_start:new_end]).strip())
            )
    return diff_parts


def has_same_words(first_text: str, second_text: str) -> bool:
    """Return whether two texts differ in white space at most."""
    return first_text.split() == second_text.split()


@dataclass(frozen=True, slots=True)
class QuotePosition:
    """Where a quotation begins."""

    chunk: StoredChunk
    page: int


def locate_quote(quote: str, chunks: Sequence[StoredChunk]) -> QuotePosition | None:
    """Return where the words stand, whatever their spacing, dashes, quotation marks and capitals.

    The words may run across chunks. Returns None when they stand nowhere.
    """
    folded_quote = fold_text(quote)
    own_texts = list(_list_own_texts(chunks))
    folded_text = ""
    folded_starts: list[int] = []
    for _, _, text in own_texts:
        # Stripped, the last word of a chunk would run into the first one of the next.
        folded_text_of_chunk = fold_text(text, strip=False)
        if folded_text.endswith(" ") or not folded_text:
            folded_text_of_chunk = folded_text_of_chunk.lstrip(" ")
        folded_starts.append(len(folded_text))
        folded_text += folded_text_of_chunk
    match = _compile_whole_words(folded_quote).search(folded_text) if folded_quote else None
    if match is None:
        return None
    own_text_index = bisect_right(folded_starts, match.start()) - 1
    chunk, offset, text = own_texts[own_text_index]
    # Folding barely changes lengths, so the same share of the original text is on the right page.
    share = (match.start() - folded_starts[own_text_index]) / max(1, len(fold_text(text)))
    return QuotePosition(chunk, chunk.find_page(offset + round(share * len(text))))


def _compile_whole_words(folded_quote: str) -> re.Pattern[str]:
    """Return a pattern for the quotation at word boundaries only.

    `safe` does not match in `unsafe`, `un-safe` or `safe-ish`, nor `000 homes` in `300,000 homes`.
    A footnote number after the last word, without a space between, is allowed.
    """
    before = r"(?<!\w)(?<!\w[-'])(?<!\d[.,])" if folded_quote[0].isalnum() else ""
    after = r"(?!\w)(?![-']\w)(?![.,]\d)" if folded_quote[-1].isalnum() else ""
    return re.compile(f"{before}{re.escape(folded_quote)}{_FOOTNOTE_NUMBER}{after}")


def find_closest(quote: str, text: str) -> tuple[str, float]:
    """Return the stretch of a text most like a quotation, and their similarity from 0 to 1."""
    words, quote_words = text.split(), fold_text(quote).split()
    folded_words = [fold_text(word) for word in words]
    window_size = min(len(quote_words), len(words))
    best_ratio, best_start = 0.0, 0
    matcher = difflib.SequenceMatcher(autojunk=False)
    # The matcher caches what it knows of its second sequence, so the quotation goes there.
    matcher.set_seq2(quote_words)
    for window_start in range(len(words) - window_size + 1):
        matcher.set_seq1(folded_words[window_start : window_start + window_size])
        # Two cheap upper bounds first: the exact ratio is quadratic and run at every word.
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best_ratio, best_start = ratio, window_start
    return " ".join(words[best_start : best_start + window_size]), round(best_ratio, 3)


def fold_text(text: str, strip: bool = True) -> str:
    """Return text with plain dashes and quotation marks, single blanks and no capitals."""
    folded_text = _WHITE_SPACE.sub(" ", fold_dashes(text).translate(_PLAIN_QUOTES)).casefold()
    return folded_text.strip() if strip else folded_text


def _list_own_texts(chunks: Sequence[StoredChunk]) -> Iterable[tuple[StoredChunk, int, str]]:
    """Yield each chunk with the part of its text that no chunk before it has, and its offset."""
    end: int | None = None
    for chunk in sorted(chunks, key=lambda chunk: chunk.chunk_index):
        if end is None:
            yield chunk, chunk.start, chunk.text
        elif chunk.start < end:
            yield chunk, end, chunk.text[end - chunk.start :]
        else:
            # A cut drops at most the one space it falls on; a wider gap ends a paragraph.
            gap = "" if chunk.start == end else " " if chunk.start == end + 1 else "\n\n"
            yield chunk, chunk.start, gap + chunk.text
        end = max(end or 0, chunk.end)


def _shorten(words: list[str]) -> str:
    if len(words) <= 2 * _SHOWN_WORDS_PER_END + 1:
        return "".join(words).strip()
    return (
        "".join(words[:_SHOWN_WORDS_PER_END]).strip()
        + " […] "
        + "".join(words[-_SHOWN_WORDS_PER_END:]).strip()
    )
