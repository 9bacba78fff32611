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

_MAX_NAMES = 1_000_000
"""Names of a source that are copied, each about 100 bytes; those of a larger one never are."""
_MIN_SECONDS_BETWEEN_COPIES = 30.0
_MAX_COPIES = 16
# Folded names have nothing else; what separates two names is no letter of a trigram.
_LETTERS = " abcdefghijklmnopqrstuvwxyz0123456789"
_TRIGRAM_CODE_BASE = len(_LETTERS) + 1
_NO_LETTER = len(_LETTERS)


class TrigramCopy:
    """The names of a source by their trigrams."""

    def __init__(self, name_rows: Sequence[int], folded_names: Sequence[str]) -> None:
        self._name_rows = np.array(name_rows, np.int64)
        # Twice after each: no trigram reaches from one name into the next.
        letter_codes = _make_letter_codes()[
            np.frombuffer("".join(f"{name}\n\n" for name in folded_names).encode(), np.uint8)
        ]
        first_letters, second_letters, third_letters = (
            letter_codes[:-2],
            letter_codes[1:-1],
            letter_codes[2:],
        )
        is_trigram = (
            (first_letters != _NO_LETTER)
            & (second_letters != _NO_LETTER)
            & (third_letters != _NO_LETTER)
        )
        trigram_codes = (
            (first_letters * _TRIGRAM_CODE_BASE + second_letters) * _TRIGRAM_CODE_BASE
            + third_letters
        )[is_trigram]
        name_lengths = np.fromiter(map(len, folded_names), np.int64, len(folded_names))
        name_indexes = np.repeat(np.arange(len(folded_names), dtype=np.uint32), name_lengths + 2)
        name_indexes = name_indexes[:-2][is_trigram]
        sort_order = np.argsort(trigram_codes, kind="stable")
        trigram_codes, name_indexes = trigram_codes[sort_order], name_indexes[sort_order]
        # A name that has a trigram twice counts once; its two places are neighbours now.
        is_first = np.ones(len(trigram_codes), bool)
        is_first[1:] = (trigram_codes[1:] != trigram_codes[:-1]) | (
            name_indexes[1:] != name_indexes[:-1]
        )
        self._name_indexes = name_indexes[is_first]
        self._start_by_trigram_code = np.searchsorted(
            trigram_codes[is_first], np.arange(_TRIGRAM_CODE_BASE**3 + 1)
        )

    def find_rows(self, trigrams: Sequence[str]) -> list[int]:
        """Return the names that share trigrams, most of them first.

        Those that share fewer than half as many as the first are left out.
        """
        name_indexes = np.concatenate(
            [self._list_names_with_trigram(trigram) for trigram in trigrams]
        )
        if not len(name_indexes):
            return []
        shared_count_by_name = np.bincount(name_indexes, minlength=len(self._name_rows))
        near_name_indexes = np.flatnonzero(2 * shared_count_by_name >= shared_count_by_name.max())
        nearest_name_indexes = near_name_indexes[
            np.argsort(-shared_count_by_name[near_name_indexes], kind="stable")
        ]
        nearest_name_rows: list[int] = self._name_rows[nearest_name_indexes].tolist()
        return nearest_name_rows

    def _list_names_with_trigram(self, trigram: str) -> "NDArray[np.uint32]":
        trigram_code = 0
        for letter in trigram:
            trigram_code = trigram_code * _TRIGRAM_CODE_BASE + _LETTERS.index(letter)
        name_indexes: NDArray[np.uint32] = self._name_indexes[
            self._start_by_trigram_code[trigram_code] : self._start_by_trigram_code[
                trigram_code + 1
            ]
        ]
        return name_indexes


@dataclass
class _SourceNames:
    """What this process knows of the names of a source."""

    generation: int = -1
    """The last generation of the records at which the fingerprint was read."""
    fingerprint: tuple[int, int] = (0, 0)
    """How many names there are, and what changes with any of them."""
    copied_fingerprint: tuple[int, int] | None = None
    copied_at: float | None = None
    copy: TrigramCopy | None = None


class NameCopies:
    """The copies of this process, of the sources that were asked for last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names_by_source: OrderedDict[tuple[Any, ...], _SourceNames] = OrderedDict()

    def find_copy(self, db: Any, first_row: int, last_row: int) -> TrigramCopy | None:
        """Return the copy of the names in a range; None if none is as the database is now.

        It is made by whoever asks for the second time: one question costs less than a copy. While
        names change all the time it is made twice a minute at most.
        """
        database_id, generation = db.execute(
            "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), value "
            "FROM generation"
        ).fetchone()
        with self._lock:
            source_key = (db.database_url, database_id, first_row)
            names = self._names_by_source.setdefault(source_key, _SourceNames())
            self._names_by_source.move_to_end(source_key)
            while len(self._names_by_source) > _MAX_COPIES:
                self._names_by_source.popitem(last=False)
            if names.generation != generation:
                # Most changes are of records without names, or of vectors.
                fingerprint = _read_fingerprint(db, first_row, last_row)
                is_unchanged = fingerprint == names.fingerprint and names.generation >= 0
                names.generation, names.fingerprint = generation, fingerprint
                if not is_unchanged:
                    return None
            if names.copied_fingerprint != names.fingerprint and _may_be_copied(names):
                names.copy = _copy_names(db, first_row, last_row)
                names.copied_fingerprint, names.copied_at = names.fingerprint, time.monotonic()
            return names.copy if names.copied_fingerprint == names.fingerprint else None


def _may_be_copied(names: _SourceNames) -> bool:
    is_due = (
        names.copied_at is None or time.monotonic() - names.copied_at >= _MIN_SECONDS_BETWEEN_COPIES
    )
    return is_due and 0 < names.fingerprint[0] <= _MAX_NAMES


def _read_fingerprint(db: Any, first_row: int, last_row: int) -> tuple[int, int]:
    name_count, hash_sum = db.execute(
        "SELECT count(*), coalesce(sum(hashtextextended(folded, name_row)), 0) FROM names "
        "WHERE name_row BETWEEN ? AND ?",
        (first_row, last_row),
    ).fetchone()
    return int(name_count), int(hash_sum)


def _copy_names(db: Any, first_row: int, last_row: int) -> TrigramCopy:
    name_rows = list(
        db.iterate_tuples(
            "SELECT name_row, folded FROM names WHERE name_row BETWEEN ? AND ? ORDER BY name_row",
            (first_row, last_row),
        )
    )
    return TrigramCopy([row[0] for row in name_rows], [row[1] for row in name_rows])


name_copies = NameCopies()
"""The copies of this process."""


@cache
def _make_letter_codes() -> "NDArray[np.uint16]":
    """Return the number of each byte: of a letter its place, of all others `_NO_LETTER`."""
    code_by_byte = np.full(256, _NO_LETTER, np.uint16)
    code_by_byte[np.frombuffer(_LETTERS.encode(), np.uint8)] = np.arange(len(_LETTERS))
    return code_by_byte
