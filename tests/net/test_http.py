"""The rules of every HTTP client of the project, and the one retry."""

import httpx2
import pytest

from readingroom.net.http import (
    MAX_RETRY_AFTER_SECONDS,
    RetryPolicy,
    TransientError,
    make_async_client,
    make_client,
    parse_retry_after,
    retry_async,
    retry_call,
)
from tests.support.govuk import Clock

pytestmark = pytest.mark.anyio

NOW = 1794729600.0  # Sun, 15 Nov 2026 08:00:00 GMT


def test_a_client_follows_no_redirect_and_no_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    for client in (make_client(), make_async_client()):
        assert not client.follow_redirects
        assert not client.trust_env
        assert client.headers["user-agent"].startswith("readingroom/")


def test_headers_of_the_caller_go_with_every_request() -> None:
    with make_client(extra_headers={"Accept-Encoding": "identity"}) as client:
        request = client.build_request("GET", "http://host.example")
    assert request.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        (" 3 ", 3.0),
        ("0", 0.0),
        ("Sun, 15 Nov 2026 08:00:03 GMT", 3.0),
        ("Sun, 15 Nov 2026 07:00:00 GMT", 0.0),
        ("Sun, 15 Nov 2099 08:00:00 GMT", MAX_RETRY_AFTER_SECONDS),
        ("99999999", MAX_RETRY_AFTER_SECONDS),
        ("-1", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(
    header: str | None, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readingroom.net.http.clock.read_unix_seconds", lambda: NOW)
    assert parse_retry_after(header) == seconds


class Work:
    """Fails a number of times, then returns "done"."""

    def __init__(self, failures: int, retry_after_seconds: float | None = None) -> None:
        self.calls = 0
        self._failures = failures
        self._retry_after = retry_after_seconds

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise TransientError(f"failure {self.calls}", self._retry_after)
        return "done"

    async def awaited(self) -> str:
        return self()


def test_waits_double_until_an_attempt_succeeds() -> None:
    waits: list[float] = []
    assert retry_call(Work(failures=3), RetryPolicy(), waits.append) == "done"
    assert waits == [1.0, 2.0, 4.0]


def test_the_last_failure_is_raised_and_nobody_sleeps_after_it() -> None:
    waits: list[float] = []
    work = Work(failures=9)
    with pytest.raises(TransientError, match="failure 4"):
        retry_call(work, RetryPolicy(max_attempts=4), waits.append)
    assert (work.calls, len(waits)) == (4, 3)


def test_the_host_decides_the_wait_up_to_the_longest_one() -> None:
    waits: list[float] = []
    retry_call(
        Work(failures=1, retry_after_seconds=7.0), RetryPolicy(max_wait_seconds=60), waits.append
    )
    retry_call(
        Work(failures=1, retry_after_seconds=900.0), RetryPolicy(max_wait_seconds=60), waits.append
    )
    assert waits == [7.0, 60]


def test_another_error_is_not_retried() -> None:
    def fail() -> str:
        raise httpx2.InvalidURL("no URL")

    with pytest.raises(httpx2.InvalidURL):
        retry_call(fail, RetryPolicy(), pytest.fail)


async def test_no_attempt_begins_after_the_deadline() -> None:
    clock = Clock(0.0)
    work = Work(failures=9)
    with pytest.raises(TransientError, match="failure 2"):
        await retry_async(
            work.awaited, RetryPolicy(), deadline_at=3.0, read_clock=clock, sleep=clock.sleep
        )
    assert clock.slept == [1.0]
