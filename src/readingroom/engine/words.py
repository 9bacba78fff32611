"""Words of queries and texts: which words of a query are searched, and how FTS5 splits texts."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, starmap
from typing import Generic, TypeVar
from unicodedata import category, normalize, ucd_3_2_0

from readingroom.core.call_once import call_once

RememberedT = TypeVar("RememberedT")

MAX_QUERY_WORDS = 64
"""Words of a query that are searched; the cost of a search grows with each."""
# A query may be a million characters long, and its first words are enough.
_MAX_QUERY_CHARS = 20_000
_MAX_REMEMBERED_WORDS = 200_000  # about 20 MB

_QUOTED_PHRASE_PATTERN = re.compile(r"""(?<!\w)(?:"([^"]+)"|“([^“”]+)”)(?!\w)""")
_WORD_PATTERN = re.compile(r"[^\W_]+")
# Letters in lower case and digits, with spaces for all else.
_ASCII_TRANSLATION_TABLE = "".join(
    chr(character_code).lower() if chr(character_code).isalnum() else " "
    for character_code in range(128)
)
_LETTERS_AND_SPACES_PATTERN = re.compile(r"[\w\s]+")
# Where symbols newer than SQLite's Unicode may be. The large blocks in between hold only letters,
# or nothing; walking through them too would slow down the first search noticeably.
_SYMBOL_CODE_RANGES = (
    (0x80, 0x3400),
    (0x4DC0, 0x4E00),
    (0xA000, 0xAC00),
    (0xF900, 0x20000),
    (0xE0100, 0xE01F0),
)
# The private characters that PDFs use for the bullets of their symbol fonts.
_BULLET_CHARACTERS = "".join(map(chr, range(0xF020, 0xF100)))
# Words of nearly every English text, which say nothing about it, and what apostrophes split off.
_STOP_WORDS = frozenset(
    _WORD_PATTERN.findall(
        """
        a about above after again all also am an and any are as at be because been before being
        below between both but by can could did do does doing down during each few for from
        further get had has have having he her here hers herself him himself his how i if in
        into is it its itself just let me might more most must my myself no nor not now of off
        on once only or other our ours ourselves out over own same shall she should so some such
        than that the their theirs them themselves then there these they this those through to
        too under until up upon us very was we were what when where which while who whom whose
        why will with would you your yours yourself yourselves d ll m re s t ve
        """
    )
)


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query by words: phrases, which were in quotation marks, and single words."""

    phrases: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def match_expression(self) -> str | None:
        """The FTS5 expression; None when there is nothing to search for.

        A text must contain one of the phrases, if there are any, and words only improve its rank.
        Without phrases it must contain one of the words.
        """
        any_term_expression = _join_with_or((*self.phrases, *self.words))
        if self.phrases and self.words:
            return f"({_join_with_or(self.phrases)}) AND ({any_term_expression})"
        return any_term_expression or None


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A matching document; a higher score is a better match."""

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class LexicalStatistics:
    """How many documents there are, how long they are, and how many have a stem."""

    document_count: int
    average_length: float
    read_document_frequencies: Callable[[Sequence[str]], Mapping[str, int]]


class RememberedWords(Generic[RememberedT]):
    """What an index says of words, read once for all questions.

    Questions and passages repeat their words: to read them anew for each question would take as
    long as to compare its passages.
    """

    def __init__(self) -> None:
        self._value_by_word: dict[str, RememberedT] = {}

    def look_up_words(
        self, words: Sequence[str], read_values: Callable[[Sequence[str]], dict[str, RememberedT]]
    ) -> dict[str, RememberedT]:
        """Return the value of each word; `read_values` reads those that are not known yet."""
        values_by_word = self._value_by_word
        unknown_words = [word for word in words if word not in values_by_word]
        if unknown_words and len(values_by_word) > _MAX_REMEMBERED_WORDS:
            # A full memory is replaced, not emptied: others may be reading it.
            values_by_word = self._value_by_word = {}
            unknown_words = list(words)
        if unknown_words:
            values_by_word.update(read_values(unknown_words))
        return {word: values_by_word[word] for word in words}


@dataclass(frozen=True, slots=True)
class IndexedTerm:
    """A word of a query that an index has, as its stem."""

    word: str
    stem: str
    document_count: int


class WordMemory:
    """What was read of the words of an index in one state, which is anything that changes with it.

    A term is None where the index has it not.
    """

    def __init__(self, index_state: object) -> None:
        self.index_state = index_state
        self.document_frequencies: RememberedWords[int] = RememberedWords()
        self.terms: RememberedWords[IndexedTerm | None] = RememberedWords()


def sort_hits(hits: Iterable[LexicalHit]) -> list[LexicalHit]:
    """Return hits best first, equal ones by id.

    Scores are equal that differ only by the order of additions, which each engine has its own of.
    """
    return sorted(hits, key=lambda hit: (-array("f", (hit.score,))[0], hit.id))


def parse_query(query_text: str) -> LexicalQuery:
    """Return the phrases and words of a query; an unpaired quotation mark is ignored."""
    query_text = query_text[:_MAX_QUERY_CHARS]
    phrases: list[str] = []
    remaining_word_count = MAX_QUERY_WORDS
    for phrase_match in _QUOTED_PHRASE_PATTERN.finditer(query_text):
        phrase_words = list(split_words(phrase_match[1] or phrase_match[2]))[:remaining_word_count]
        remaining_word_count -= len(phrase_words)
        phrases += [" ".join(phrase_words)] if phrase_words else []
    single_words = _remove_stop_words(
        split_words(_QUOTED_PHRASE_PATTERN.sub(" ", query_text)), keep_all_if_empty=not phrases
    )
    return LexicalQuery(tuple(dict.fromkeys(phrases)), tuple(single_words[:remaining_word_count]))


def extract_query_words(query_text: str) -> list[str]:
    """Return the words of a query, each once, including those in quotation marks."""
    return _remove_stop_words(split_words(query_text[:_MAX_QUERY_CHARS]), keep_all_if_empty=True)[
        :MAX_QUERY_WORDS
    ]


def split_significant_words(text: str) -> list[str]:
    """Return the words of a text in lower case, in reading order, without stop words."""
    return [word for word in split_words(text) if word not in _STOP_WORDS]


def count_significant_words(text: str) -> dict[str, int]:
    """Return how often a text has each word that is no stop word, in reading order."""
    word_counts = Counter(split_words(text))
    for stop_word in _STOP_WORDS & word_counts.keys():
        del word_counts[stop_word]
    return word_counts


def _join_with_or(alternatives: Iterable[str]) -> str:
    # Quoted, so that no text of a user is ever taken for FTS5's syntax.
    return " OR ".join(f'"{alternative}"' for alternative in alternatives)


def _remove_stop_words(words: Iterable[str], keep_all_if_empty: bool) -> list[str]:
    """Return each word once, without stop words.

    With `keep_all_if_empty`, return the stop words too if nothing else would remain.
    """
    unique_words = list(dict.fromkeys(words))
    significant_words = [word for word in unique_words if word not in _STOP_WORDS]
    return significant_words or (unique_words if keep_all_if_empty else [])


@call_once
def make_fts5_tokenizer_option() -> str:
    """Return the `tokenize` option of FTS5, which makes emoji and bullets separate words.

    SQLite has an older version of Unicode and takes characters that it does not know for letters.
    """
    # These are 85,000 characters, and a new database waits for them: all loops but the last, over
    # the characters that exist, are those of the standard library.
    character_codes = array("I", chain.from_iterable(starmap(range, _SYMBOL_CODE_RANGES)))
    symbol_characters = _LETTERS_AND_SPACES_PATTERN.sub(
        "", character_codes.tobytes().decode("utf-32")
    )
    assigned_characters = compress(
        symbol_characters, map("Cn".__ne__, map(category, symbol_characters))
    )
    separator_characters = "".join(
        symbol_character
        for symbol_character in assigned_characters
        if ucd_3_2_0.category(symbol_character) == "Cn"
    )
    return f"porter unicode61 separators '{separator_characters}{_BULLET_CHARACTERS}'"


def split_words(text: str) -> Iterator[str]:
    """Return the words of a text in lower case, in reading order."""
    if text.isascii():  # in half the time, with the same result
        return iter(text.translate(_ASCII_TRANSLATION_TABLE).split())
    # NFC, because an accent may be a character of its own, and that is not a letter.
    return map(str.lower, _WORD_PATTERN.findall(normalize("NFC", text)))
