"""Random requests that fit, or nearly fit, what a server's OpenAPI page promises."""

from collections.abc import Callable

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.support.kit import Served

Aim = Callable[[schemathesis.Case, st.DataObject], None]


def fuzz(served: Served, aim: Aim, examples: int) -> int:
    """Ask every operation so often; no 5xx, no answer off its schema. Returns how many there are.

    `aim` points a case at what is there. What a schema cannot say, such as which slugs are taken or
    what is a PDF, is known to the server alone, so a request that fits may be refused.
    """
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    with requests.Session() as web:
        web.trust_env = False
        for operation in operations:

            @settings(
                max_examples=examples,
                deadline=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
                database=None,
            )
            @given(case=operation.as_strategy(), data=st.data())
            def holds(case: schemathesis.Case, data: st.DataObject) -> None:
                aim(case, data)
                case.call_and_validate(session=web, excluded_checks=[positive_data_acceptance])

            holds()
    assert not [line for line in served.lines() if line["level"] == "ERROR"]
    return len(operations)
