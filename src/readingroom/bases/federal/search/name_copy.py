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
_BASE = len(_LETTERS) + 1
_NO_LETTER = len(_LETTERS)


class TrigramCopy:
    """The names of a source by their trigrams."""

    def __init__(self, name_rows: Sequence[int], folded_names: Sequence[str]) -> None:
        self._name_rows = np.array(name_rows, np.int64)
        # Twice after each: no trigram reaches from one name into the next.
        letters = _number_letters()[
            np.frombuffer("".join(f"{name}\n\n" for name in folded_names).encode(), np.uint8)
        ]
        first, second, third = letters[:-2], letters[1:-1], letters[2:]
        is_trigram = (first != _NO_LETTER) & (second != _NO_LETTER) & (third != _NO_LETTER)
        codes = ((first * _BASE + second) * _BASE + third)[is_trigram]
        name_lengths = np.fromiter(map(len, folded_names), np.int64, len(folded_names))
        owners = np.repeat(np.arange(len(folded_names), dtype=np.uint32), name_lengths + 2)
        owners = owners[:-2][is_trigram]
        order = np.argsort(codes, kind="stable")
        codes, owners = codes[order], owners[order]
        # A name that has a trigram twice counts once; its two places are neighbours now.
        is_first = np.ones(len(codes), bool)
        is_first[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
        self._owners = owners[is_first]
        self._starts = np.searchsorted(codes[is_first], np.arange(_BASE**3 + 1))

    def find_rows(self, trigrams: Sequence[str]) -> list[int]:
        """Return the names that share trigrams, most of them first.

        Those that share fewer than half as many as the first are left out.
        """
        owners = np.concatenate([self._list_owners(trigram) for trigram in trigrams])
        if not len(owners):
            return []
        shared_counts = np.bincount(owners, minlength=len(self._name_rows))
        places = np.flatnonzero(2 * shared_counts >= shared_counts.max())
        nearest_first_places = places[np.argsort(-shared_counts[places], kind="stable")]
        nearest_rows: list[int] = self._name_rows[nearest_first_places].tolist()
        return nearest_rows

    def _list_owners(self, trigram: str) -> "NDArray[np.uint32]":
        code = 0
        for letter in trigram:
            code = code * _BASE + _LETTERS.index(letter)
        owners: NDArray[np.uint32] = self._owners[self._starts[code] : self._starts[code + 1]]
        return owners


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
            source_key = (db.address, database_id, first_row)
            names = self._names_by_source.setdefault(source_key, _SourceNames())
            self._names_by_source.move_to_end(source_key)
            while len(self._names_by_source) > _MAX_COPIES:
                self._names_by_source.popitem(last=False)
            if names.generation != generation:
                # Most changes are of records without names, or of vectors.
                fingerprint = _read_fingerprint(db, first_row, last_row)
                is_known = fingerprint == names.fingerprint and names.generation >= 0
                names.generation, names.fingerprint = generation, fingerprint
                if not is_known:
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
def _number_letters() -> "NDArray[np.uint16]":
    """Return the number of each byte: of a letter its place, of all others `_NO_LETTER`."""
    letter_numbers = np.full(256, _NO_LETTER, np.uint16)
    letter_numbers[np.frombuffer(_LETTERS.encode(), np.uint8)] = np.arange(len(_LETTERS))
    return letter_numbers
