"""Splits texts into the stems that the word index is made of."""

import sqlite3
import threading
from collections.abc import Iterable
from functools import cache

from readingroom.engine.words import split_significant_words, tokenizer_spec

# Every word of a large corpus, with its stem: about 20 MB.
_MAX_REMEMBERED = 200_000


class Stemmer:
    """FTS5's own stems, so that a passage has a word here exactly when the index says so.

    SQLite exposes its tokenizer only through a table. Each word passes through one once and is
    remembered, since texts repeat their words.
    """

    def __init__(self) -> None:
        self._stems: dict[str, str] = {}
        self._splitting = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute(
            f"CREATE VIRTUAL TABLE words USING fts5(word, content = '', "
            f'tokenize = "{tokenizer_spec()}")'
        )
        self._db.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")

    def split(self, text: str) -> list[str]:
        """Return the stems of a text in reading order, without stop words."""
        return [stem for _, stem in self.split_with_words(text)]

    def split_with_words(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text with their stems, without stop words."""
        words = split_significant_words(text)
        self._learn(words)
        stems = self._stems
        return [(word, stems.get(word, word)) for word in words]

    def _learn(self, words: Iterable[str]) -> None:
        """Find the stems of words that were not seen before."""
        unknown = sorted({word for word in words if word not in self._stems})
        if not unknown:
            return
        with self._splitting:
            self._db.execute("INSERT INTO words(words) VALUES ('delete-all')")
            self._db.executemany("INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(unknown))
            # A word that FTS5 splits further is known by its first part.
            rows = self._db.execute("SELECT doc, term FROM stems ORDER BY doc, offset DESC")
            stems = {unknown[row]: stem for row, stem in rows}
            if len(self._stems) + len(stems) > _MAX_REMEMBERED:
                self._stems = {}
            self._stems.update(stems)


@cache
def shared_stemmer() -> Stemmer:
    """Return the stemmer of this process."""
    return Stemmer()
