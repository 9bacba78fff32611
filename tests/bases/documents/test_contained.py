"""Messages and archives: what is inside them becomes documents, and a bad file stops no other."""

import io
import re
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.documents.models import (
    ApplicationOverview,
    IngestFolder,
    ListIngestedDocuments,
    RemoveDocument,
)
from readingroom.bases.documents.pages.applications import DocumentPages
from readingroom.core.errors import KnowledgeError
from readingroom.core.ids import make_request_id
from readingroom.core.progress import no_progress
from readingroom.protocol.pages import PageRequest, Visitor
from readingroom.protocol.tool import ToolContext
from readingroom.storage.jobs.store import JobStore
from tests.ingest.test_formats import make_message
from tests.requirements import requirement
from tests.support.documents.base import REF, Desk, open_documents_base
from tests.support.model import WordEmbedder
from tests.support.papers import make_paper

pytestmark = [
    pytest.mark.anyio,
    requirement("documents:contained"),
    pytest.mark.both_engines("full"),
]

CALL = ToolContext(make_request_id(), "test", no_progress)
REPORT = make_paper("Bats roost in the old barn and fly along the hedge at dusk.")


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_documents_base(tmp_path / "documents", embedder=WordEmbedder()) as library:
        yield library


def make_archive(**contents: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name, content in contents.items():
            packed.writestr(name.replace("_dot_", "."), content)
    return file.getvalue()


async def list_documents_by_name(library: Desk) -> dict[str, Any]:
    listed = await library.service.list_documents(ListIngestedDocuments(application_ref=REF))
    return {Path(document.file_path).name: document for document in listed.documents}


async def test_an_attachment_is_a_document_of_its_own(library: Desk) -> None:
    mail = make_message(("Bat survey.pdf", REPORT), ("broken.pdf", b"%PDF-1.7\n1 0 obj"))

    outcome: Any = await library.ingest("objection.eml", mail)

    survey, broken = outcome.contained_files
    assert (survey.file, survey.status) == ("Bat survey.pdf", "success")
    assert (broken.status, broken.error_type) == ("error", "extraction_failed")
    documents = await list_documents_by_name(library)
    assert documents["Bat_survey.pdf"].contained_in == outcome.document_id
    assert documents["Bat_survey.pdf"].document_type == "ecology_report"
    assert documents["objection.eml"].contained_in is None
    (hit,) = (await library.search("bats barn hedge", max_results=1)).results
    assert hit.citation == "Bat survey.pdf, p. 1"
    overview = await library.service.get_overview(ApplicationOverview(application_ref=REF))
    assert [unread.source_file for unread in overview.not_ingested] == ["broken.pdf"]


async def test_ingesting_an_archive_again_reads_what_is_missing(library: Desk) -> None:
    papers = make_archive(bats_dot_pdf=REPORT, note_dot_txt=b"A note on trees.")
    first: Any = await library.ingest("papers.zip", papers)
    removed = first.contained_files[0].document_id
    await library.service.remove_document(RemoveDocument(document_id=removed))

    again: Any = await library.ingest("papers.zip", papers)

    assert again.status == "already_ingested"
    assert [inner.status for inner in again.contained_files] == ["success", "already_ingested"]


async def test_an_archive_inside_an_archive_is_refused_and_a_message_in_one_is_opened(
    library: Desk,
) -> None:
    inner = make_archive(secret_dot_txt=b"Too deep to be read.")
    mail = make_message(("note.txt", b"A note on hedges."))

    outcome: Any = await library.ingest(
        "all.zip", make_archive(inner_dot_zip=inner, a_dot_eml=mail)
    )

    told = {contained.file: contained for contained in outcome.contained_files}
    assert told["inner.zip"].error_type == "extraction_failed"
    assert "Archives inside archives" in told["inner.zip"].message
    assert (told["a.eml"].status, told["a.eml/note.txt"].status) == ("success", "success")


async def test_the_list_of_an_archive_is_no_document_of_the_kind_that_it_names(
    library: Desk, tmp_path: Path
) -> None:
    bundle = make_archive(Heritage_Statement_dot_pdf=b"%PDF-1.7\n1 0 obj")

    outcome: Any = await library.ingest("Heritage_bundle.zip", bundle)

    assert outcome.document_kind == "other"
    assert [contained.status for contained in outcome.contained_files] == ["error"]
    overview = await library.service.get_overview(ApplicationOverview(application_ref=REF))
    assert [present.document_type for present in overview.types] == ["other"]
    assert "heritage_statement" in overview.missing_types
    unread = {file.source_file: file.document_type for file in overview.not_ingested}
    assert unread == {"Heritage_Statement.pdf": "heritage_statement"}
    page = await DocumentPages(library.service, JobStore(tmp_path)).show_application(
        PageRequest({"ref": REF}, Visitor("rita", "reader"), CALL)
    )
    assert re.search(r'<h3>Heritage statement</h3><p><span class="tag warn">unread<', page.body)


async def test_an_archive_that_cannot_be_unpacked_leaves_nothing(library: Desk) -> None:
    too_many = make_archive(**{f"{index:03}_dot_txt": b"" for index in range(501)})

    with pytest.raises(KnowledgeError) as caught:
        await library.ingest("papers.zip", too_many)

    assert caught.value.code == "extraction_failed"
    assert await list_documents_by_name(library) == {}


async def test_a_folder_tells_of_the_files_inside_its_files(library: Desk) -> None:
    library.file("in/mail.eml", make_message(("note.txt", b"A note on hedges.")))

    answer = await library.service.ingest_folder(
        IngestFolder(path=str(library.inbox / "in"), application_ref=REF), no_progress
    )

    assert [outcome.file for outcome in answer.files] == ["mail.eml", "mail.eml/note.txt"]
    assert (answer.file_count, answer.ingested) == (2, 2)


async def test_pages_without_text_are_told_at_ingest_in_the_list_and_in_the_overview(
    library: Desk,
) -> None:
    content = make_paper("A page of words.", "", "Another page of words.")

    outcome: Any = await library.ingest("report.pdf", content)

    assert (outcome.page_count, outcome.pages_without_text) == (3, [2])
    assert (await list_documents_by_name(library))["report.pdf"].pages_without_text == [2]
    overview = await library.service.get_overview(ApplicationOverview(application_ref=REF))
    assert overview.pages_without_text_count == 1


async def test_files_of_two_names_are_two_unread_files_even_with_the_same_bytes(
    library: Desk,
) -> None:
    await library.ingest("bundle.zip", make_archive(empty_dot_txt=b"", zero_dot_pdf=b""))
    with pytest.raises(KnowledgeError):
        await library.ingest("zero.pdf", b"")

    overview = await library.service.get_overview(ApplicationOverview(application_ref=REF))
    unread = sorted(file.source_file for file in overview.not_ingested)
    assert unread == ["empty.txt", "zero.pdf"]
    applications = library.service.applications
    (file_hash,) = {entry.file_hash for entry in applications.list_unread(REF)}
    applications.delete_unread_entries(REF, file_hash)
    assert applications.list_unread(REF) == []
