"""Splits texts into the stems that the word index is made of, and counts them."""

import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from readingroom.core.call_once import call_once
from readingroom.core.lru import LRUCache
from readingroom.engine.words import (
    count_significant_words,
    make_fts5_tokenizer_option,
    split_significant_words,
    split_words,
)

# Every word of a large corpus, with its stem: about 20 MB.
_MAX_REMEMBERED_STEMS = 200_000


class Stemmer:
    """FTS5's own stems, so that a passage has a word here exactly when the index says so.

    SQLite exposes its tokenizer only through a table. Each word passes through one once and is
    remembered, since texts repeat their words.
    """

    def __init__(self) -> None:
        self._stems_by_word: dict[str, str] = {}
        self._splitting_lock = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute(
            f"CREATE VIRTUAL TABLE words USING fts5(word, content = '', "
            f'tokenize = "{make_fts5_tokenizer_option()}")'
        )
        self._db.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")

    def stem_significant_words(self, text: str) -> list[str]:
        """Return the stems of a text in reading order, without stop words."""
        return [stem for _, stem in self.split_words_with_stems(text)]

    def count_stems_of_texts(self, texts: Iterable[str]) -> list[dict[str, int]]:
        """Return the stems of each text in reading order, with how often it has each of them.

        Stop words are left out. Words that are new pass through FTS5 together.
        """
        # Words are counted first, which Python does quickly: most of a text are repetitions.
        word_counts_of_texts = [count_significant_words(text) for text in texts]
        stems_by_word = self._map_words_to_stems(list(chain.from_iterable(word_counts_of_texts)))
        stem_counts_of_texts = []
        for word_counts in word_counts_of_texts:
            stem_counts: dict[str, int] = {}
            for word, word_count in word_counts.items():
                stem = stems_by_word.get(word, word)
                stem_counts[stem] = stem_counts.get(stem, 0) + word_count
            stem_counts_of_texts.append(stem_counts)
        return stem_counts_of_texts

    def split_words_with_stems(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text with their stems, without stop words."""
        significant_words = split_significant_words(text)
        stems_by_word = self._map_words_to_stems(significant_words)
        return [(word, stems_by_word.get(word, word)) for word in significant_words]

    def stem_all_words(self, text: str) -> list[str]:
        """Return the stems of all words of a text in reading order, as FTS5 indexes them."""
        return self.stem_all_words_of_texts([text])[0]

    def stem_all_words_of_texts(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the same of each of many texts; words that are new pass through FTS5 together."""
        words_of_texts = [list(split_words(text)) if text else [] for text in texts]
        stems_by_word = self._map_words_to_stems(list(chain.from_iterable(words_of_texts)))
        return [
            list(map(stems_by_word.get, words_of_text, words_of_text))
            for words_of_text in words_of_texts
        ]

    def _map_words_to_stems(self, words: Sequence[str]) -> Mapping[str, str]:
        """Return the stems of these words, and of others that were seen before."""
        stems_by_word = self._stems_by_word
        # A number is its own stem; there are too many different ones to remember.
        if all(map(_has_only_digits, set(words).difference(stems_by_word))):
            return stems_by_word
        with self._splitting_lock:
            # A full memory is replaced, not emptied: others may be reading it.
            if len(self._stems_by_word) > _MAX_REMEMBERED_STEMS:
                self._stems_by_word = {}
            unknown_words = sorted(
                word
                for word in set(words).difference(self._stems_by_word)
                if not _has_only_digits(word)
            )
            self._db.execute("INSERT INTO words(words) VALUES ('delete-all')")
            self._db.executemany(
                "INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(unknown_words)
            )
            # A word that FTS5 splits further is known by its first part.
            stem_rows = self._db.execute("SELECT doc, term FROM stems ORDER BY doc, offset DESC")
            self._stems_by_word.update(
                {unknown_words[word_number]: stem for word_number, stem in stem_rows}
            )
            return self._stems_by_word


def _has_only_digits(word: str) -> bool:
    return word.isascii() and word.isdecimal()


@call_once
def get_shared_stemmer() -> Stemmer:
    """Return the stemmer of this process."""
    return Stemmer()


# A question looks at a few hundred passages, and the next ones largely at the same: 20 MB.
_RECENT_STEM_COUNTS_BY_TEXT: LRUCache[str, Mapping[str, int]] = LRUCache(4000)


def count_stems(text: str) -> Mapping[str, int]:
    """Return the stems of a text, each with how often it has it; not to be changed."""
    return count_stems_of_texts([text])[text]


def count_stems_of_texts(texts: Iterable[str]) -> dict[str, Mapping[str, int]]:
    """Return the same of many texts, by text."""
    stem_counts_by_text = {}
    uncached_texts = []
    for text in dict.fromkeys(texts):
        if (cached_stem_counts := _RECENT_STEM_COUNTS_BY_TEXT.get(text)) is None:
            uncached_texts.append(text)
        else:
            stem_counts_by_text[text] = cached_stem_counts
    for text, stem_counts in zip(
        uncached_texts, get_shared_stemmer().count_stems_of_texts(uncached_texts), strict=True
    ):
        stem_counts_by_text[text] = stem_counts
        _RECENT_STEM_COUNTS_BY_TEXT.put(text, stem_counts)
    return stem_counts_by_text


@lru_cache(maxsize=4000)
def count_words(passage_text: str) -> int:
    """Return how many words a text has between its blanks."""
    return len(passage_text.split())
