"""A value that all threads share is made once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from readingroom.core.call_once import call_once


def test_threads_that_come_meanwhile_wait_for_the_first_one() -> None:
    everybody_asks = threading.Barrier(3)
    calls: list[object] = []

    @call_once
    def make_value() -> object:
        calls.append(object())
        return calls[-1]

    def ask(_: int) -> object:
        everybody_asks.wait()
        return make_value()

    with ThreadPoolExecutor(3) as executor:
        values = list(executor.map(ask, range(3)))
    assert len(calls) == 1
    assert all(value is calls[0] for value in values)


def test_a_value_may_be_none() -> None:
    calls: list[None] = []
    append_once = call_once(lambda: calls.append(None))
    assert append_once() is append_once() is None
    assert len(calls) == 1


def test_a_call_that_fails_is_made_again() -> None:
    answers = iter(["", "value"])

    @call_once
    def make_value() -> str:
        if not (answer := next(answers)):
            raise OSError("not yet")
        return answer

    with pytest.raises(OSError, match="not yet"):
        make_value()
    assert make_value() == make_value() == "value"
