"""The record and the source of each passage, in memory, so that searches need not look them up.

The number of a passage is never used again and its record never changes, so only new ones are read.
Removed ones may stay: no index returns them any more.
"""

import threading
from collections.abc import Iterable, Sequence

from readingroom.bases.federal.schema.sources import SOURCES
from readingroom.core.arrays import NDArray, RowMask, RowNumbers, np
from readingroom.storage.database import Database, Row

_CODE_BY_SOURCE = {source.name: source_code for source_code, source in enumerate(SOURCES)}


PASSAGE_COLUMNS_SQL = """c.chunk, p.title, p.abstract, p.action, p.body,
    (SELECT h.title FROM chunks k JOIN passages h USING (chunk)
     WHERE k.doc = c.doc AND k.part = 'head' AND k.ordinal = 0) AS heading"""
"""What `build_passage_text` reads, of chunks `c` and passages `p`."""
_MAX_HEADING_CHARS = 150  # characters of a record's title before each of its passages


class PassageOwners:
    """Two arrays by passage number, made when the first passages are added.

    There is one writer at a time; readers need no lock.
    """

    _document_row_ids: "NDArray[np.int32]"
    _source_codes: "NDArray[np.int8]"

    def __init__(self) -> None:
        self._generation = -1
        self._last_chunk_number = 0
        self._passage_count = 0
        self._update_lock = threading.Lock()

    def add_new_passages(self, db: Database) -> None:
        """Add the passages that are new since the last time; usually there are none.

        Whoever asks about passages has called this before.
        """
        if read_records_generation(db) <= self._generation:
            return
        with self._update_lock:
            if self._generation < 0:
                self._document_row_ids = np.zeros(0, np.int32)
                self._source_codes = np.zeros(0, np.int8)
            current_generation = read_records_generation(db)
            new_rows = self._read_new_rows(db)
            if len(new_rows):
                self._enlarge_arrays(int(new_rows["chunk"][-1]) + 1)
                self._document_row_ids[new_rows["chunk"]] = new_rows["doc"]
                self._source_codes[new_rows["chunk"]] = new_rows["source"]
                self._last_chunk_number = int(new_rows["chunk"][-1])
            self._passage_count = db.execute("SELECT count(*) AS passages FROM chunks").fetchone()[
                "passages"
            ]
            self._generation = max(self._generation, current_generation)

    def __len__(self) -> int:
        """How many passages there are. Their numbers go higher: none is ever used again."""
        return self._passage_count

    def get_document_row_ids(
        self, chunk_numbers: RowNumbers | Sequence[int]
    ) -> "NDArray[np.int32]":
        """Return the numbers of the records of these passages."""
        return self._document_row_ids[chunk_numbers]

    def mask_passages_of_sources(
        self, source_names: Iterable[str], chunk_numbers: RowNumbers
    ) -> RowMask:
        """Return, for each passage, whether it belongs to one of these sources."""
        is_requested_by_source_code = np.zeros(len(SOURCES), bool)
        is_requested_by_source_code[
            [_CODE_BY_SOURCE[source_name] for source_name in source_names]
        ] = True
        return is_requested_by_source_code[self._source_codes[chunk_numbers]]

    def _read_new_rows(self, db: Database) -> "NDArray[np.void]":
        passage_rows = db.iterate_tuples(
            """SELECT c.chunk, c.doc, d.source FROM chunks c JOIN documents d USING (doc)
               WHERE c.chunk > ? ORDER BY c.chunk""",
            (self._last_chunk_number,),
        )
        numbered_rows = (
            (chunk_number, document_row_id, _CODE_BY_SOURCE[source_name])
            for chunk_number, document_row_id, source_name in passage_rows
        )
        passage_dtype = [("chunk", np.int64), ("doc", np.int32), ("source", np.int8)]
        return np.fromiter(numbered_rows, np.dtype(passage_dtype))

    def _enlarge_arrays(self, needed_length: int) -> None:
        """Replace the arrays by larger ones; readers may still use the old ones."""
        if needed_length > len(self._document_row_ids):
            added_length = max(needed_length, len(self._document_row_ids) * 3 // 2) - len(
                self._document_row_ids
            )
            self._source_codes = np.pad(self._source_codes, (0, added_length))
            self._document_row_ids = np.pad(self._document_row_ids, (0, added_length))


def read_records_generation(db: Database) -> int:
    """Return how often the file has changed."""
    return int(db.execute("SELECT value FROM generation").fetchone()["value"])


def build_passage_text(passage_row: Row) -> str:
    """Return a passage under its record's title: alone it may not say what it is about."""
    first_heading = (passage_row["heading"] or "").partition("\n")[0][:_MAX_HEADING_CHARS]
    passage_paragraphs = [
        passage_row["title"] or first_heading,
        passage_row["abstract"],
        passage_row["action"],
        passage_row["body"],
    ]
    return (
        "\n".join(
            passage_paragraph for passage_paragraph in passage_paragraphs if passage_paragraph
        )
        or "untitled"
    )
