"""How similar two names are: word by word, in any order, through nicknames, short forms, typos."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from readingroom.bases.federal.schema.fold import load_vocabulary
from readingroom.core.imports import LazyModule

if TYPE_CHECKING:
    from rapidfuzz import distance
else:
    distance = LazyModule("rapidfuzz.distance")

# Scores of a word that explains another one other than by being it.
_NICKNAME_SCORE, _INITIALS_SCORE, _PREFIX_SCORE, _STEM_SCORE, _INITIAL_SCORE = (
    0.93,
    0.85,
    0.8,
    0.8,
    0.75,
)
_CONTRACTION_SCORE, _NAME_INITIAL_SCORE = 0.7, 0.5
# Weight of a word that occurs in every second name.
_WEAK_WORD_WEIGHT = 0.15
_VOWELS = frozenset("aeiou")
# First letters of `and`, `for`, `in`, `of`, `on`, `the`, which folded names do not contain.
_STOPWORD_INITIALS = frozenset("afiot")


@dataclass(frozen=True, slots=True)
class WordMatch:
    """A word of the query, the word of a name that explains it, how well, and by what relation."""

    query_word_text: str
    name_word: str
    score: float
    relation: str


@dataclass(frozen=True, slots=True)
class Similarity:
    """What a name explains of a query, and how much of the name the query covers."""

    word_matches: tuple[WordMatch | None, ...]
    """One for each word of the query; None for a word that the name does not explain."""
    coverage: float


def compare_words(query_words: Sequence[str], name_words: Sequence[str]) -> Similarity:
    """Pair the words of a query with those of a name, best pairs first, each word used once.

    The order of the words does not matter. An empty word of the query is never paired.
    """
    scored_pairs = sorted(
        (-word_match.score, query_index, name_word_index, word_match)
        for query_index, query_word_text in enumerate(query_words)
        for name_word_index, name_word in enumerate(name_words)
        if query_word_text and (word_match := match_word(query_word_text, name_word))
    )
    match_by_query_index: dict[int, WordMatch] = {}
    score_by_name_index: dict[int, float] = {}
    for _, query_index, name_word_index, word_match in scored_pairs:
        if query_index not in match_by_query_index and name_word_index not in score_by_name_index:
            match_by_query_index[query_index], score_by_name_index[name_word_index] = (
                word_match,
                word_match.score,
            )
    for index, query_word_text in enumerate(query_words):
        if index not in match_by_query_index and (
            initials_range := find_initials(query_word_text, name_words)
            or _find_blended_words(query_word_text, name_words)
        ):
            initials_score = _INITIALS_SCORE if len(query_word_text) > 2 else _INITIAL_SCORE
            spelled_out_text = " ".join(name_words[initials_range.start : initials_range.stop])
            match_by_query_index[index] = WordMatch(
                query_word_text, spelled_out_text, initials_score, "stands for"
            )
            score_by_name_index |= {
                name_word_index: max(initials_score, score_by_name_index.get(name_word_index, 0.0))
                for name_word_index in initials_range
            }
    if not any(
        len(word_match.name_word) > 1 or len(word_match.query_word_text) == 1
        for word_match in match_by_query_index.values()
    ):
        # That some name has the initial of a word is no evidence by itself.
        match_by_query_index, score_by_name_index = {}, {}
    return Similarity(
        tuple(map(match_by_query_index.get, range(len(query_words)))),
        _compute_coverage(name_words, score_by_name_index),
    )


def compute_word_weight(word: str) -> float:
    """Return how much a word tells about which name is meant."""
    if word in load_vocabulary().weak_words:
        return _WEAK_WORD_WEIGHT
    return 0.3 if len(word) == 1 else 1.0


def _compute_coverage(name_words: Sequence[str], score_by_name_index: dict[int, float]) -> float:
    """Return the share of a name that was explained; weak words need not be."""
    weight_by_index = {
        index: compute_word_weight(name_word) for index, name_word in enumerate(name_words)
    }
    counted_weight_by_index = {
        index: weight
        for index, weight in weight_by_index.items()
        if weight > _WEAK_WORD_WEIGHT or index in score_by_name_index
    } or weight_by_index
    return sum(
        counted_weight_by_index[index] * score_by_name_index.get(index, 0.0)
        for index in counted_weight_by_index
    ) / sum(counted_weight_by_index.values())


@lru_cache(maxsize=65_536)
def match_word(query_word_text: str, name_word: str) -> WordMatch | None:
    """Return how a word of a query may mean a word of a name, or None if it cannot."""
    if query_word_text == name_word:
        return WordMatch(query_word_text, name_word, 1.0, "is")
    if name_word in load_vocabulary().equivalent_names_by_name.get(query_word_text, ()):
        return WordMatch(query_word_text, name_word, _NICKNAME_SCORE, "is short for, or a form of,")
    if len(query_word_text) == 1 or len(name_word) == 1:
        initial_score = _INITIAL_SCORE if len(query_word_text) == 1 else _NAME_INITIAL_SCORE
        shares_initial = query_word_text[0] == name_word[0]
        return (
            WordMatch(query_word_text, name_word, initial_score, "has the initial of")
            if shares_initial
            else None
        )
    if _is_prefix(query_word_text, name_word):
        return WordMatch(query_word_text, name_word, _PREFIX_SCORE, "begins")
    if spelling_score := _score_spelling(query_word_text, name_word):
        return WordMatch(query_word_text, name_word, spelling_score, "is spelt like")
    if _has_same_stem(query_word_text, name_word):
        return WordMatch(query_word_text, name_word, _STEM_SCORE, "has the stem of")
    if _is_contraction(query_word_text, name_word):
        return WordMatch(query_word_text, name_word, _CONTRACTION_SCORE, "shortens")
    return None


@lru_cache(maxsize=65_536)
def is_same_but_for_typos(query_word_text: str, name_word: str) -> bool:
    """Return whether two words are the same, or one is the other with a typo or two."""
    return query_word_text == name_word or _score_spelling(query_word_text, name_word) > 0


def _is_prefix(query_word_text: str, name_word: str) -> bool:
    """`ag` begins `agriculture`, and `approps` nearly begins `appropriations`."""
    if name_word.startswith(query_word_text):
        return True
    return (
        len(query_word_text) > 4
        and query_word_text[-1] == "s"
        and name_word.startswith(query_word_text[:-1])
    )


def _is_contraction(query_word_text: str, name_word: str) -> bool:
    """`svcs`, `mgmt` have lost their vowels; `natl`, `envt` are a prefix and the last letter."""
    if (
        len(query_word_text) < 3
        or len(name_word) < len(query_word_text) + 3
        or query_word_text[0] != name_word[0]
    ):
        return False
    if (
        len(query_word_text) > 3
        and name_word.startswith(query_word_text[:-1])
        and name_word.endswith(query_word_text[-1])
    ):
        return True
    name_letters = iter(name_word)
    return _VOWELS.isdisjoint(query_word_text[1:]) and all(
        letter in name_letters for letter in query_word_text
    )


def _has_same_stem(query_word_text: str, name_word: str) -> bool:
    """`China` and `Chinese`, `immigrants` and `immigration` differ only in a common ending."""
    shared_prefix_length = distance.Prefix.similarity(query_word_text, name_word)
    word_endings = load_vocabulary().word_endings
    # The last letter they share may belong to both endings: immigr-ants, immigr-ation.
    return any(
        query_word_text[stem_length:] in word_endings and name_word[stem_length:] in word_endings
        for stem_length in range(max(4, shared_prefix_length - 1), shared_prefix_length + 1)
    )


def find_initials(letters: str, name_words: Sequence[str]) -> range | None:
    """Return where a name has, in order, the words that these are the first letters of.

    One letter inside may stand for a stopword, which folded names do not contain: `DOGE` is
    Delivering *on* Government Efficiency.
    """
    if not 2 <= len(letters) <= 6 or not letters.isalpha():
        return None
    name_initials = "".join(word[0] for word in name_words)
    stopword_positions = (
        index for index in range(1, len(letters) - 1) if letters[index] in _STOPWORD_INITIALS
    )
    letters_without_stopword = (
        letters[:index] + letters[index + 1 :] for index in stopword_positions
    )
    for letter_sequence in (letters, *letters_without_stopword):
        first_word_index = name_initials.find(letter_sequence)
        word_weights = [
            compute_word_weight(word)
            for word in name_words[first_word_index : first_word_index + len(letter_sequence)]
        ]
        if first_word_index >= 0 and sum(weight > _WEAK_WORD_WEIGHT for weight in word_weights) > 1:
            return range(first_word_index, first_word_index + len(letter_sequence))
    return None


def _find_blended_words(blended_word: str, name_words: Sequence[str]) -> range | None:
    """Return where a name has two words whose beginnings make this: `MilCon`, `fintech`."""
    for index, (first_word, second_word) in enumerate(pairwise(name_words)):
        cut_indexes = range(3, len(blended_word) - 2)
        if any(
            first_word.startswith(blended_word[:cut_index])
            and second_word.startswith(blended_word[cut_index:])
            for cut_index in cut_indexes
        ):
            return range(index, index + 2)
    return None


def score_initials(letters: str, name_words: Sequence[str], extra_letters: str = "") -> float:
    """Return what letters are worth as the initials of a whole name; more if in its order.

    They may include initials of weak words, such as the H and the C of HASC, and `extra_letters`.
    """
    letter_counts = Counter(letters)
    core_initials = [word[0] for word in name_words if word not in load_vocabulary().weak_words]
    weak_word_initials = [word[0] for word in name_words if word in load_vocabulary().weak_words]
    surplus_letter_counts = letter_counts - Counter(core_initials)
    if Counter(core_initials) - letter_counts or not surplus_letter_counts <= Counter(
        weak_word_initials
    ) | Counter(extra_letters):
        return 0.0
    if (
        len(core_initials) < 2
        and len(letters) < 4
        and letters not in _list_ordered_initials(name_words)
    ):
        return 0.0
    remaining_letters = iter(letters)
    initials_score = 0.95 if all(letter in remaining_letters for letter in core_initials) else 0.65
    return (
        initials_score - 0.05
        if len(core_initials) < 2 or any(len(word) == 1 for word in name_words)
        else initials_score
    )


def _list_ordered_initials(name_words: Sequence[str]) -> tuple[str, str]:
    """Return all initials, and those with the C of `committee` last: `SJC` for the Judiciary."""
    all_initials = "".join(word[0] for word in name_words)
    significant_initials = "".join(
        word[0] for word in name_words if word not in load_vocabulary().committee_words
    )
    return all_initials, f"{significant_initials}c"


def _score_spelling(query_word_text: str, name_word: str) -> float:
    """Return a score that falls with each typo; 0 if there are too many for words this long.

    Different numbers never match, however similar they look.
    """
    if query_word_text.isdecimal() or name_word.isdecimal():
        return 0.0
    longer_length = max(len(query_word_text), len(name_word))
    # Short words that differ in a letter are other names: Lee, Lew.
    allowed_typo_count = (
        0 if longer_length < 4 else 1 if longer_length < 6 else 2 if longer_length < 9 else 3
    )
    # Two cheap checks rule out nearly every pair before the distance is computed.
    if abs(
        len(query_word_text) - len(name_word)
    ) > allowed_typo_count or not _have_common_letter_pair(query_word_text, name_word):
        return 0.0
    typo_count = count_typos(query_word_text, name_word)
    if typo_count > allowed_typo_count:
        return 0.0
    initial_penalty = 0.08 if query_word_text[0] != name_word[0] else 0.0
    return 0.97 - 0.9 * typo_count / longer_length - initial_penalty


def _have_common_letter_pair(query_word_text: str, name_word: str) -> bool:
    letter_pairs = {query_word_text[index : index + 2] for index in range(len(query_word_text) - 1)}
    return any(name_word[index : index + 2] in letter_pairs for index in range(len(name_word) - 1))


def count_typos(query_word_text: str, name_word: str) -> int:
    """Count the letters to add, drop, change or swap with a neighbour to get from word to word."""
    return distance.OSA.distance(query_word_text, name_word)
