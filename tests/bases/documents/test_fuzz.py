"""Every endpoint of the documents base under random requests."""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import strategies as st

from tests.bases.documents.test_served import ask
from tests.requirements import requirement
from tests.support.documents.base import REF, make_data_with_model
from tests.support.effort import choose_example_count
from tests.support.fuzz import fuzz
from tests.support.kit import Served, serve_room
from tests.support.papers import make_paper

pytestmark = pytest.mark.both_engines("full")


@pytest.fixture(scope="module")
def served(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with one document; the requests themselves add to it."""
    data = tmp_path_factory.mktemp("fuzz")
    make_data_with_model(data)
    with serve_room("documents", data=data, env={"READINGROOM_RATE_LIMIT": "0"}) as served:
        yield served


@requirement("documents:rest")
@pytest.mark.slow
def test_no_request_breaks_the_rest_surface(served: Served) -> None:
    sent = ask(
        served,
        "POST",
        "/documents",
        params={"application_ref": REF},
        files={"file": ("a.pdf", make_paper("A page about oaks."), "application/pdf")},
    )
    document_id = sent.json()["document_id"]

    def aim(case: schemathesis.Case, data: st.DataObject) -> None:
        """Most requests ask for the document and the application that are there."""
        named = "document_id" in case.path_parameters and case.method != "DELETE"
        if named and data.draw(st.sampled_from([True, True, False])):
            case.path_parameters["document_id"] = document_id
        for name in ("application_ref", "reference"):
            if case.query and name in case.query and data.draw(st.booleans()):
                case.query[name] = REF

    own_operations, workers_operations = 13, 5
    operation_count = fuzz(served, aim, examples=choose_example_count(full=12, quick=6))
    assert operation_count == own_operations + workers_operations
