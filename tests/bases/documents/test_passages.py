"""Passages that follow one another in a document are one result of a search by both."""

from pathlib import Path

import pytest

from readingroom.bases.documents.models import GetDocumentText
from tests.requirements import requirement
from tests.support.documents.base import open_documents_base
from tests.support.papers import make_paper

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines("full")]

STANDS = " ".join(
    f"Cycle parking stand number {number} stands within {number + 3} metres of the entrance, is "
    f"covered, is lit, and keeps {number + 60} centimetres to the next stand."
    for number in range(1, 12)
)


@requirement("documents:search:shape")
async def test_neighbours_of_one_document_are_one_result(tmp_path: Path) -> None:
    async with open_documents_base(tmp_path / "documents") as library:
        await library.ingest("Travel.pdf", make_paper(STANDS))
        await library.ingest("Bats.pdf", make_paper("Bats roost in the old barn."))
        apart = (await library.search("cycle parking stand")).results
        joined = (await library.search("cycle parking stand", mode="hybrid")).results
        document_id = joined[0].metadata.document_id
        whole = await library.service.get_text(GetDocumentText(document_id=document_id))

    chunk_ids = [hit.chunk_id for hit in apart if hit.metadata.document_id == document_id]
    assert len(chunk_ids) == 3
    assert all(hit.joined_chunk_ids == [] for hit in apart)
    assert sorted([joined[0].chunk_id, *joined[0].joined_chunk_ids]) == sorted(chunk_ids)
    assert joined[0].text == whole.text.strip()
    assert joined[0].metadata.char_count == len(joined[0].text)
    assert [hit.metadata.source_file for hit in joined] == ["Travel.pdf", "Bats.pdf"]
