"""The loaders: one module per native format, each from bytes to entries."""

from collections.abc import Iterator
from typing import ClassVar, Protocol

from readingroom.bases.federal.entries import Entry, Origin
from readingroom.bases.federal.loaders import (
    billstatus,
    dockets,
    hearings,
    legislators,
    lobbying,
    offices,
    pdfs,
    register,
    saps,
    uslm,
    votes,
)
from readingroom.bases.federal.loaders.files import RawFile


class Loader(Protocol):
    """A format: how its files are recognised, and what they say."""

    name: ClassVar[str]
    """With its version: a new one reads again what an old one has loaded."""
    sources: ClassVar[tuple[str, ...]]
    """Where its records go; `federal load SOURCE …` chooses by them."""

    whole: ClassVar[str | None]
    """A field of which a file holds all records of one value (`congress`): others are gone."""

    def recognises(self, file: RawFile) -> bool: ...

    def read(self, file: RawFile, origin: Origin) -> Iterator[Entry]: ...


# In the order they load when several are named: people before what they did.
LOADERS: tuple[Loader, ...] = (
    legislators.Legislators(),
    legislators.Committees(),
    legislators.Rosters(),
    offices.DistrictOffices(),
    offices.SocialMedia(),
    billstatus.BillStatus(),
    uslm.BillTexts(),
    uslm.Laws(),
    register.RegisterIssues(),
    register.RegisterJson(),
    votes.HouseVotes(),
    votes.SenateVotes(),
    hearings.HouseMeetings(),
    hearings.HouseWitnesses(),
    hearings.CongressMeetings(),
    hearings.CongressHearings(),
    lobbying.LobbyingFilings(),
    dockets.Dockets(),
    saps.Saps(pdfs.pdf_texts),
)
