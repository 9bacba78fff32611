"""Knows how official texts say what people ask for in other words.

Who asks about a stream in a pipe is answered by a passage about a culvert. `vocabulary.tsv` has an
everyday wording a line, and after a tab the official terms for it. We wrote it ourselves, knowing
none of the questions by which searches are measured.
"""

import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import chain

from readingroom.core.call_once import call_once
from readingroom.engine.stems import get_shared_stemmer
from readingroom.engine.words import split_words

_VOCABULARY_FILE_NAME = "vocabulary.tsv"
# How many letters of a wording decide whether it is looked at. A stem has the first two letters of
# its word, but not always a third: "ageing" has "ag".
_FIRST_LETTER_COUNT = 2
# Fewer than the stop words of a search: "go up" and "go down", "how long" and "how much" differ.
_FILLER_WORDS = frozenset(
    split_words(
        """
        a an and any are as at be been being by can could did do does for from had has have i if
        in is it its me my of on or our shall should so some that the their them there these they
        this those to us was we were will with would you your
        """
    )
)


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of a question, and what official texts may say instead; all of them as stems."""

    stems: tuple[str, ...]
    official_term_stems: tuple[tuple[str, ...], ...]

    def list_stems(self) -> list[str]:
        """Return the stems of the wording and of all its terms."""
        return [*self.stems, *chain.from_iterable(self.official_term_stems)]


class Vocabulary:
    """Everyday wordings with their official terms, by the stems of the wordings."""

    def __init__(self, vocabulary_text: str) -> None:
        wording_rows = [
            vocabulary_line.split("\t") for vocabulary_line in vocabulary_text.splitlines()
        ]
        # Stemming all 21,000 wordings would take ten times as long as the search: only those that
        # begin like a word of some question are.
        self._rows_by_beginning: dict[str, list[list[str]]] = defaultdict(list)
        for wording_row in wording_rows:
            self._rows_by_beginning[_get_first_letters(wording_row[0])].append(wording_row)
        self._terms_text_by_stems: dict[tuple[str, ...], str] = {}
        self._longest_wording_length = 0
        self._stemming_lock = threading.Lock()

    def find_wordings(self, question_text: str) -> list[Wording]:
        """Return the wordings of a question that have official terms, longer ones first.

        No two of them share a word: of "cheap home" neither "cheap" nor "home" is looked up.
        """
        question_stems = _stem_wording(question_text)
        self._stem_wordings({stem[:_FIRST_LETTER_COUNT] for stem in question_stems})
        wordings: list[Wording] = []
        taken_stem_mask = [False] * len(question_stems)
        for wording_length in range(min(self._longest_wording_length, len(question_stems)), 0, -1):
            for start_index in range(len(question_stems) - wording_length + 1):
                end_index = start_index + wording_length
                wording_stems = question_stems[start_index:end_index]
                if wording_stems in self._terms_text_by_stems and not any(
                    taken_stem_mask[start_index:end_index]
                ):
                    taken_stem_mask[start_index:end_index] = [True] * wording_length
                    wordings.append(
                        Wording(wording_stems, self._list_official_terms(wording_stems))
                    )
        return wordings

    def stem_all_wordings(self) -> None:
        """Stem every wording now, so that no question has to wait for some."""
        self._stem_wordings(set(self._rows_by_beginning))

    def _stem_wordings(self, wording_beginnings: set[str]) -> None:
        """Stem the wordings with these beginnings, unless an earlier question has had it done."""
        with self._stemming_lock:
            wording_rows = [
                wording_row
                for wording_beginning in wording_beginnings & self._rows_by_beginning.keys()
                for wording_row in self._rows_by_beginning.pop(wording_beginning)
            ]
            # All at once: each call of the stemmer that meets a new word asks the database.
            get_shared_stemmer().stem_all_words(
                " ".join(wording_text for wording_text, _ in wording_rows)
            )
            for wording_text, official_terms_text in wording_rows:
                wording_stems = _stem_wording(wording_text)
                self._terms_text_by_stems[wording_stems] = official_terms_text
                self._longest_wording_length = max(self._longest_wording_length, len(wording_stems))

    def _list_official_terms(self, wording_stems: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        official_term_texts = self._terms_text_by_stems[wording_stems].split(";")
        return tuple(map(_stem_official_term, official_term_texts))


@lru_cache(maxsize=4000)
def _stem_official_term(official_term: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(get_shared_stemmer().stem_significant_words(official_term)))


def _get_first_letters(wording_text: str) -> str:
    """Return the first letters of the first word that tells the wording from another."""
    first_word = wording_text.partition(" ")[0]
    # Most wordings begin with such a word, and the slower way takes ten times as long.
    if first_word in _FILLER_WORDS or not first_word.isalpha():
        telling_words = (word for word in split_words(wording_text) if word not in _FILLER_WORDS)
        first_word = next(telling_words, "")
    return first_word[:_FIRST_LETTER_COUNT]


def _stem_wording(wording_text: str) -> tuple[str, ...]:
    """Return the stems of the words that tell one wording from another."""
    words_with_stems = zip(
        split_words(wording_text), get_shared_stemmer().stem_all_words(wording_text), strict=True
    )
    return tuple(stem for word, stem in words_with_stems if word not in _FILLER_WORDS)


# Each base that is asked ranks its passages by the same question.
@lru_cache(maxsize=64)
def find_wordings(question_text: str) -> Sequence[Wording]:
    """Return the wordings of a question in the vocabulary that comes with the engine."""
    return tuple(get_vocabulary().find_wordings(question_text))


@call_once
def get_vocabulary() -> Vocabulary:
    """Return the vocabulary that comes with the engine."""
    return Vocabulary(files(__package__).joinpath(_VOCABULARY_FILE_NAME).read_text("utf-8"))


def preload_vocabulary() -> None:
    """Load the whole vocabulary in advance, for a process that will be asked many questions."""
    get_vocabulary().stem_all_wordings()
