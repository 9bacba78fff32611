"""The loaders: one module per publisher's format, each parses bytes into records."""

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
    register,
    reports,
    saps,
    uslm,
    votes,
)
from readingroom.bases.federal.formats.parts import pdfs
from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.schema.entries import FileProblem, FileStamp, ParsedRecord


class Loader(Protocol):
    """Recognises the files of one format, and parses them."""

    format_id: ClassVar[str]
    """With its version: files that an older version loaded are read again."""
    record_source_names: ClassVar[tuple[str, ...]]
    """The sources of its records; `federal load SOURCE …` chooses loaders by them."""

    complete_for_columns: ClassVar[str | None]
    """Columns (`congress`, or several with commas) for whose values a file holds every record:
    stored records with the same values that are not in the file are gone."""

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        """Whether a file is in this format, judged by its name and its beginning."""
        ...

    def parse(
        self, raw_file: RawFile, file_stamp: FileStamp
    ) -> Iterator[ParsedRecord | FileProblem]:
        """Yield the records of a file, and what it names that could not be loaded."""
        ...


@runtime_checkable
class ListsAllCurrentMembers(Protocol):
    """A loader one of whose files lists all current members: whoever is not in it has left."""

    current_source_name: ClassVar[str]
    """The source whose records have the column `current`."""


@runtime_checkable
class HasCompanionFiles(Protocol):
    """A loader whose files name other files next to them, which are read with them."""

    def list_companions(self, raw_file: RawFile) -> Iterator[str]:
        """Yield the names of the companions."""
        ...


# In the order in which files are loaded: people before what they did.
LOADERS: tuple[Loader, ...] = (
    legislators.LegislatorLoader(),
    legislators.CommitteeLoader(),
    legislators.RosterLoader(),
    legislators.DistrictOfficeLoader(),
    legislators.SocialMediaLoader(),
    crs.CrsReportLoader(),
    cbo.CostEstimateLoader(),
    reports.CommitteeReportLoader(),
    reports.CommitteeReportTextLoader(),
    crec.RecordIssueLoader(),
    crec.RecordPageLoader(),
    billstatus.BillStatusLoader(),
    uslm.BillTextLoader(),
    uslm.LawLoader(),
    compilations.CompilationLoader(),
    cfr.CfrLoader(),
    register.RegisterIssueLoader(),
    register.RegisterJsonLoader(),
    votes.HouseVoteLoader(),
    votes.SenateVoteLoader(),
    hearings.HouseMeetingLoader(),
    hearings.HouseWitnessLoader(),
    hearings.CongressMeetingLoader(),
    hearings.CongressHearingLoader(),
    lobbying.LobbyingFilingLoader(),
    dockets.DocketLoader(),
    saps.StatementLoader(pdfs.read_pdf_texts),
)


def list_source_names_of_format(format_id: str) -> list[str]:
    """Return the names of the sources that files of a format have records of."""
    return [
        source_name
        for loader in LOADERS
        if loader.format_id == format_id
        for source_name in loader.record_source_names
    ]
