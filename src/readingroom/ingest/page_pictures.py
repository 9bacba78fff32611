"""Pages as pictures with marked passages: drawn once, then kept by the file's hash.

For every base that keeps the files its texts were read from: `PagePictures` needs the file and its
hash, and knows nothing of documents or policies.
"""

import json
import logging
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from difflib import Match, SequenceMatcher
from io import FileIO
from pathlib import Path

import anyio.to_thread
from pydantic import TypeAdapter, ValidationError

from readingroom.ingest.document import Document, PageWord
from readingroom.ingest.pipeline import Pipeline

_log = logging.getLogger("readingroom.ingest")

# Of pictures; the words of scans are kept as well, since reading them again takes long.
_MAX_CACHED_BYTES = 512 * 2**20
# Share of that size to which the oldest pictures are deleted, when it is exceeded.
_MAX_CACHE_SHARE_AFTER_CLEANING = 0.75
_MAX_PASSAGE_WORDS = 2_000
# Pairs of equal words; a long passage on a full page has some 5,000.
_MAX_EQUAL_WORD_PAIRS = 20_000
# Words in a row that must agree, where a passage is not on the page as a whole.
_MIN_EQUAL_RUN_WORDS = 3
# Of a passage that goes on at another page, the least that is marked on this one.
_MIN_PARTIAL_PASSAGE_WORDS = 6
# Headers or footnotes between such a passage and the edge of the page.
_MAX_WORDS_TO_PAGE_EDGE = 80
_LETTERS_AND_DIGITS_PATTERN = re.compile(r"[^\W_]+")
_SHA256_PATTERN = re.compile(r"[0-9a-f]{64}")
_PAGE_WORDS_ADAPTER = TypeAdapter(tuple[PageWord, ...])


@dataclass(frozen=True, slots=True)
class PassageRectangle:
    """A rectangle around words of one line: shares of the page's width and height, from its upper
    left.
    """

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that a base keeps, with what its pages are drawn and remembered by."""

    file: FileIO
    file_name: str
    sha256: str


class PagePictures:
    """Draws pages of files and marks passages on them; keeps both in a folder."""

    def __init__(self, pipeline: Pipeline, pictures_folder: Path) -> None:
        self._pipeline = pipeline
        self._pictures_folder = pictures_folder

    async def draw_page(self, stored_file: StoredFile, page_number: int, dpi: int) -> bytes:
        """Return a page as a lossless WebP; raise `ExtractionFailed` or `UnsupportedFileType`."""
        cached_picture_path = self._build_cache_path(
            stored_file.sha256, f"{page_number}@{dpi}.webp"
        )
        picture_bytes = await anyio.to_thread.run_sync(_read_file_if_present, cached_picture_path)
        if picture_bytes is None:
            picture_bytes = await self._pipeline.render_page(
                stored_file.file, stored_file.file_name, page_number, dpi, "webp"
            )
            await anyio.to_thread.run_sync(self._write_picture, cached_picture_path, picture_bytes)
        return picture_bytes

    async def mark_passage(
        self, stored_file: StoredFile, page_number: int, passage_text: str
    ) -> tuple[PassageRectangle, ...]:
        """Return the rectangles of a passage on a page, one for each line; none if it is not there.

        A passage that begins on another page is marked as far as it stands on this one.
        """
        page_words = await self._find_page_words(stored_file, page_number)
        return await anyio.to_thread.run_sync(find_passage_rectangles, page_words, passage_text)

    async def store_page_words(self, sha256: str, parsed_document: Document) -> None:
        """Keep the places of words that OCR found, so that scans can be marked at once."""
        for document_page in parsed_document.pages:
            if document_page.words:
                await anyio.to_thread.run_sync(
                    self._write_page_words, sha256, document_page.number, document_page.words
                )

    async def delete_pictures(self, sha256: str) -> None:
        """Delete whatever is kept of a file."""
        await anyio.to_thread.run_sync(self._delete_kept_folder, sha256)

    async def _find_page_words(
        self, stored_file: StoredFile, page_number: int
    ) -> tuple[PageWord, ...]:
        cached_words_path = self._build_cache_path(stored_file.sha256, f"{page_number}.json")
        words_json_bytes = await anyio.to_thread.run_sync(_read_file_if_present, cached_words_path)
        if words_json_bytes is not None:
            try:
                return _PAGE_WORDS_ADAPTER.validate_json(words_json_bytes)
            except ValidationError:
                pass  # written by another version: found again below
        page_words = await self._pipeline.find_page_words(
            stored_file.file, stored_file.file_name, page_number
        )
        await anyio.to_thread.run_sync(
            self._write_page_words, stored_file.sha256, page_number, page_words
        )
        return page_words

    def _build_cache_path(self, sha256: str, file_name: str) -> Path:
        if not _SHA256_PATTERN.fullmatch(sha256):
            raise ValueError("not a SHA-256 digest")
        return self._pictures_folder / sha256 / file_name

    def _write_page_words(
        self, sha256: str, page_number: int, page_words: Sequence[PageWord]
    ) -> None:
        words_json_bytes = json.dumps([asdict(page_word) for page_word in page_words]).encode()
        _write_file_atomically(
            self._build_cache_path(sha256, f"{page_number}.json"), words_json_bytes
        )

    def _write_picture(self, picture_path: Path, picture_bytes: bytes) -> None:
        _write_file_atomically(picture_path, picture_bytes)
        stats_and_paths = []
        for cached_picture_path in self._pictures_folder.glob("*/*.webp"):
            with suppress(FileNotFoundError):  # another thread has just deleted it
                stats_and_paths.append((cached_picture_path.stat(), cached_picture_path))
        excess_bytes = (
            sum(file_stat.st_size for file_stat, _ in stats_and_paths) - _MAX_CACHED_BYTES
        )
        if excess_bytes <= 0:
            return
        excess_bytes += round(_MAX_CACHED_BYTES * (1 - _MAX_CACHE_SHARE_AFTER_CLEANING))
        for file_stat, oldest_picture_path in sorted(
            stats_and_paths, key=lambda stat_and_path: stat_and_path[0].st_mtime
        ):
            if excess_bytes <= 0 or oldest_picture_path == picture_path:
                break
            oldest_picture_path.unlink(missing_ok=True)
            excess_bytes -= file_stat.st_size

    def _delete_kept_folder(self, sha256: str) -> None:
        # A thread that keeps one more page meanwhile must not make this fail.
        shutil.rmtree(self._build_cache_path(sha256, "any").parent, ignore_errors=True)


def find_passage_rectangles(
    page_words: Sequence[PageWord], passage_text: str
) -> tuple[PassageRectangle, ...]:
    """Return the rectangles around the words of a passage, one for each line of the page."""
    marked_word_indexes = _find_word_indexes_of_passage(
        page_words, passage_text
    ) or _find_word_indexes_in_runs(page_words, passage_text)
    return tuple(
        _join_words_into_rectangles(
            [page_words[word_index] for word_index in sorted(marked_word_indexes)]
        )
    )


def _find_word_indexes_of_passage(page_words: Sequence[PageWord], passage_text: str) -> set[int]:
    """Return the indexes of the words that hold the passage, whatever its spaces and hyphens."""
    passage_letters = _keep_letters_and_digits("".join(passage_text.split()[:_MAX_PASSAGE_WORDS]))
    word_index_of_each_letter: list[int] = []
    """For each letter of the page, the word that it belongs to."""
    folded_words = [_keep_letters_and_digits(page_word.text) for page_word in page_words]
    for word_index, folded_word in enumerate(folded_words):
        word_index_of_each_letter += [word_index] * len(folded_word)
    passage_letter_offset = "".join(folded_words).find(passage_letters) if passage_letters else -1
    return (
        set()
        if passage_letter_offset < 0
        else set(
            word_index_of_each_letter[
                passage_letter_offset : passage_letter_offset + len(passage_letters)
            ]
        )
    )


def _find_word_indexes_in_runs(page_words: Sequence[PageWord], passage_text: str) -> set[int]:
    """Return the indexes of words that stand in the passage in the same order, several in a row."""
    folded_page_words = [_keep_letters_and_digits(page_word.text) for page_word in page_words]
    folded_passage_words = [
        _keep_letters_and_digits(passage_word)
        for passage_word in passage_text.split()[:_MAX_PASSAGE_WORDS]
    ]
    page_word_counts = Counter(folded_page_words)
    if (
        sum(page_word_counts[passage_word] for passage_word in folded_passage_words)
        > _MAX_EQUAL_WORD_PAIRS
    ):
        return set()  # made of a few words again and again: no passage, and it would take minutes
    sequence_matcher = SequenceMatcher(
        None, folded_page_words, folded_passage_words, autojunk=False
    )
    min_run_words = min(_MIN_EQUAL_RUN_WORDS, len(folded_passage_words))
    equal_runs = [
        equal_run
        for equal_run in sequence_matcher.get_matching_blocks()
        if equal_run.size >= max(1, min_run_words)
    ]
    word_indexes: set[int] = set()
    for equal_run in _choose_runs_of_passage(
        equal_runs, len(folded_page_words), len(folded_passage_words)
    ):
        word_indexes.update(range(equal_run.a, equal_run.a + equal_run.size))
    return word_indexes


def _choose_runs_of_passage(
    equal_runs: Sequence[Match], page_word_count: int, passage_word_count: int
) -> Sequence[Match]:
    """Return the runs that make up a passage; none where a few words only happen to agree.

    At least half of it is on the page, or the page ends with its beginning or begins with its end.
    """
    if 2 * sum(equal_run.size for equal_run in equal_runs) >= passage_word_count:
        return equal_runs
    opening_runs = _list_leading_dense_runs(
        [(equal_run.b + equal_run.size, equal_run) for equal_run in equal_runs]
    )
    if (
        opening_runs
        and opening_runs[-1].a + opening_runs[-1].size >= page_word_count - _MAX_WORDS_TO_PAGE_EDGE
    ):
        return opening_runs
    ending_runs = _list_leading_dense_runs(
        [(passage_word_count - equal_run.b, equal_run) for equal_run in reversed(equal_runs)]
    )
    if ending_runs and ending_runs[-1].a <= _MAX_WORDS_TO_PAGE_EDGE:
        return ending_runs
    return ()


def _list_leading_dense_runs(word_counts_and_runs: Sequence[tuple[int, Match]]) -> list[Match]:
    """Return the first runs, as long as they are at least half of the words up to them."""
    leading_equal_runs: list[Match] = []
    equal_word_count = 0
    for word_count_up_to_run, equal_run in word_counts_and_runs:
        equal_word_count += equal_run.size
        if 2 * equal_word_count < word_count_up_to_run:
            break
        leading_equal_runs.append(equal_run)
    return (
        leading_equal_runs
        if sum(equal_run.size for equal_run in leading_equal_runs) >= _MIN_PARTIAL_PASSAGE_WORDS
        else []
    )


def _join_words_into_rectangles(marked_words: Sequence[PageWord]) -> list[PassageRectangle]:
    line_rectangles: list[PassageRectangle] = []
    for marked_word in marked_words:
        last_rectangle = line_rectangles[-1] if line_rectangles else None
        word_middle_height = (marked_word.top + marked_word.bottom) / 2
        is_on_same_line = (
            last_rectangle is not None
            and last_rectangle.top < word_middle_height < last_rectangle.bottom
            and marked_word.left >= last_rectangle.left
        )
        if last_rectangle is not None and is_on_same_line:
            line_rectangles[-1] = PassageRectangle(
                last_rectangle.left,
                min(last_rectangle.top, marked_word.top),
                max(last_rectangle.right, marked_word.right),
                max(last_rectangle.bottom, marked_word.bottom),
            )
        else:
            line_rectangles.append(
                PassageRectangle(
                    marked_word.left, marked_word.top, marked_word.right, marked_word.bottom
                )
            )
    return line_rectangles


def _keep_letters_and_digits(raw_text: str) -> str:
    return "".join(_LETTERS_AND_DIGITS_PATTERN.findall(raw_text.casefold()))


def _read_file_if_present(file_path: Path) -> bytes | None:
    try:
        return file_path.read_bytes()
    except FileNotFoundError:
        return None


def _write_file_atomically(file_path: Path, file_bytes: bytes) -> None:
    """Write a file that is whole or not there; where that fails, only time is lost."""
    try:
        file_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=file_path.parent, prefix=".", delete=False
        ) as temporary_file:
            temporary_file.write(file_bytes)
        Path(temporary_file.name).replace(file_path)
    except OSError as error:
        _log.warning("a page could not be kept: %s", error)
