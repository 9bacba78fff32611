"""Types of filter values: each accepts the usual spellings and yields the stored one."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.ids import BILL_TYPES, parse_federal_id
from readingroom.bases.federal.schema.records import Chamber
from readingroom.core.errors import UnrecognizedId
from readingroom.protocol.tool import ShortText


def _canonicalize_id(text: str) -> str:
    """Return an id in its canonical form; a name is left for the database to resolve."""
    try:
        return parse_federal_id(text).id
    except UnrecognizedId:
        return text


RecordOf = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_canonicalize_id)]
"""The id of another record, or its name."""


def _parse_chamber(value: Any) -> Any:
    """`House`, `Senators`, `House of Representatives`; other values are left for the type."""
    if not isinstance(value, str):
        return value
    chambers = fold.load_vocabulary().chambers
    meanings = {chambers.get(word) for word in fold.words(value)}
    return meanings.pop() if len(meanings) == 1 and None not in meanings else value


AnyChamber = Annotated[Chamber, BeforeValidator(_parse_chamber)]
HouseOrSenate = Annotated[Literal["house", "senate"], BeforeValidator(_parse_chamber)]


def _parse_party(text: str) -> str:
    """`Democrat` and `democratic` are D. Parties of the past go by their names: Whig."""
    code = fold.load_vocabulary().parties.get(" ".join(fold.fold_all_words(text)))
    if code or len(text) <= 2:
        return code or text.upper()
    return text.title() if text.islower() else text


Party = Annotated[ShortText, AfterValidator(_parse_party)]


def _parse_state(text: str) -> str:
    """`Oregon` and `or` are OR; the code of a former territory is in no list here."""
    plain = text.strip()
    # With stopwords first: `OR` and `IN` are states before they are words.
    for words in (fold.fold_all_words(plain), fold.words(plain)):
        if code := fold.load_vocabulary().states.get(words):
            return code
    if len(plain) == 2 and plain.isalpha():
        return plain.upper()
    raise ValueError(f"there is no state {text!r}; a name or a code, such as Oregon or OR")


State = Annotated[ShortText, AfterValidator(_parse_state)]


def _parse_position(text: str) -> str:
    """Votes are stored as the clerk writes them: `Yea`, `Not Voting`, a candidate's name."""
    return text.title() if text.islower() or text.isupper() else text


Position = Annotated[ShortText, AfterValidator(_parse_position)]


def _fold_value(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


def make_choice_type(values: Sequence[str]) -> Any:
    """Return the type of one of these, whatever its case and punctuation: `H.R.` is hr."""
    by_folded = {_fold_value(value): value for value in values}

    def parse(text: str) -> str:
        value = by_folded.get(_fold_value(text))
        if value is None:
            raise ValueError(f"there is no {text!r} here; one of {', '.join(values)}")
        return value

    return Annotated[ShortText, AfterValidator(parse)]


def _parse_type(text: str) -> str:
    """The sources have many types, of which only those of bills are written in many ways."""
    folded = _fold_value(text)
    return folded if folded in BILL_TYPES else text


AnyType = Annotated[ShortText, AfterValidator(_parse_type)]

VALUE_TYPES: dict[str, Any] = {
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
"""The types of filters with these names, whichever source has them."""
