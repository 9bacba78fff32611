"""Every endpoint of /v1 under random requests: no 5xx, no answer off its schema."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.requirements import requirement
from tests.support.effort import choose_example_count
from tests.support.federal.base import load_files, make_base, write_world
from tests.support.kit import make_app


@requirement("federal:errors")
@pytest.mark.slow
@pytest.mark.both_engines("full")
def test_no_request_breaks_the_rest_surface(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("fuzz")
    write_world(data / "files", bills=12)
    load_files(data, data / "files")
    app = make_app(make_base(data), data=data, rate_limit=0, allowed_hosts=("testserver",))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 25
    for operation in operations:

        @settings(
            max_examples=choose_example_count(full=8, quick=3),
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(case=operation.as_strategy())
        def holds(case: schemathesis.Case) -> None:
            # Which texts are ids, cursors or sources is more than a schema can say, so a request
            # that fits it may be refused: with 422, which the schema names.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        holds()
