"""Knows how official texts say what people ask for in other words.

Who asks about a stream in a pipe is answered by a passage about a culvert. `vocabulary.tsv` has an
everyday wording a line, and after a tab the official terms for it. We wrote it ourselves, knowing
none of the questions by which searches are measured.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain

from readingroom.engine.stems import shared_stemmer
from readingroom.engine.words import split_words

_FILE_NAME = "vocabulary.tsv"
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
    official_terms: tuple[tuple[str, ...], ...]

    def list_stems(self) -> list[str]:
        """Return the stems of the wording and of all its terms."""
        return [*self.stems, *chain.from_iterable(self.official_terms)]


class Vocabulary:
    """Everyday wordings with their official terms, by the stems of the wordings."""

    def __init__(self, vocabulary_lines: str) -> None:
        rows = [line.split("\t") for line in vocabulary_lines.splitlines()]
        # All at once: each call of the stemmer that meets a new word asks the database.
        shared_stemmer().split_all(" ".join(wording for wording, _ in rows))
        self._terms_by_stems = {_split_wording(wording): terms for wording, terms in rows}
        self._longest_wording = max(map(len, self._terms_by_stems), default=0)

    def find_wordings(self, question: str) -> list[Wording]:
        """Return the wordings of a question that have official terms, longer ones first.

        No two of them share a word: of "cheap home" neither "cheap" nor "home" is looked up.
        """
        question_stems = _split_wording(question)
        wordings: list[Wording] = []
        is_taken = [False] * len(question_stems)
        for length in range(self._longest_wording, 0, -1):
            for start in range(len(question_stems) - length + 1):
                end = start + length
                stems = question_stems[start:end]
                if stems in self._terms_by_stems and not any(is_taken[start:end]):
                    is_taken[start:end] = [True] * length
                    wordings.append(Wording(stems, self._list_official_terms(stems)))
        return wordings

    def _list_official_terms(self, wording_stems: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        official_terms = self._terms_by_stems[wording_stems].split(";")
        return tuple(
            tuple(dict.fromkeys(shared_stemmer().split_stems(official_term)))
            for official_term in official_terms
        )


def _split_wording(text: str) -> tuple[str, ...]:
    """Return the stems of the words that tell one wording from another."""
    words_with_stems = zip(split_words(text), shared_stemmer().split_all(text), strict=True)
    return tuple(stem for word, stem in words_with_stems if word not in _FILLER_WORDS)


@cache
def load_vocabulary() -> Vocabulary:
    """Return the vocabulary that comes with the engine."""
    return Vocabulary(files(__package__).joinpath(_FILE_NAME).read_text("utf-8"))
