"""How well a record explains a noisy name: by its own name, else by what stands beside it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from readingroom.bases.federal.names.context import Company, Kin, letters_beside
from readingroom.bases.federal.names.query import Asked, Word
from readingroom.bases.federal.names.similarity import (
    Likeness,
    Tie,
    compare,
    initials_worth,
    same_spelling,
    weight,
)
from readingroom.bases.federal.schema.fold import vocabulary

ENOUGH = 0.5
"""What a record must score to be an answer at all."""
_CLOSE = 40
"""For how many names, of the likeliest, it is tried to read two words as one."""
_NUMBERED = ("district", "congress", "number", "session", "year")
_KIND, _WRONG_KIND = 0.15, 0.05
"""What a word weighs that names a kind of record: when the record says so too, when it does not."""
_CONTEXT = 0.6
"""What a word like `Mass` or `Sen.` weighs, beside 1 for a name."""


@dataclass(frozen=True, slots=True)
class Near:
    """A name that may be meant, beside the reading of the question that is nearest to it."""

    words: tuple[str, ...]
    asked: Asked
    likeness: Likeness
    promise: float
    """What it can come to when the record bears out every word that may mean something else."""


def close(
    asked: Asked, names: Mapping[int, tuple[str, ...]], unsaid: float = 0.0
) -> dict[int, Near]:
    """The names that may come to an answer. Only for the nearest are two words read as one."""
    near = {row: near_of(words, asked, unsaid) for row, words in names.items()}
    best = sorted(near, key=lambda row: (-near[row].promise, row))[:_CLOSE]
    near |= {row: max(_readings(near[row]), key=lambda one: one.promise) for row in best}
    return {row: one for row, one in near.items() if one.promise >= ENOUGH}


def _readings(near: Near) -> Iterator[Near]:
    yield near
    weak = vocabulary().weak
    for at, asked in enumerate(near.asked.joined()):
        apart = any(word.of_a_kind or word.text in weak for word in near.asked.words[at : at + 2])
        if not apart and any(same_spelling(asked.texts[at], word) for word in near.words):
            yield near_of(near.words, asked)
    for at, (one, other) in enumerate(pairwise(near.words)):
        if any(same_spelling(word, one + other) for word in near.asked.texts):
            yield near_of((*near.words[:at], one + other, *near.words[at + 2 :]), near.asked)


def near_of(words: tuple[str, ...], asked: Asked, unsaid: float = 0.0) -> Near:
    """`unsaid` is what a word may come to that the name does not explain."""
    likeness = compare(asked.spelt, words)
    if asked.acronym and initials_worth(asked.acronym, words, "chsj"):
        return Near(words, asked, likeness, 1.0)
    values = [
        1.0 if word.meaning else tie.value if tie else 0.0 if word.of_a_kind else unsaid
        for word, tie in zip(asked.words, likeness.ties, strict=True)
    ]
    return Near(words, asked, likeness, scored(asked, values, likeness.asked_share))


def is_of_a_part(record: Mapping[str, Any]) -> bool:
    """Whether it is a subcommittee, or a seat on one."""
    id = record["id"] if record.get("source") == "committees" else record.get("committee_id")
    return len(id or "") > 4


def judged(
    company: Company, asked: Asked, near: Near, form: str, record: Mapping[str, Any]
) -> tuple[float, list[str]]:
    """How well a record explains the question: by its name, else by what stands beside it."""
    acronym = asked.acronym or ""
    initials = acronym and initials_worth(acronym, near.words, letters_beside(record))
    if initials:
        values, why = borne_out(asked, asked.nothing, asked.nothing, [record])
        told = [
            initials if word.text in asked.letters else value
            for word, value in zip(asked.words, values, strict=True)
        ]
        said = f"{acronym!r} are the initials of {form!r}"
        return scored(asked, told, 1.0), [said, *why]
    ties = near.likeness.ties
    kin: list[Kin] = []
    besides: Sequence[Tie | None] = near.asked.nothing
    if near.asked is asked and not all(tie and tie.value == 1.0 for tie in ties):
        kin = company.kin_of(record)
        besides = company.ties(near.words, record, kin)
    if not any(tie and tie.value > 0.5 for tie in (*ties, *besides)):
        return 0.0, []
    values, why = borne_out(near.asked, ties, besides, [record, *(one.record for one in kin)])
    if kin and _names_another(near.asked, ties, values):
        return 0.0, []
    shares = [near.likeness.asked_share, *(one.likeness.asked_share for one in kin)]
    named = _fully_named(near)
    score = scored(near.asked, values, sum(shares) / len(shares), 0.5 if named else 1.0)
    return score, [f"named {form!r}", *why]


def _names_another(
    asked: Asked, ties: Sequence[Tie | None], values: Sequence[float | None]
) -> bool:
    """Whether a name was said that is not the record's, and nothing of its own: who sits on the
    committee beside `Gandalf` is no answer.
    """
    if any(tie and tie.value > 0.5 and weight(tie.word) == 1.0 for tie in ties):
        return False
    return any(
        value == 0.0 and not word.meaning and not word.of_a_kind and weight(word.text) == 1.0
        for word, value in zip(asked.words, values, strict=True)
    )


def _fully_named(near: Near) -> bool:
    """Whether the whole of a name was said, of more than one word: the rest says less then."""
    well = (tie for tie in near.likeness.ties if tie and tie.value > 0.8)
    return sum(weight(tie.word) == 1.0 for tie in well) > 1 and near.likeness.asked_share > 0.9


def borne_out(
    asked: Asked,
    ties: Sequence[Tie | None],
    besides: Sequence[Tie | None],
    records: Sequence[Mapping[str, Any]],
) -> tuple[list[float | None], list[str]]:
    """What each word comes to, and why; None for one that neither speaks for a record nor against.

    The first record is the one that may be meant; the others are what it belongs to.
    """
    values: list[float | None] = []
    why = []
    for word, tie, other in zip(asked.words, ties, besides, strict=True):
        best = other if other and (tie is None or other.value > tie.value) else tie
        said = next(filter(None, (_says(one, word) for one in records)), None)
        if said and (best is None or best.value < 1.0):
            values.append(1.0)
            why.append(f"{word.text!r} is its {said}")
        elif best:
            values.append(best.value)
            if best.value < 1.0:
                why.append(f"{best.word!r} {best.how} {best.name_word!r}")
        else:
            values.append(None if _says_nothing(word, records[0]) else 0.0)
    return values, why


def _says_nothing(word: Word, record: Mapping[str, Any]) -> bool:
    """Whether a word is no reason against a record that does not bear it out."""
    return bool(
        word.meaning
        and word.meaning[0] == "number"
        and not record.get("published_at")
        and not any(record.get(name) for name in _NUMBERED)
    )


def of_the_other_chamber(asked: Asked, near: Near, record: Mapping[str, Any]) -> bool:
    """Whether the question names a chamber that is not the record's, nor a word of its name.

    People change chambers, and are called by either; what is joint is of both.
    """
    said = [word for word in asked.words if word.meaning and word.meaning[0] == "chamber"]
    if not said or "terms" in record or record.get("chamber") not in ("house", "senate"):
        return False
    ours = ("chamber", record["chamber"])
    return not any(word.meaning == ours or word.text in near.words for word in said)


def _says(record: Mapping[str, Any], word: Word) -> str | None:
    """What of a record, besides its name, a word may mean."""
    if word.meaning is None:
        return None
    kind, value = word.meaning
    if kind == "kind":
        return "kind" if is_of_a_part(record) else None
    if kind == "number":
        if len(value) == 4 and (record.get("published_at") or "").startswith(value):
            return "year"
        return next((name for name in _NUMBERED if str(record.get(name)) == value), None)
    past = (term.get(kind) for term in record.get("terms") or ())
    return kind if value in (record.get(kind), *past) else None


def scored(
    asked: Asked, values: Sequence[float | None], share: float, unexplained: float = 1.0
) -> float:
    """Mostly how much of the question is explained, a little how much of the name was asked for.

    `unexplained` is what a word weighs that nothing explains, beside one that is.
    """
    total = explained = 0.0
    for word, value in zip(asked.words, values, strict=True):
        if value is None:
            continue
        telling = _weight(word, value)
        total += telling if value else telling * unexplained
        explained += telling * value
    return explained / total * (0.85 + 0.15 * share) if total else 0.0


def _weight(word: Word, value: float) -> float:
    """How much a word counts; least when it only names a kind of record, and another one."""
    if word.of_a_kind:
        return _KIND if value else _WRONG_KIND
    telling = weight(word.text)
    return _CONTEXT if word.meaning and telling == 1.0 else telling
