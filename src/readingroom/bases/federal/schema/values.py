"""Types of filter values: each accepts the usual spellings and yields the stored one."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.ids import BILL_TYPES, parse_federal_id
from readingroom.bases.federal.schema.records import Chamber
from readingroom.core.errors import UnrecognizedId
from readingroom.protocol.tool import ShortText


def _canonicalize_id(written_id: str) -> str:
    """Return an id in its canonical form; a name is left for the database to resolve."""
    try:
        return parse_federal_id(written_id).id
    except UnrecognizedId:
        return written_id


RecordOf = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_canonicalize_id)]
"""The id of another record, or its name."""


def _parse_chamber(written_chamber: Any) -> Any:
    """`House`, `Senators`, `House of Representatives`; other values are left for the type."""
    if not isinstance(written_chamber, str):
        return written_chamber
    chambers_by_word = fold.load_vocabulary().chambers_by_word
    meant_chambers = {
        chambers_by_word.get(chamber_word) for chamber_word in fold.fold_name(written_chamber)
    }
    return (
        meant_chambers.pop()
        if len(meant_chambers) == 1 and None not in meant_chambers
        else written_chamber
    )


AnyChamber = Annotated[Chamber, BeforeValidator(_parse_chamber)]
HouseOrSenate = Annotated[Literal["house", "senate"], BeforeValidator(_parse_chamber)]


def _parse_party(written_party: str) -> str:
    """`Democrat` and `democratic` are D. Parties of the past go by their names: Whig."""
    party_code = fold.load_vocabulary().parties_by_word.get(
        " ".join(fold.fold_all_words(written_party))
    )
    if party_code or len(written_party) <= 2:
        return party_code or written_party.upper()
    return written_party.title() if written_party.islower() else written_party


Party = Annotated[ShortText, AfterValidator(_parse_party)]


def _parse_state(written_state: str) -> str:
    """`Oregon` and `or` are OR; the code of a former territory is in no list here."""
    trimmed_state = written_state.strip()
    # With stopwords first: `OR` and `IN` are states before they are words.
    for state_words in (fold.fold_all_words(trimmed_state), fold.fold_name(trimmed_state)):
        if state_code := fold.load_vocabulary().code_by_state_words.get(state_words):
            return state_code
    if len(trimmed_state) == 2 and trimmed_state.isalpha():
        return trimmed_state.upper()
    raise ValueError(f"there is no state {written_state!r}; a name or a code, such as Oregon or OR")


State = Annotated[ShortText, AfterValidator(_parse_state)]


def _parse_position(written_position: str) -> str:
    """Votes are stored as the clerk writes them: `Yea`, `Not Voting`, a candidate's name."""
    return (
        written_position.title()
        if written_position.islower() or written_position.isupper()
        else written_position
    )


VotePosition = Annotated[ShortText, AfterValidator(_parse_position)]


def _fold_value(written_value: str) -> str:
    return re.sub(r"[\W_]", "", written_value).lower()


SYNONYMS_BY_FILTER: Mapping[str, Mapping[str, str]] = {
    "standard_position": {
        **dict.fromkeys(("aye", "yes", "for"), "yea"),
        **dict.fromkeys(("no", "against"), "nay"),
        **dict.fromkeys(("absent", "missed"), "not_voting"),
    }
}
"""By filter, other words for its choices."""


def make_choice_type(
    allowed_choices: Sequence[str], choice_by_synonym: Mapping[str, str] | None = None
) -> Any:
    """Return the type of one of these, whatever its case and punctuation: `H.R.` is hr."""
    choice_by_folded_choice = dict(choice_by_synonym or {}) | {
        _fold_value(allowed_choice): allowed_choice for allowed_choice in allowed_choices
    }

    def parse_choice(written_choice: str) -> str:
        allowed_choice = choice_by_folded_choice.get(_fold_value(written_choice))
        if allowed_choice is None:
            raise ValueError(
                f"there is no {written_choice!r} here; one of {', '.join(allowed_choices)}"
            )
        return allowed_choice

    return Annotated[ShortText, AfterValidator(parse_choice)]


def _parse_record_type(written_type: str) -> str:
    """The sources have many types, of which only those of bills are written in many ways."""
    folded_type = _fold_value(written_type)
    return folded_type if folded_type in BILL_TYPES else written_type


AnyType = Annotated[ShortText, AfterValidator(_parse_record_type)]

VALUE_TYPE_BY_FILTER: dict[str, Any] = {
    "chamber": AnyChamber,
    "party": Party,
    "position": VotePosition,
    "state": State,
    **dict.fromkeys(
        ("bill", "bill_id", "bioguide_id", "committee", "committee_id", "cosponsor", "law"),
        RecordOf,
    ),
    **dict.fromkeys(("law_id", "parent_id", "speaker", "sponsor", "vote_id"), RecordOf),
}
"""The types of filters with these names, whichever source has them."""
