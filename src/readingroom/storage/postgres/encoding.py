"""Chunks in the binary form that PostgreSQL copies rows from, and filters as its conditions."""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import add
from types import NoneType
from typing import Any

from readingroom.core.arrays import Floats, NDArray, np
from readingroom.core.filters import Condition, In
from readingroom.storage.chunks import Chunks
from readingroom.storage.postgres.database import clean_text

Stems = Sequence[str]
"""The stems of a text, in reading order."""

OCCURRENCES_SQL = "round(0.6079271 / (1 - ts_rank(words, ?::tsquery)) - 0.5)"
"""How often a chunk has a stem: `ts_rank` of one stem is a function of just that, the sum of the
first squares' reciprocals over that of all, and PostgreSQL has no other function that tells."""

_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_COPY_TRAILER = struct.pack(">h", -1)
# The backslash first: the others have one then.
_COPY_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
_MAX_WORD_POSITION = 16_383
_MAX_POSITIONS_PER_WORD = 255
_MAX_STEM_CHARS = 500  # of up to four bytes each
# What follows a stem at each position; `A` is the highest weight.
_POSITION_TEXTS = [f":{word_position}A" for word_position in range(1, _MAX_POSITIONS_PER_WORD + 1)]
_EMPTY_TSVECTOR = struct.pack(">i", 0)
_EMPTY_TSVECTOR_FIELD = struct.pack(">i", len(_EMPTY_TSVECTOR)) + _EMPTY_TSVECTOR
# The highest weight, for which the rank of a stem tells how often it stands there.
_HIGHEST_WEIGHT = 0xC000
# Between a stem and its positions stand a zero and how many there are: by their bytes, two each.
_ENCODED_BYTE_COUNTS = [
    struct.pack(">xH", positions_byte_count // 2)
    for positions_byte_count in range(2 * _MAX_POSITIONS_PER_WORD + 1)
]
_ROWS_PER_BLOCK = 200
_MAX_FOUND_STEM_BYTES = 16
# PostgreSQL estimates each value of a list by itself, for milliseconds; of a longer one it is
# told nothing but how many there are.
_MAX_ESTIMATED_VALUES = 50


def build_clauses(
    filter_conditions: Iterable[Condition], column_field_names: Sequence[str]
) -> tuple[list[str], list[Any]]:
    """Return the conditions of a filter in SQL, and the values in them."""
    sql_clauses: list[str] = []
    clause_values: list[Any] = []
    for filter_condition in filter_conditions:
        if isinstance(filter_condition, In):
            value_texts = [encode_json(filter_value) for filter_value in filter_condition.values]
            is_plain = all(
                isinstance(filter_value, str | bool) for filter_value in filter_condition.values
            )
            if is_plain and filter_condition.field_name in column_field_names:
                sql_clauses.append(
                    f"field_{filter_condition.field_name} = ANY(?::text[])"
                    if len(value_texts) <= _MAX_ESTIMATED_VALUES
                    else f"field_{filter_condition.field_name} IN (SELECT unnest(?::text[]))"
                )
                clause_values.append(format_texts(value_texts))
            else:
                sql_clauses.append("metadata -> ? = ANY(?::jsonb[])")
                clause_values += [filter_condition.field_name, value_texts]
            continue
        is_column = filter_condition.field_name in column_field_names
        value_sql = (
            f"field_{filter_condition.field_name}::jsonb" if is_column else "(metadata -> ?)"
        )
        bound_operators = [("", None), (">=", filter_condition.low), ("<=", filter_condition.high)]
        for operator_sql, bound_value in bound_operators:
            if operator_sql and bound_value is None:
                continue
            if not is_column:
                clause_values.append(filter_condition.field_name)
            sql_clauses.append(
                f"{value_sql} {operator_sql} ?::jsonb"
                if operator_sql
                else f"jsonb_typeof({value_sql}) = 'number'"
            )
            if operator_sql:
                clause_values.append(encode_json(bound_value))
    return sql_clauses, clause_values


def format_texts(texts: Sequence[str]) -> str:
    """Return texts as a parameter that is cast to `text[]`."""
    escaped_texts = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{escaped_text}"' for escaped_text in escaped_texts) + "}"


def decode_vectors(encoded_vectors: Sequence[bytes]) -> Floats:
    """Return vectors as PostgreSQL sends them in binary form."""
    if not encoded_vectors:
        return np.empty((0, 0), np.float32)
    joined_bytes = np.frombuffer(b"".join(encoded_vectors), np.uint8).reshape(
        len(encoded_vectors), -1
    )
    # Before the numbers each has its dimensions and a spare field, of two bytes each.
    return np.ascontiguousarray(joined_bytes[:, 4:]).view(">f4").astype(np.float32)


def format_vector(float_vector: Floats) -> str:
    """Return a vector as a parameter of a statement."""
    # As doubles in full, which are read back as the same numbers of single precision.
    return "[" + ",".join(map(repr, float_vector.astype(float).tolist())) + "]"


def encode_chunk_rows(chunks: Chunks, stem_lists: Sequence[Stems]) -> Iterator[bytes]:
    """Yield chunks with the stems of their texts for COPY."""

    def encode_row(chunk_index: int) -> bytes:
        chunk_metadata = {
            metadata_name: metadata_value
            for metadata_name, metadata_value in chunks.metadatas[chunk_index].items()
            if metadata_value is not None
        }
        return b"".join(
            (
                struct.pack(">h", 5),
                _encode_field(clean_text(chunks.ids[chunk_index]).encode()),
                _encode_field(clean_text(chunks.texts[chunk_index]).encode()),
                # One byte says which version of the binary form of JSON follows.
                _encode_field(b"\x01" + encode_json(chunk_metadata).encode()),
                _encode_field(_encode_words(stem_lists[chunk_index])),
                _encode_field(struct.pack(">i", len(stem_lists[chunk_index]))),
            )
        )

    yield from _encode_rows(len(chunks), encode_row)


def _encode_rows(row_count: int, encode_row: Any) -> Iterator[bytes]:
    yield _COPY_HEADER
    for first_row_number in range(0, row_count, _ROWS_PER_BLOCK):
        yield b"".join(
            map(
                encode_row,
                range(first_row_number, min(row_count, first_row_number + _ROWS_PER_BLOCK)),
            )
        )
    yield _COPY_TRAILER


def _encode_field(field_bytes: bytes | None) -> bytes:
    return (
        struct.pack(">i", -1)
        if field_bytes is None
        else struct.pack(">i", len(field_bytes)) + field_bytes
    )


def _encode_words(stems: Stems) -> bytes:
    """Return a tsvector: each stem with the positions that it stands at."""
    if not stems:
        return _EMPTY_TSVECTOR
    stored_stems = stems if max(map(len, stems)) < _MAX_STEM_CHARS else list(map(cut_stem, stems))
    encoded_positions = _encode_positions()
    position_bytes_by_stem: dict[str, bytes] = {}
    for stem, position_bytes in zip(stored_stems, encoded_positions, strict=False):
        position_bytes_by_stem[stem] = position_bytes_by_stem.get(stem, b"") + position_bytes
    if len(stored_stems) > len(encoded_positions):
        position_bytes_by_stem = dict.fromkeys(stored_stems, b"") | position_bytes_by_stem
    encoded_words = [struct.pack(">i", len(position_bytes_by_stem))]
    if len(stored_stems) > _MAX_POSITIONS_PER_WORD:
        position_bytes_by_stem = {
            stem: joined_positions[: 2 * _MAX_POSITIONS_PER_WORD]
            for stem, joined_positions in position_bytes_by_stem.items()
        }
    for stem, joined_positions in position_bytes_by_stem.items():
        encoded_words += (
            stem.encode(),
            _ENCODED_BYTE_COUNTS[len(joined_positions)],
            joined_positions,
        )
    return b"".join(encoded_words)


@cache
def _encode_positions() -> list[bytes]:
    """Return each position from 1 on as a tsvector has it."""
    return [
        struct.pack(">H", word_position | _HIGHEST_WEIGHT)
        for word_position in range(1, _MAX_WORD_POSITION + 1)
    ]


def decode_words(word_bytes: bytes) -> Iterator[tuple[str, int]]:
    """Yield the stems of a tsvector as PostgreSQL sends it, each with how often it occurs."""
    byte_offset = 4
    while byte_offset < len(word_bytes):
        stem_end_offset = word_bytes.index(b"\0", byte_offset)
        (position_count,) = struct.unpack_from(">H", word_bytes, stem_end_offset + 1)
        # PostgreSQL keeps no position of a word that stands too far behind.
        yield word_bytes[byte_offset:stem_end_offset].decode(), max(position_count, 1)
        byte_offset = stem_end_offset + 3 + 2 * position_count


class StemFinder:
    """Finds which of many tsvectors have some stems, with numpy: a fifth of `decode_words`.

    Stems of more than 16 bytes are not looked for: as two numbers each, all are compared at once.
    """

    def __init__(self, stems: Iterable[str]) -> None:
        short_stems = [stem for stem in stems if 0 < len(stem.encode()) <= _MAX_FOUND_STEM_BYTES]
        encoded_stems = np.array([stem.encode() for stem in short_stems], "S16")
        number_pairs = encoded_stems.view("<u8").astype(np.uint64).reshape(-1, 2)
        # Of stems with the same hash only one would be found; the others are left out.
        self._hashes, stem_indexes = np.unique(
            _hash_stems(number_pairs[:, 0], number_pairs[:, 1]), return_index=True
        )
        self._first_eight_bytes, self._next_eight_bytes = number_pairs[stem_indexes].T.copy()
        self.stems = tuple(short_stems[stem_index] for stem_index in stem_indexes)
        """Those that are looked for."""

    def find_stems(
        self, encoded_words: Sequence[bytes]
    ) -> tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.int64]"]:
        """Return the place of each stem found, that of its tsvector, and how often it occurs.

        The tsvectors are as PostgreSQL sends them. Raise `ValueError` for others.
        """
        # Each begins with the number of its stems.
        joined_vectors = b"".join([encoded_vector[4:] for encoded_vector in encoded_words])
        vector_end_offsets = np.cumsum(np.fromiter(map(len, encoded_words), np.int64) - 4)
        all_bytes = np.frombuffer(joined_vectors + bytes(_MAX_FOUND_STEM_BYTES), np.uint8)
        # Two zeros end a stem: the second begins the number of its positions, below 256, and all
        # positions begin with the bits of the highest weight.
        zero_byte_mask = all_bytes == 0
        zero_byte_mask[len(joined_vectors) :] = False
        stem_end_offsets = (
            np.flatnonzero(~zero_byte_mask[:-2] & zero_byte_mask[1:-1] & zero_byte_mask[2:]) + 1
        )
        position_counts = all_bytes[stem_end_offsets + 2].astype(np.int64)
        stem_start_offsets = np.roll(stem_end_offsets + 3 + 2 * position_counts, 1)
        stem_start_offsets[:1] = 0
        stem_lengths = stem_end_offsets - stem_start_offsets
        expected_stem_count = sum(
            int.from_bytes(encoded_vector[:4], "big") for encoded_vector in encoded_words
        )
        if len(stem_end_offsets) != expected_stem_count or (stem_lengths <= 0).any():
            raise ValueError("the words of a chunk are not as PostgreSQL sends them")
        # Eight bytes from each place on, as a number, of which those after the stem are left out.
        byte_masks = np.array(
            [(1 << 8 * positions_byte_count) - 1 for positions_byte_count in range(9)], np.uint64
        )
        numbers_by_offset = np.ndarray((len(all_bytes) - 7,), "<u8", all_bytes, strides=(1,))
        first_eight_bytes = (
            numbers_by_offset[stem_start_offsets] & byte_masks[np.minimum(stem_lengths, 8)]
        )
        next_eight_bytes = (
            numbers_by_offset[stem_start_offsets + 8] & byte_masks[np.clip(stem_lengths - 8, 0, 8)]
        )
        stem_indexes = np.searchsorted(
            self._hashes, _hash_stems(first_eight_bytes, next_eight_bytes)
        )
        stem_indexes[stem_indexes == len(self._hashes)] = 0
        found_mask = (
            (self._first_eight_bytes[stem_indexes] == first_eight_bytes)
            & (self._next_eight_bytes[stem_indexes] == next_eight_bytes)
            & (stem_lengths <= _MAX_FOUND_STEM_BYTES)
        )
        return (
            stem_indexes[found_mask],
            np.searchsorted(vector_end_offsets, stem_end_offsets[found_mask], side="right"),
            # PostgreSQL keeps no position of a word that stands too far behind.
            np.maximum(position_counts[found_mask], 1),
        )


def _hash_stems(
    first_eight_bytes: "NDArray[np.uint64]", next_eight_bytes: "NDArray[np.uint64]"
) -> "NDArray[np.uint64]":
    hashes: NDArray[np.uint64] = first_eight_bytes * np.uint64(
        0x9E3779B97F4A7C15
    ) ^ next_eight_bytes * np.uint64(0xC2B2AE3D27D4EB4F)
    return hashes


def encode_words_rows(numbered_rows: Sequence[tuple[int, Sequence[Stems]]]) -> Iterator[bytes]:
    """Yield numbered passages for COPY: the stems of each of their fields, and how many in all."""

    def encode_row(row_index: int) -> bytes:
        passage_number, field_stems = numbered_rows[row_index]
        return b"".join(
            (
                struct.pack(">h", 2 + len(field_stems)),
                _encode_field(struct.pack(">q", passage_number)),
                *[
                    _encode_field(_encode_words(stems)) if stems else _EMPTY_TSVECTOR_FIELD
                    for stems in field_stems
                ],
                _encode_field(struct.pack(">q", sum(map(len, field_stems)))),
            )
        )

    yield from _encode_rows(len(numbered_rows), encode_row)


def format_words_rows(rows: Sequence[tuple[int, Sequence[Stems]]]) -> bytes | None:
    """Return what `encode_words_rows` yields in COPY's text format; None if a field is too long.

    The database groups the positions of a stem then, which costs it less than it costs here. Stems
    of letters and digits need no escapes; for others None is returned too.
    """
    text_rows = []
    for passage_number, field_stems in rows:
        stem_counts = list(map(len, field_stems))
        if max(stem_counts) > _MAX_POSITIONS_PER_WORD:
            return None
        joined_stems_text = "".join(chain.from_iterable(field_stems))
        if joined_stems_text and not joined_stems_text.isalnum():
            return None
        field_texts = [" ".join(map(add, stems, _POSITION_TEXTS)) for stems in field_stems]
        text_rows.append("\t".join((str(passage_number), *field_texts, f"{sum(stem_counts)}\n")))
    return "".join(text_rows).encode()


def format_phrase(stems: Stems) -> str:
    """Return a tsquery for stems that follow each other."""
    return "(" + " <-> ".join(map(quote_lexeme, stems)) + ")"


def quote_lexeme(stem: str) -> str:
    """Return a stem so that no character of it is taken for an operator."""
    return "'" + stem.replace("\\", "\\\\").replace("'", "''") + "'"


def cut_stem(stem: str) -> str:
    """Return a stem as it is stored: a word of any length does not fit."""
    return stem[:_MAX_STEM_CHARS]


def encode_json(json_value: object) -> str:
    """Return a value as PostgreSQL's jsonb writes it, which filters compare as text."""
    return clean_text(
        json.dumps(
            dict(json_value) if isinstance(json_value, Mapping) else json_value, ensure_ascii=False
        ).replace("\\u0000", "\N{REPLACEMENT CHARACTER}")
    )


def encode_vectors(chunks: Chunks, column_field_names: Sequence[str]) -> Iterator[bytes]:
    """Yield the vectors of chunks, with the values of these fields, for COPY."""
    vectors = np.ascontiguousarray(chunks.vectors, dtype=">f4")
    vector_header = struct.pack(">HH", vectors.shape[1] if len(chunks) else 0, 0)
    encoded_column_count = struct.pack(">h", 2 + len(column_field_names))

    def encode_row(chunk_index: int) -> bytes:
        chunk_metadata = chunks.metadatas[chunk_index]
        encoded_fields = b"".join(
            _encode_field(
                encode_json(chunk_metadata[field_name]).encode()
                if chunk_metadata.get(field_name) is not None
                else None
            )
            for field_name in column_field_names
        )
        encoded_chunk_id = _encode_field(clean_text(chunks.ids[chunk_index]).encode())
        return (
            encoded_column_count
            + encoded_chunk_id
            + encoded_fields
            + _encode_field(vector_header + vectors[chunk_index].tobytes())
        )

    yield from _encode_rows(len(chunks), encode_row)


def encode_text_rows(rows: Sequence[Sequence[Any]]) -> bytes | None:
    """Return rows for COPY in its text format; None if they have values other than these.

    Texts, whole numbers and None are encoded, whole columns at a time; a text with a zero, which
    PostgreSQL refuses, is not.
    """
    encoded_columns = [_encode_column(column_values) for column_values in zip(*rows, strict=True)]
    if any(encoded_column is None for encoded_column in encoded_columns):
        return None
    encoded_rows = map("\t".join, zip(*encoded_columns, strict=True))
    return ("\n".join(encoded_rows) + "\n").encode()


def _encode_column(column_values: Sequence[Any]) -> Sequence[str] | None:
    value_types = set(map(type, column_values))
    if value_types == {int}:
        return list(map(str, column_values))
    if value_types <= {int, NoneType}:
        return [
            "\\N" if column_value is None else str(column_value) for column_value in column_values
        ]
    if not all(value_type is NoneType or issubclass(value_type, str) for value_type in value_types):
        return None
    if NoneType not in value_types:
        return _escape_texts(column_values)
    escaped_texts = _escape_texts([column_value or "" for column_value in column_values])
    return escaped_texts and [
        "\\N" if column_value is None else escaped_text
        for column_value, escaped_text in zip(column_values, escaped_texts, strict=True)
    ]


def _escape_texts(field_texts: Sequence[str]) -> Sequence[str] | None:
    """Return texts with what COPY would misread escaped; None if it refuses them."""
    joined_text = "".join(field_texts)
    # PostgreSQL's `text` takes no U+0000, and its `jsonb` no escape that stands for one.
    if "\0" in joined_text or "\\u0000" in joined_text:
        return None
    for character, escaped_character in _COPY_ESCAPES:
        if character in joined_text:
            field_texts = [
                field_text.replace(character, escaped_character) for field_text in field_texts
            ]
    return field_texts
