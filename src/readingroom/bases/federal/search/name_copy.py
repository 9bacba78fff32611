"""A copy in memory of which names in a shared database have which trigrams, for misspelt names.

PostgreSQL weighs every name that its index gives, most of them for a common first name. A process
that is asked often counts them here instead, as FTS5 does in a file, and finds the same names.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from readingroom.core.arrays import NDArray, np

_MAX_COPIED_NAMES = 1_000_000
"""Names of a source that are copied, each about 100 bytes; those of a larger one never are."""
_MIN_SECONDS_BETWEEN_COPIES = 30.0
_MAX_COPIED_SOURCES = 16
# Folded names have nothing else; what separates two names is no letter of a trigram.
_NAME_CHARACTERS = " abcdefghijklmnopqrstuvwxyz0123456789"
_TRIGRAM_CODE_BASE = len(_NAME_CHARACTERS) + 1
_SEPARATOR_CODE = len(_NAME_CHARACTERS)


class TrigramCopy:
    """The names of a source by their trigrams."""

    def __init__(self, name_ids: Sequence[int], folded_names: Sequence[str]) -> None:
        self._name_ids = np.array(name_ids, np.int64)
        # Twice after each: no trigram reaches from one name into the next.
        letter_codes = _make_code_by_byte()[
            np.frombuffer(
                "".join(f"{folded_name}\n\n" for folded_name in folded_names).encode(), np.uint8
            )
        ]
        first_letter_codes, second_letter_codes, third_letter_codes = (
            letter_codes[:-2],
            letter_codes[1:-1],
            letter_codes[2:],
        )
        trigram_mask = (
            (first_letter_codes != _SEPARATOR_CODE)
            & (second_letter_codes != _SEPARATOR_CODE)
            & (third_letter_codes != _SEPARATOR_CODE)
        )
        trigram_codes = (
            (first_letter_codes * _TRIGRAM_CODE_BASE + second_letter_codes) * _TRIGRAM_CODE_BASE
            + third_letter_codes
        )[trigram_mask]
        name_lengths = np.fromiter(map(len, folded_names), np.int64, len(folded_names))
        name_indexes = np.repeat(np.arange(len(folded_names), dtype=np.uint32), name_lengths + 2)
        name_indexes = name_indexes[:-2][trigram_mask]
        sorted_indexes = np.argsort(trigram_codes, kind="stable")
        trigram_codes, name_indexes = trigram_codes[sorted_indexes], name_indexes[sorted_indexes]
        # A name that has a trigram twice counts once; its two places are neighbours now.
        first_occurrence_mask = np.ones(len(trigram_codes), bool)
        first_occurrence_mask[1:] = (trigram_codes[1:] != trigram_codes[:-1]) | (
            name_indexes[1:] != name_indexes[:-1]
        )
        self._name_indexes = name_indexes[first_occurrence_mask]
        self._start_by_trigram_code = np.searchsorted(
            trigram_codes[first_occurrence_mask], np.arange(_TRIGRAM_CODE_BASE**3 + 1)
        )

    def find_name_ids(self, trigrams: Sequence[str]) -> list[int]:
        """Return the names that share trigrams, most of them first.

        Those that share fewer than half as many as the first are left out.
        """
        name_indexes = np.concatenate(
            [self._list_name_indexes_with_trigram(trigram) for trigram in trigrams]
        )
        if not len(name_indexes):
            return []
        shared_count_by_name = np.bincount(name_indexes, minlength=len(self._name_ids))
        near_name_indexes = np.flatnonzero(2 * shared_count_by_name >= shared_count_by_name.max())
        nearest_name_indexes = near_name_indexes[
            np.argsort(-shared_count_by_name[near_name_indexes], kind="stable")
        ]
        nearest_name_ids: list[int] = self._name_ids[nearest_name_indexes].tolist()
        return nearest_name_ids

    def _list_name_indexes_with_trigram(self, trigram: str) -> "NDArray[np.uint32]":
        trigram_code = 0
        for character in trigram:
            trigram_code = trigram_code * _TRIGRAM_CODE_BASE + _NAME_CHARACTERS.index(character)
        name_indexes: NDArray[np.uint32] = self._name_indexes[
            self._start_by_trigram_code[trigram_code] : self._start_by_trigram_code[
                trigram_code + 1
            ]
        ]
        return name_indexes


@dataclass
class _SourceNameCopy:
    """What this process knows of the names of a source."""

    generation: int = -1
    """The last generation of the records at which the fingerprint was read."""
    fingerprint: tuple[int, int] = (0, 0)
    """How many names there are, and what changes with any of them."""
    copied_fingerprint: tuple[int, int] | None = None
    copied_at: float | None = None
    trigram_copy: TrigramCopy | None = None


class NameCopies:
    """The copies of this process, of the sources that were asked for last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names_by_source: OrderedDict[tuple[Any, ...], _SourceNameCopy] = OrderedDict()

    def find_copy(self, db: Any, first_name_id: int, last_name_id: int) -> TrigramCopy | None:
        """Return the copy of the names in a range; None if none is as the database is now.

        It is made by whoever asks for the second time: one question costs less than a copy. While
        names change all the time it is made twice a minute at most.
        """
        database_id, generation = db.execute(
            "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), value "
            "FROM generation"
        ).fetchone()
        with self._lock:
            source_key = (db.database_url, database_id, first_name_id)
            source_copy = self._names_by_source.setdefault(source_key, _SourceNameCopy())
            self._names_by_source.move_to_end(source_key)
            while len(self._names_by_source) > _MAX_COPIED_SOURCES:
                self._names_by_source.popitem(last=False)
            if source_copy.generation != generation:
                # Most changes are of records without names, or of vectors.
                fingerprint = _read_fingerprint(db, first_name_id, last_name_id)
                is_fingerprint_unchanged = (
                    fingerprint == source_copy.fingerprint and source_copy.generation >= 0
                )
                source_copy.generation, source_copy.fingerprint = generation, fingerprint
                if not is_fingerprint_unchanged:
                    return None
            if source_copy.copied_fingerprint != source_copy.fingerprint and _may_be_copied(
                source_copy
            ):
                source_copy.trigram_copy = _copy_names(db, first_name_id, last_name_id)
                source_copy.copied_fingerprint, source_copy.copied_at = (
                    source_copy.fingerprint,
                    time.monotonic(),
                )
            return (
                source_copy.trigram_copy
                if source_copy.copied_fingerprint == source_copy.fingerprint
                else None
            )


def _may_be_copied(source_copy: _SourceNameCopy) -> bool:
    is_copy_due = (
        source_copy.copied_at is None
        or time.monotonic() - source_copy.copied_at >= _MIN_SECONDS_BETWEEN_COPIES
    )
    return is_copy_due and 0 < source_copy.fingerprint[0] <= _MAX_COPIED_NAMES


def _read_fingerprint(db: Any, first_name_id: int, last_name_id: int) -> tuple[int, int]:
    name_count, hash_sum = db.execute(
        "SELECT count(*), coalesce(sum(hashtextextended(folded, name_row)), 0) FROM names "
        "WHERE name_row BETWEEN ? AND ?",
        (first_name_id, last_name_id),
    ).fetchone()
    return int(name_count), int(hash_sum)


def _copy_names(db: Any, first_name_id: int, last_name_id: int) -> TrigramCopy:
    name_rows = list(
        db.iterate_tuples(
            "SELECT name_row, folded FROM names WHERE name_row BETWEEN ? AND ? ORDER BY name_row",
            (first_name_id, last_name_id),
        )
    )
    return TrigramCopy(
        [name_row[0] for name_row in name_rows], [name_row[1] for name_row in name_rows]
    )


name_copies = NameCopies()
"""The copies of this process."""


@cache
def _make_code_by_byte() -> "NDArray[np.uint16]":
    """Return the number of each byte: of a letter its place, of all others `_SEPARATOR_CODE`."""
    code_by_byte = np.full(256, _SEPARATOR_CODE, np.uint16)
    code_by_byte[np.frombuffer(_NAME_CHARACTERS.encode(), np.uint8)] = np.arange(
        len(_NAME_CHARACTERS)
    )
    return code_by_byte
