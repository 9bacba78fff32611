"""The postings of the commonest stems, read in the background before anybody asks for them.

A question whose words a process has not had waits for their postings, and those of common words
are long. All of them together, read page by page in the form in which the database keeps words,
cost less than those of some hundred questions.
"""

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from readingroom.core.arrays import NDArray, np
from readingroom.engine.shared.postings import Posting, RowsByChunk, StemPostings, pack_postings
from readingroom.storage.postgres.encoding import StemFinder

logger = logging.getLogger(__name__)

WordRow = tuple[int, int, bytes]
"""The number of a chunk, how many words it has, and its words as PostgreSQL sends them."""

_QUIET_SECONDS_BEFORE_READING = 5.0
"""How long nothing was dropped before all is read again: large changes come in a row."""
_MAX_STOP_SECONDS = 10.0
_MAX_WAITING_POSTINGS = 500_000
"""Of some ten thousand chunks, about 6 MB."""


class CommonWords:
    """Postings that are being read: complete for the chunks up to a number, whoever writes."""

    def __init__(self, chunk_count_by_stem: Mapping[str, int]) -> None:
        """`chunk_count_by_stem` has the stems with about how many chunks have each."""
        self._finder = StemFinder(chunk_count_by_stem)
        found_stems = frozenset(self._finder.stems)
        self._postings_by_stem = {
            stem: StemPostings(reserved_count=chunk_count)
            for stem, chunk_count in chunk_count_by_stem.items()
            if stem in found_stems
        }
        self._waiting_postings: list[tuple[NDArray[np.int32], NDArray[np.void]]] = []
        """Of the chunks read last: the places of their stems, and the postings."""
        self.last_chunk_number = 0
        """Whatever is written to chunks up to this number is appended."""
        self.has_all_chunks = False
        self.is_complete = not self._postings_by_stem

    def add_chunks(self, word_rows: Sequence[WordRow], rows_by_chunk: RowsByChunk) -> None:
        """Add the chunks that come next by number."""
        chunk_numbers, token_counts, encoded_words = zip(*word_rows, strict=True)
        stem_indexes, chunk_indexes, occurrence_counts = self._finder.find_stems(encoded_words)
        # A chunk that has no row yet was written a moment ago: its row brings its words then.
        row_numbers = rows_by_chunk.find_row_numbers(np.array(chunk_numbers, np.int64))[
            chunk_indexes
        ]
        row_mask = row_numbers >= 0
        packed_postings = pack_postings(
            row_numbers[row_mask],
            occurrence_counts[row_mask],
            np.array(token_counts)[chunk_indexes[row_mask]],
        )
        self._waiting_postings.append((stem_indexes[row_mask].astype(np.int32), packed_postings))
        if (
            sum(len(waiting_array) for _, waiting_array in self._waiting_postings)
            > _MAX_WAITING_POSTINGS
        ):
            self._distribute_postings()
        self.last_chunk_number = chunk_numbers[-1]

    def mark_all_chunks_added(self) -> None:
        """Take it that there are no more chunks: those of a later number are appended too."""
        self._distribute_postings()
        self.last_chunk_number = sys.maxsize
        self.has_all_chunks = True

    def append_postings(self, stem: str, postings: Sequence[Posting]) -> None:
        """Add new rows of chunks that have been read, unless the stem has been taken."""
        if postings and (stem_postings := self._postings_by_stem.get(stem)) is not None:
            stem_postings.append_postings(postings)

    def pop_stems_with_postings(self, max_stem_count: int) -> Iterator[tuple[str, StemPostings]]:
        """Yield some stems that were not taken yet; `is_complete` is set with the last ones.

        Whoever takes them after `mark_all_chunks_added` adds to them what is written from now on.
        """
        for stem in list(self._postings_by_stem)[:max_stem_count]:
            stem_postings = self._postings_by_stem.pop(stem)
            stem_postings.sort_rows()
            yield stem, stem_postings
        self.is_complete = not self._postings_by_stem

    def _distribute_postings(self) -> None:
        """Give each stem its postings of many chunks at once: one by one they cost the most."""
        if not self._waiting_postings:
            return
        stem_indexes, packed_postings = map(
            np.concatenate, zip(*self._waiting_postings, strict=True)
        )
        self._waiting_postings.clear()
        order_by_stem = np.argsort(stem_indexes, kind="stable")
        stem_indexes, packed_postings = stem_indexes[order_by_stem], packed_postings[order_by_stem]
        stem_end_positions = np.flatnonzero(np.diff(stem_indexes, append=-1)) + 1
        for start_position, end_position in pairwise((0, *stem_end_positions.tolist())):
            stem = self._finder.stems[stem_indexes[start_position]]
            self._postings_by_stem[stem].append_packed_postings(
                packed_postings[start_position:end_position]
            )


class BackgroundReader:
    """Reads something on a thread of its own, and again whenever that is asked for."""

    def __init__(self, read_until_stopped: Callable[[threading.Event], object]) -> None:
        """`read_until_stopped` gets an event that tells it to stop."""
        self._read_until_stopped = read_until_stopped
        self._is_wanted = threading.Event()
        self._stop_event = threading.Event()
        self._thread = threading.Thread(
            target=self._read_repeatedly, name="common words", daemon=True
        )
        self._thread.start()

    def read_again(self) -> None:
        """Read when nobody has asked for it again for some seconds."""
        self._is_wanted.set()

    def stop(self) -> None:
        """End the thread; what it is reading is given up."""
        self._stop_event.set()
        self._is_wanted.set()
        self._thread.join(_MAX_STOP_SECONDS)

    def _read_repeatedly(self) -> None:
        while not self._stop_event.is_set():
            try:
                self._read_until_stopped(self._stop_event)
            except Exception as error:  # searches read for themselves what is missing
                if not self._stop_event.is_set():
                    logger.warning("Common words were not read in advance: %s", error)
            self._is_wanted.wait()
            while self._is_wanted.is_set() and not self._stop_event.is_set():
                self._is_wanted.clear()
                self._stop_event.wait(_QUIET_SECONDS_BEFORE_READING)
