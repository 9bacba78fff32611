"""Texts to token ids, by a memory of the words that were seen before.

A WordPiece tokenizer treats each word between blanks by itself, so its ids can be remembered by
word. That is some ten times as fast as to cut every text anew, and gives the same ids.
"""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from readingroom.core.arrays import NDArray, np

if TYPE_CHECKING:
    from tokenizers import Tokenizer


MAX_REMEMBERED_WORDS = 1_000_000
"""Some 150 MB when all are remembered."""
# Python splits a text at these, but a BERT normaliser removes them and joins what is around them.
_REMOVED_BLANKS_PATTERN = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
# Of a word of plain characters: its letters and digits together, every other character alone.
_WORD_OR_SIGN_PATTERN = re.compile("[a-z0-9]+|[^a-z0-9]")
_MAX_TOKEN_ID = 65_535  # in 16 bits


@dataclass(frozen=True)
class TokenizedTexts:
    """The token ids of many texts, one after the other, and how many each text has."""

    ids: "NDArray[np.uint16] | NDArray[np.int64]"
    lengths: "NDArray[np.int32]"

    @functools.cached_property
    def starts(self) -> "NDArray[np.int64]":
        """Where the ids of each text begin."""
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths


class RememberingTokenizer:
    """Gives the ids that a BERT tokenizer gives, and remembers those of so many words."""

    def __init__(
        self,
        tokenizer: "Tokenizer",
        max_tokens: int,
        max_remembered_words: int = MAX_REMEMBERED_WORDS,
    ) -> None:
        """Raise `ValueError` when the tokenizer is of another kind, or its vocabulary too large."""
        tokenizer_description = json.loads(tokenizer.to_str())
        _check_tokenizer_kind(tokenizer_description)
        special_token_texts = [
            added_token["content"] for added_token in tokenizer_description["added_tokens"]
        ]
        self._tokenizer = tokenizer
        self._has_special_token = re.compile("|".join(map(re.escape, special_token_texts))).search
        self._ids_by_word = _TokenIdsByWord(
            tokenizer, tokenizer_description["model"], max_remembered_words
        )
        first_token_id, last_token_id = tokenizer.encode("").ids
        self._packed_first_token, self._packed_last_token = (
            _pack_token_ids([first_token_id]),
            _pack_token_ids([last_token_id]),
        )
        self._max_id_bytes = (max_tokens - 2) * 2

    def encode_texts(self, texts: Sequence[str]) -> TokenizedTexts:
        """Return the ids of the texts, with the tokens for beginning and end, each cut to size."""
        packed_ids_of_texts = [self._encode_text(text) for text in texts]
        token_counts = (
            np.fromiter(map(len, packed_ids_of_texts), np.int32, len(packed_ids_of_texts)) // 2
        )
        return TokenizedTexts(
            np.frombuffer(bytearray().join(packed_ids_of_texts), np.uint16), token_counts
        )

    def _encode_text(self, text: str) -> bytes:
        if _REMOVED_BLANKS_PATTERN.search(text) or ("[" in text and self._has_special_token(text)):
            token_id_bytes = _pack_token_ids(
                self._tokenizer.encode(text, add_special_tokens=False).ids
            )
        else:
            token_id_bytes = b"".join(map(self._ids_by_word.__getitem__, text.split()))
        return (
            self._packed_first_token
            + token_id_bytes[: self._max_id_bytes]
            + self._packed_last_token
        )


class LibraryTokenizer:
    """Gives the ids of a tokenizer of any kind, by the library."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer

    def encode_texts(self, texts: Sequence[str]) -> TokenizedTexts:
        """Return the ids of the texts, as the tokenizer begins, ends and cuts them."""
        token_ids_of_texts = [
            encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))
        ]
        token_counts = np.fromiter(map(len, token_ids_of_texts), np.int32, len(token_ids_of_texts))
        return TokenizedTexts(
            np.array([*chain.from_iterable(token_ids_of_texts)], np.int64), token_counts
        )


class _TokenIdsByWord(dict[str, bytes]):
    """By word, the ids of its tokens; a word that is not known yet is looked up."""

    def __init__(
        self,
        tokenizer: "Tokenizer",
        model_description: Mapping[str, Any],
        max_remembered_words: int,
    ) -> None:
        super().__init__()
        self._max_remembered_words = max_remembered_words
        self._tokenizer = tokenizer
        self._vocabulary: dict[str, int] = model_description["vocab"]
        self._unknown_id = self._vocabulary[model_description["unk_token"]]
        self._continuing_prefix: str = model_description["continuing_subword_prefix"]
        self._max_word_length: int = model_description["max_input_chars_per_word"]

    def __missing__(self, word: str) -> bytes:
        if len(self) >= self._max_remembered_words:
            self.clear()
        word_or_sign_parts = (
            _WORD_OR_SIGN_PATTERN.findall(word.lower())
            if word.isascii() and word.isprintable()
            else []
        )
        if not word_or_sign_parts:
            token_id_bytes = _pack_token_ids(
                self._tokenizer.encode(word, add_special_tokens=False).ids
            )
        elif word_or_sign_parts == [word]:
            token_id_bytes = _pack_token_ids(self._list_piece_ids(word))
        else:
            token_id_bytes = b"".join(map(self.__getitem__, word_or_sign_parts))
        self[word] = token_id_bytes
        return token_id_bytes

    def _list_piece_ids(self, word: str) -> list[int]:
        """Cut a word of small letters and digits, or one other character, into known pieces.

        Always the longest that fits, as WordPiece does. In Python, because asking the library for
        one word takes five times as long.
        """
        if len(word) > self._max_word_length:
            return [self._unknown_id]
        piece_ids = []
        piece_start_offset, piece_prefix = 0, ""
        while piece_start_offset < len(word):
            for piece_end_offset in range(len(word), piece_start_offset, -1):
                piece_id = self._vocabulary.get(
                    piece_prefix + word[piece_start_offset:piece_end_offset]
                )
                if piece_id is not None:
                    break
            else:
                return [self._unknown_id]
            piece_ids.append(piece_id)
            piece_start_offset, piece_prefix = piece_end_offset, self._continuing_prefix
        return piece_ids


def _pack_token_ids(token_ids: list[int]) -> bytes:
    return np.array(token_ids, np.uint16).tobytes()


def _check_tokenizer_kind(tokenizer_description: Mapping[str, Any]) -> None:
    tokenizer_part_names = ("normalizer", "pre_tokenizer", "model")
    tokenizer_part_types = [
        (tokenizer_description[tokenizer_part_name] or {}).get("type")
        for tokenizer_part_name in tokenizer_part_names
    ]
    if tokenizer_part_types != ["BertNormalizer", "BertPreTokenizer", "WordPiece"]:
        raise ValueError(f"this tokenizer does not treat words one by one: {tokenizer_part_types}")
    if not tokenizer_description["normalizer"]["lowercase"]:
        raise ValueError("this tokenizer tells capitals from small letters")
    if len(tokenizer_description["model"]["vocab"]) > _MAX_TOKEN_ID:
        raise ValueError("the vocabulary of this tokenizer is too large for ids of 16 bits")
