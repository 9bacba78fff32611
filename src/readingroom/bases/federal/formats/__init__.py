"""The loaders: one module per native format, each from bytes to entries."""

from collections.abc import Iterator
from typing import ClassVar, Protocol, runtime_checkable

from readingroom.bases.federal.formats import (
    billstatus,
    cbo,
    cfr,
    compilations,
    crec,
    crs,
    dockets,
    hearings,
    legislators,
    lobbying,
    offices,
    register,
    reports,
    saps,
    uslm,
    votes,
)
from readingroom.bases.federal.formats.parts import pdfs
from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.schema.entries import Entry, Origin


class Loader(Protocol):
    """A format: how its files are recognised, and what they say."""

    name: ClassVar[str]
    """With its version: a new one reads again what an old one has loaded."""
    sources: ClassVar[tuple[str, ...]]
    """Where its records go; `federal load SOURCE …` chooses by them."""

    whole: ClassVar[str | None]
    """A field, or several with commas between, of whose values a file holds all records
    (`congress`): others of the same values are gone."""

    def recognises(self, file: RawFile) -> bool: ...

    def read(self, file: RawFile, origin: Origin) -> Iterator[Entry]: ...


@runtime_checkable
class Sitting(Protocol):
    """A format one of whose files lists all who sit now: who is left out of it does no longer."""

    sitting: ClassVar[str]
    """The source whose records have `current`."""


@runtime_checkable
class Accompanied(Protocol):
    """A format whose files name others that lie beside them and are read with them."""

    def companions(self, file: RawFile) -> Iterator[str]: ...


# In the order they load when several are named: people before what they did.
LOADERS: tuple[Loader, ...] = (
    legislators.Legislators(),
    legislators.Committees(),
    legislators.Rosters(),
    offices.DistrictOffices(),
    offices.SocialMedia(),
    crs.CrsReports(),
    cbo.Estimates(),
    reports.Reports(),
    reports.ReportTexts(),
    crec.Issues(),
    crec.Pages(),
    billstatus.BillStatus(),
    uslm.BillTexts(),
    uslm.Laws(),
    compilations.Compilations(),
    cfr.Regulations(),
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
