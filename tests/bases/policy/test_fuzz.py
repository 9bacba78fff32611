"""Every endpoint of /api/v1 under random requests: no 5xx, no answer off its schema."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.bases.policy.test_rest import POLICY, post, upload
from tests.requirements import requirement
from tests.support.effort import choose_example_count
from tests.support.fuzz import fuzz
from tests.support.kit import Served, serve_room
from tests.support.model import link_model
from tests.support.policy.base import make_brief_pdf

pytestmark = pytest.mark.both_engines("full")

REVISION = "rev_NPPF_2024_12"
TRULY = st.sampled_from([True, True, False])


@pytest.fixture(scope="module")
def served(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with one policy and one revision; the requests themselves add to it."""
    data = link_model(tmp_path_factory.mktemp("fuzz"))
    with serve_room("policy", data=data, env={"READINGROOM_RATE_LIMIT": "0"}) as served:
        post(served, "/policies", json=POLICY).raise_for_status()
        upload(served, "December 2024", "2024-12-12").raise_for_status()
        yield served


@requirement("policy:rest:fuzz")
@pytest.mark.slow
def test_no_request_breaks_the_rest_surface(served: Served) -> None:
    own_operations, workers_operations = 19, 5
    operation_count = fuzz(served, _aim, examples=choose_example_count(full=40, quick=12))
    assert operation_count == own_operations + workers_operations


def _aim(case: Any, data: st.DataObject) -> None:
    """Random names and bytes hit nothing: most requests are turned to what is there."""
    known = {"source": "NPPF", "revision_id": REVISION, "page": 1}
    for name in case.path_parameters or {}:
        if name in known and data.draw(TRULY):
            case.path_parameters[name] = known[name]
    if isinstance(case.body, dict) and "file" in case.body and data.draw(TRULY):
        case.body["file"] = ("p.pdf", make_brief_pdf("Any"))
