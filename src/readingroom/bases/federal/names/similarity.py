"""How alike two names are: word by word, in any order, through nicknames, short forms and typos."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from readingroom.bases.federal.schema.fold import vocabulary

_NICKNAME, _INITIALS, _BEGINNING, _STEM, _INITIAL = 0.93, 0.85, 0.8, 0.8, 0.75
_CONTRACTED, _ABBREVIATED = 0.7, 0.5
_FAINT = 0.15
"""What a word weighs that stands in every second name."""
_VOWELS = frozenset("aeiou")
_SMALL = frozenset("afiot")
"""First letters of `and`, `for`, `in`, `of`, `on`, `the`, without which names are kept."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A word of the question that a word of a name explains, how well, and how."""

    word: str
    name_word: str
    value: float
    how: str


@dataclass(frozen=True, slots=True)
class Likeness:
    """A name beside a question: what of the question it explains, and how much of it was asked."""

    ties: tuple[Tie | None, ...]
    """One for each word of the question."""
    asked_share: float


def compare(asked: Sequence[str], name: Sequence[str]) -> Likeness:
    """The best pairs first, each word used once: the order of words does not matter."""
    pairs = sorted(
        (-tie.value, left, right, tie)
        for left, word in enumerate(asked)
        for right, other in enumerate(name)
        if word and (tie := alike(word, other))
    )
    ties: dict[int, Tie] = {}
    used: dict[int, float] = {}
    for _, left, right, tie in pairs:
        if left not in ties and right not in used:
            ties[left], used[right] = tie, tie.value
    for left, word in enumerate(asked):
        if left not in ties and (run := spelt_out(word, name) or _blended(word, name)):
            value = _INITIALS if len(word) > 2 else _INITIAL
            ties[left] = Tie(word, " ".join(name[run.start : run.stop]), value, "stands for")
            used |= {right: max(value, used.get(right, 0.0)) for right in run}
    if not any(len(tie.name_word) > 1 or len(tie.word) == 1 for tie in ties.values()):
        ties, used = {}, {}  # that some name has the initial of a word says nothing by itself
    return Likeness(tuple(map(ties.get, range(len(asked)))), _share(name, used))


def weight(word: str) -> float:
    """How much a word tells about which name is meant."""
    if word in vocabulary().weak:
        return _FAINT
    return 0.3 if len(word) == 1 else 1.0


def _share(name: Sequence[str], used: dict[int, float]) -> float:
    """How much of a name was asked for; what stands in every name need not be."""
    weights = {at: weight(word) for at, word in enumerate(name)}
    telling = {at: w for at, w in weights.items() if w > _FAINT or at in used} or weights
    return sum(telling[at] * used.get(at, 0.0) for at in telling) / sum(telling.values())


@lru_cache(maxsize=65_536)
def alike(word: str, other: str) -> Tie | None:
    """How a word of a question may mean a word of a name; None where it does not."""
    if word == other:
        return Tie(word, other, 1.0, "is")
    if other in vocabulary().nicknames.get(word, ()):
        return Tie(word, other, _NICKNAME, "is short for, or a form of,")
    if len(word) == 1 or len(other) == 1:
        value = _INITIAL if len(word) == 1 else _ABBREVIATED
        return Tie(word, other, value, "has the initial of") if word[0] == other[0] else None
    if _begins(word, other):
        return Tie(word, other, _BEGINNING, "begins")
    if value := _spelt_alike(word, other):
        return Tie(word, other, value, "is spelt like")
    if _of_one_stem(word, other):
        return Tie(word, other, _STEM, "has the stem of")
    return Tie(word, other, _CONTRACTED, "shortens") if _shortens(word, other) else None


@lru_cache(maxsize=65_536)
def same_spelling(word: str, other: str) -> bool:
    """Whether two words are one, but for a typo or two."""
    return word == other or _spelt_alike(word, other) > 0


def _begins(word: str, other: str) -> bool:
    """`ag` begins `agriculture`, `approps` nearly `appropriations`."""
    if other.startswith(word):
        return True
    return len(word) > 4 and word[-1] == "s" and other.startswith(word[:-1])


def _shortens(word: str, other: str) -> bool:
    """`svcs`, `mgmt`: without their vowels; `natl`, `envt`: a beginning and the last letter."""
    if len(word) < 3 or len(other) < len(word) + 3 or word[0] != other[0]:
        return False
    if len(word) > 3 and other.startswith(word[:-1]) and other.endswith(word[-1]):
        return True
    letters = iter(other)
    return _VOWELS.isdisjoint(word[1:]) and all(letter in letters for letter in word)


def _of_one_stem(word: str, other: str) -> bool:
    """`China` and `Chinese`, `immigrants` and `immigration`: alike but for a common ending."""
    same = next(
        (at for at, (one, two) in enumerate(zip(word, other, strict=False)) if one != two),
        min(len(word), len(other)),
    )
    endings = vocabulary().endings
    return any(
        word[at:] in endings and other[at:] in endings for at in range(max(4, same - 1), same + 1)
    )


def spelt_out(word: str, name: Sequence[str]) -> range | None:
    """Where a name has, in order, the words that these are the first letters of.

    One letter inside may be of a small word, which names are kept without: `DOGE` is Delivering
    *on* Government Efficiency.
    """
    if not 2 <= len(word) <= 6 or not word.isalpha():
        return None
    firsts = "".join(one[0] for one in name)
    inside = (at for at in range(1, len(word) - 1) if word[at] in _SMALL)
    shorter = (word[:at] + word[at + 1 :] for at in inside)
    for letters in (word, *shorter):
        at = firsts.find(letters)
        weights = [weight(one) for one in name[at : at + len(letters)]]
        if at >= 0 and sum(one > _FAINT for one in weights) > 1:
            return range(at, at + len(letters))
    return None


def _blended(word: str, name: Sequence[str]) -> range | None:
    """Where a name has two words that this is made of the beginnings of: `MilCon`, `fintech`."""
    for at, (one, two) in enumerate(pairwise(name)):
        cuts = range(3, len(word) - 2)
        if any(one.startswith(word[:cut]) and two.startswith(word[cut:]) for cut in cuts):
            return range(at, at + 2)
    return None


def initials_worth(letters: str, name: Sequence[str], besides: str = "") -> float:
    """What letters are worth as the initials of a whole name: more when they come in its order.

    There may be letters of words that stand in many names, the H and the C of HASC, and `besides`.
    """
    counted = Counter(letters)
    core = [word[0] for word in name if word not in vocabulary().weak]
    faint = [word[0] for word in name if word in vocabulary().weak]
    extra = counted - Counter(core)
    if Counter(core) - counted or not extra <= Counter(faint) | Counter(besides):
        return 0.0
    if len(core) < 2 and len(letters) < 4 and letters not in _in_order(name):
        return 0.0
    rest = iter(letters)
    value = 0.95 if all(letter in rest for letter in core) else 0.65
    return value - 0.05 if len(core) < 2 or any(len(word) == 1 for word in name) else value


def _in_order(name: Sequence[str]) -> tuple[str, str]:
    """All its initials; and with the committee's at the end: `SJC` is a Committee on Judiciary."""
    firsts = "".join(word[0] for word in name)
    others = "".join(word[0] for word in name if word not in vocabulary().committee)
    return firsts, f"{others}c"


def _spelt_alike(word: str, other: str) -> float:
    """Less for each typo; 0 where there are too many for words of this length.

    Another number is another number, however alike.
    """
    if word.isdecimal() or other.isdecimal():
        return 0.0
    longest = max(len(word), len(other))
    allowed = 0 if longest < 4 else 1 if longest < 6 else 2 if longest < 9 else 3
    if abs(len(word) - len(other)) > allowed or not _share_pairs(word, other):
        return 0.0
    typos = distance(word, other)
    if typos > allowed:
        return 0.0
    other_start = 0.08 if word[0] != other[0] else 0.0
    return 0.97 - 0.9 * typos / longest - other_start


def _share_pairs(word: str, other: str) -> bool:
    pairs = {word[at : at + 2] for at in range(len(word) - 1)}
    return any(other[at : at + 2] in pairs for at in range(len(other) - 1))


def distance(word: str, other: str) -> int:
    """Letters to add, drop, change or swap with their neighbour to make one word the other."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, start=1):
        older, before, row = before, row, [i]
        for j, mark in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != mark))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == mark:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
