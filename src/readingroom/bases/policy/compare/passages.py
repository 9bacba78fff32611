"""Texts put together from chunks, compared word by word, and searched for a quotation."""

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from readingroom.bases.policy.models import DiffPart
from readingroom.bases.policy.store import StoredChunk
from readingroom.core.text import fold_dashes

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\S+\s*")
_FOOTNOTE = r"(?:(?<=[^\W\d_]{3})\d{1,3})?"
_NUMBER = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_CODE = re.compile(r"[a-z]{1,5} ?\d{1,3}[a-z]?", re.ASCII)
_PARAGRAPH = re.compile(r"\b(?:paragraphs?|paras?\.?)\s+", re.IGNORECASE)
_SHOWN = 12  # words of an unchanged run that are shown at either end


def fold_ref(ref: str) -> str:
    """A section reference as it is compared: `paragraph 116` is `Para 116`, a dash is a dash."""
    plain = _SPACE.sub(" ", fold_dashes(ref)).strip()
    return _PARAGRAPH.sub("para ", plain).casefold()


def references(chunks: Iterable[StoredChunk]) -> dict[str, str]:
    """Every section as it is compared, and as the document writes it, in reading order."""
    found: dict[str, str] = {}
    for chunk in chunks:
        for ref in filter(None, (*chunk.section_path, chunk.section_ref)):
            found.setdefault(fold_ref(ref), ref)
    return found


def meant(ref: str, chunks: Iterable[StoredChunk]) -> str | None:
    """The section that is asked for, as the document writes it; None where it has no such one.

    A number alone may be a paragraph's, a section's, a chapter's or a policy's, in this order;
    `TR4` is a policy's.
    """
    known, plain = references(chunks), fold_ref(ref)
    readings = [plain]
    if _NUMBER.fullmatch(plain):
        readings += [f"{kind} {plain}" for kind in ("para", "section", "chapter", "policy")]
    elif _CODE.fullmatch(plain):
        readings.append(f"policy {plain}")
    return next((known[one] for one in readings if one in known), None)


def within(chunks: Iterable[StoredChunk], ref: str) -> list[StoredChunk]:
    """The chunks of a section and of the sections in it."""
    wanted = fold_ref(ref)
    return [
        chunk
        for chunk in chunks
        if wanted in map(fold_ref, (*chunk.section_path, chunk.section_ref))
    ]


def assembled(chunks: Sequence[StoredChunk]) -> str:
    """The text of chunks in order: what they share stands once, what lies apart is set apart."""
    return "".join(piece for _, _, piece in _pieces(chunks))


def by_section(chunks: Sequence[StoredChunk]) -> dict[str, list[StoredChunk]]:
    """The chunks that stand directly in each section, sections in reading order."""
    found: dict[str, list[StoredChunk]] = {}
    for chunk in chunks:
        found.setdefault(chunk.section_ref, []).append(chunk)
    return found


def diff(before: str, after: str) -> list[DiffPart]:
    """What stayed, went and came, in words."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    bare_old, bare_new = [word.strip() for word in old], [word.strip() for word in new]
    parts: list[DiffPart] = []
    matcher = difflib.SequenceMatcher(None, bare_old, bare_new, autojunk=False)
    for op, i, j, k, m in matcher.get_opcodes():
        if op == "equal":
            parts.append(DiffPart(op="equal", text=_shortened(new[k:m])))
            continue
        if j > i:
            parts.append(DiffPart(op="delete", text="".join(old[i:j]).strip()))
        if m > k:
            parts.append(DiffPart(op="insert", text="".join(new[k:m]).strip()))
    return parts


def same_words(one: str, other: str) -> bool:
    return one.split() == other.split()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a quotation begins."""

    chunk: StoredChunk
    page: int


def locate(quote: str, chunks: Sequence[StoredChunk]) -> Place | None:
    """Where the words stand, whatever their spacing, dashes, quotation marks and capitals."""
    wanted = fold(quote)
    text = ""
    starts: list[int] = []
    places: list[tuple[StoredChunk, int, str]] = []
    for chunk, offset, piece in _pieces(chunks):
        folded = fold(piece, strip=False)
        if text.endswith(" ") or not text:
            folded = folded.lstrip(" ")
        starts.append(len(text))
        places.append((chunk, offset, piece))
        text += folded
    match = _whole_words(wanted).search(text) if wanted else None
    if match is None:
        return None
    found = match.start()
    number = bisect_right(starts, found) - 1
    chunk, offset, piece = places[number]
    # Folding keeps proportions well enough to tell on which page of a chunk the words begin.
    share = (found - starts[number]) / max(1, len(fold(piece)))
    return Place(chunk, chunk.page_at(offset + round(share * len(piece))))


def _whole_words(wanted: str) -> re.Pattern[str]:
    """Finds folded words that begin and end where words do: `safe` stands in neither `unsafe`,
    `un-safe` nor `safe-ish`, and `000 homes` not in `300,000 homes`.
    The number of a footnote, which follows a word without a space, is no part of it.
    """
    before = r"(?<!\w)(?<!\w[-'])(?<!\d[.,])" if wanted[0].isalnum() else ""
    after = r"(?!\w)(?![-']\w)(?![.,]\d)" if wanted[-1].isalnum() else ""
    return re.compile(f"{before}{re.escape(wanted)}{_FOOTNOTE}{after}")


def closest(quote: str, text: str) -> tuple[str, float]:
    """The stretch of a text most like a quotation, and how alike they are, from 0 to 1."""
    words, wanted = text.split(), fold(quote).split()
    folded = [fold(word) for word in words]
    size = min(len(wanted), len(words))
    best, where = 0.0, 0
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    for start in range(len(words) - size + 1):
        matcher.set_seq1(folded[start : start + size])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
            ratio = matcher.ratio()
            if ratio > best:
                best, where = ratio, start
    return " ".join(words[where : where + size]), round(best, 3)


def fold(text: str, strip: bool = True) -> str:
    """Text as quotations are compared."""
    plain = _SPACE.sub(" ", fold_dashes(text).translate(_QUOTES)).casefold()
    return plain.strip() if strip else plain


def _pieces(chunks: Sequence[StoredChunk]) -> Iterable[tuple[StoredChunk, int, str]]:
    """Each chunk's own part of the text, with the offset where it begins."""
    end: int | None = None
    for chunk in sorted(chunks, key=lambda one: one.chunk_index):
        if end is None:
            yield chunk, chunk.start, chunk.text
        elif chunk.start < end:
            yield chunk, end, chunk.text[end - chunk.start :]
        else:
            # A cut takes at most the one space it falls on; more is the end of a paragraph.
            apart = "" if chunk.start == end else " " if chunk.start == end + 1 else "\n\n"
            yield chunk, chunk.start, apart + chunk.text
        end = max(end or 0, chunk.end)


def _shortened(words: list[str]) -> str:
    if len(words) <= 2 * _SHOWN + 1:
        return "".join(words).strip()
    return "".join(words[:_SHOWN]).strip() + " […] " + "".join(words[-_SHOWN:]).strip()
