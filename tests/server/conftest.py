"""What the tests of the server share."""

import pytest

from readingroom.server.http.limits import RateLimiter


@pytest.fixture
def stopped_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No caller gets an allowance back, however long a busy machine takes for a test's requests."""
    monkeypatch.setattr(RateLimiter.__init__, "__defaults__", (lambda: 0.0,))
