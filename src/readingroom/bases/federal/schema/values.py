"""What filters are given, in whatever spelling: one reading for lists, searches and numbers."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.ids import BILL_TYPES, federal_id
from readingroom.bases.federal.schema.records import Chamber
from readingroom.core.errors import UnrecognizedId

Word = Annotated[str, Field(min_length=1, max_length=100)]


def _canonical(text: str) -> str:
    try:
        return federal_id(text).id
    except UnrecognizedId as error:
        raise ValueError(error.message) from error


RecordOf = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_canonical)]
"""The id of another record."""


def _chamber(told: Any) -> Any:
    """`House`, `Senators`, `House of Representatives`; what is none is left to be refused."""
    if not isinstance(told, str):
        return told
    known = fold.vocabulary().chambers
    meant = {known.get(word) for word in fold.words(told)}
    return meant.pop() if len(meant) == 1 and None not in meant else told


AnyChamber = Annotated[Chamber, BeforeValidator(_chamber)]
HouseOrSenate = Annotated[Literal["house", "senate"], BeforeValidator(_chamber)]


def _party(text: str) -> str:
    """`Democrat` and `democratic` are D. Parties of the past go by their names: Whig."""
    known = fold.vocabulary().parties.get(" ".join(fold.all_words(text)))
    if known or len(text) <= 2:
        return known or text.upper()
    return text.title() if text.islower() else text


Party = Annotated[Word, AfterValidator(_party)]


def _state(text: str) -> str:
    """`Oregon` and `or` are OR; a territory of the past has a code that is in no list here."""
    plain = text.strip()
    # Not without its silent words first: `OR` and `IN` are states before they are words.
    for words in (fold.all_words(plain), fold.words(plain)):
        if known := fold.vocabulary().states.get(words):
            return known
    if len(plain) == 2 and plain.isalpha():
        return plain.upper()
    raise ValueError(f"there is no state {text!r}; a name or a code, such as Oregon or OR")


State = Annotated[Word, AfterValidator(_state)]


def _position(text: str) -> str:
    """Votes are kept as the clerk writes them: `Yea`, `Not Voting`; so is a candidate's name."""
    return text.title() if text.islower() or text.isupper() else text


Position = Annotated[Word, AfterValidator(_position)]


def _key(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


def one_of(values: Sequence[str]) -> Any:
    """One of these, whatever its case and punctuation: `H.R.` is hr. Others are refused."""
    known = {_key(value): value for value in values}

    def read(text: str) -> str:
        if (found := known.get(_key(text))) is None:
            raise ValueError(f"there is no {text!r} here; one of {', '.join(values)}")
        return found

    return Annotated[Word, AfterValidator(read)]


def _type(text: str) -> str:
    """The sources' types are many, but those of bills are written in many ways."""
    return _key(text) if _key(text) in BILL_TYPES else text


AnyType = Annotated[Word, AfterValidator(_type)]

BY_NAME: dict[str, Any] = {
    "chamber": AnyChamber,
    "party": Party,
    "position": Position,
    "state": State,
    **dict.fromkeys(
        ("bill", "bill_id", "bioguide_id", "committee", "committee_id", "cosponsor", "law"),
        RecordOf,
    ),
    **dict.fromkeys(("law_id", "parent_id", "speaker", "sponsor", "vote_id"), RecordOf),
}
"""How the filters of this name are read, whichever source has one."""
