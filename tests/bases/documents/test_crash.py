"""Killed at any step of any change, the documents base comes back whole."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.documents.doctor import DocumentsDoctor
from tests.requirements import requirement
from tests.support.documents.base import PLAIN, Desk, open_documents_base
from tests.support.documents.victim import CHANGES, NEW, kill_at
from tests.support.policy.base import plain

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.both_engines("full")]

CASES = [(name, step) for name, change in CHANGES.items() for step in change.steps]


@requirement("documents:crash", "documents:doctor")
@pytest.mark.parametrize(("change", "step"), CASES)
async def test_a_kill_at_any_step_leaves_entries_and_chunks_in_pairs(
    tmp_path: Path, change: str, step: str
) -> None:
    kill_at(tmp_path / "documents", change, step)
    async with open_documents_base(tmp_path / "documents", **PLAIN) as library:
        records = await library.service.store.list_records()
        census = await library.service.store.count_chunks_by_document()
        # What was broken before may still be, until it is ingested again.
        if change == "ingest" or change == "remove":
            assert census == Counter({one.document_id: one.chunk_count for one in records})
            assert (await list_complaints(library)) == []
        assert census.keys() == {one.document_id for one in records}
        assert len(records) in CHANGES[change].outcomes
        again: Any = await library.ingest("new.pdf", NEW)
        assert again.status in ("success", "already_ingested")
        assert (await list_complaints(library)) == []
        assert len(await library.service.store.list_records()) == 2
        found = await library.search("cycle parking", mode="hybrid")
        assert found.results[0].text == "Cycle parking is covered."


async def list_complaints(library: Desk, repair: bool = False) -> list[Any]:
    return (await DocumentsDoctor(library.service, repair).diagnose_documents()).complaints


@requirement("documents:doctor")
async def test_a_checkup_finds_and_mends_what_others_broke(tmp_path: Path) -> None:
    async with open_documents_base(tmp_path / "documents", **PLAIN) as library:
        made: list[Any] = [
            await library.ingest(f"{name}.pdf", plain(name, "and more"))
            for name in ("orphan", "fewer", "lost")
        ]
        orphan, fewer, lost = (one.document_id for one in made)
        store = library.service.store
        await store.unregister_document(orphan)
        await store.delete_chunks([(await store.get_chunks(fewer))[0].chunk_id])
        (tmp_path / "documents" / "files" / lost / "lost.pdf").unlink()
        found = await list_complaints(library)
        mended = await list_complaints(library, repair=True)
        left = await list_complaints(library)
    assert {one.subject for one in found} == {orphan, fewer, lost}
    assert {one.subject: one.repaired for one in mended} == {
        orphan: True,
        fewer: True,
        lost: False,
    }
    assert [one.subject for one in left] == [lost]
