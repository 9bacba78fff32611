"""The pages of applications: what a form changes, and what a refused one keeps."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from readingroom.bases.documents.models import SetApplication
from readingroom.bases.documents.pages.applications import DocumentPages
from readingroom.bases.documents.registry.records import Application
from readingroom.core.errors import KnowledgeError, RecordChanged
from readingroom.core.ids import make_request_id
from readingroom.core.progress import no_progress
from readingroom.protocol.pages import FormRefusal, PageRequest, Visitor
from readingroom.protocol.tool import ToolContext
from readingroom.storage.jobs.store import JobStore
from tests.requirements import requirement
from tests.support.documents.base import PLAIN, REF, Desk, open_documents_base
from tests.support.forms import read_form

pytestmark = [pytest.mark.anyio, requirement("room:console")]

EDITOR = Visitor("emil", "editor")
CALL = ToolContext(make_request_id(), "test", no_progress)
DESCRIPTION = "Ten homes.\nA road."


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_documents_base(tmp_path / "documents", **PLAIN) as library:
        await library.service.set_application(
            SetApplication(reference=REF, description=DESCRIPTION, validation_date="2024-05-01")
        )
        yield library


@pytest.fixture
def pages(library: Desk, tmp_path: Path) -> DocumentPages:
    return DocumentPages(library.service, JobStore(tmp_path))


def make_request(**parameters: str) -> PageRequest:
    return PageRequest({"ref": REF, **parameters}, EDITOR, CALL)


async def read_open_form(pages: DocumentPages, asked: PageRequest | None = None) -> dict[str, str]:
    """The form that changes the record, as a tab shows it."""
    shown = await pages.show_application(asked or make_request())
    return read_form(shown.body, "/applications/change")


async def read_application(library: Desk) -> Application:
    application = await library.service.find_application(REF)
    assert application is not None
    return application


async def test_a_form_writes_only_what_was_changed_in_it(
    library: Desk, pages: DocumentPages
) -> None:
    first, second = await read_open_form(pages), await read_open_form(pages)

    await pages.change_application(make_request(**{**first, "address": "1 High Street"}))
    await pages.change_application(make_request(**{**second, "status": "decided"}))

    application = await read_application(library)
    assert (application.address, application.status) == ("1 High Street", "decided")
    assert application.description == DESCRIPTION
    emptied = {**await read_open_form(pages), "address": ""}
    await pages.change_application(make_request(**emptied))
    assert (await read_application(library)).address is None


async def test_a_field_that_others_changed_meanwhile_is_not_overwritten_unseen(
    library: Desk, pages: DocumentPages
) -> None:
    first, second = await read_open_form(pages), await read_open_form(pages)
    await pages.change_application(
        make_request(**{**first, "address": "1 High St", "status": "new"})
    )

    # Whoever writes the same disturbs nobody.
    await pages.change_application(make_request(**{**second, "address": "1 High St"}))
    late = make_request(**{**second, "address": "2 High St"})
    with pytest.raises(RecordChanged) as caught:
        await pages.change_application(late)

    assert caught.value.http_status == 409
    assert (await read_application(library)).address == "1 High St"
    again = await read_open_form(pages, replace(late, refusal=_make_refusal(caught.value)))
    # What was not touched is shown as it is now.
    assert (again["address"], again["status"]) == ("2 High St", "new")
    await pages.change_application(make_request(**again))
    application = await read_application(library)
    assert (application.address, application.status) == ("2 High St", "new")


async def test_a_refused_day_costs_nothing_else_that_was_typed(pages: DocumentPages) -> None:
    typed = {"address": "1 High Street", "description": "Two homes.", "status": "decided"}
    sent = make_request(**{**await read_open_form(pages), **typed, "validation_date": "31/12/2024"})
    with pytest.raises(KnowledgeError) as caught:
        await pages.change_application(sent)

    again = await read_open_form(pages, replace(sent, refusal=_make_refusal(caught.value)))

    assert {name: again[name] for name in typed} == typed
    assert again["validation_date"] == "31/12/2024"
    assert again["shown_validation_date"] == "2024-05-01"


def _make_refusal(error: KnowledgeError) -> FormRefusal:
    return FormRefusal(error.code, error.message)
