"""What a download does with a host that is busy; tests/bases/federal/test_sync.py has the rest."""

from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from readingroom.net.download import Downloads
from readingroom.net.errors import DownloadFailed

NOW = 1794729600.0  # Sun, 15 Nov 2026 08:00:00 GMT


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("7", 7.0),
        ("Sun, 15 Nov 2026 08:00:07 GMT", 7.0),
        ("Sun, 15 Nov 2026 09:00:00 GMT", 60.0),
        ("soon", 1.0),
    ],
)
def test_a_busy_host_is_asked_again_when_it_said_a_minute_later_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retry_after: str, wait: float
) -> None:
    monkeypatch.setattr("readingroom.net.http.clock.read_unix_seconds", lambda: NOW)
    responses = [
        httpx2.Response(503, headers={"Retry-After": retry_after}),
        httpx2.Response(200, content=b"listing"),
    ]
    waits: list[float] = []
    with closing(Downloads(tmp_path, pause_seconds=0.5, sleep=waits.append)) as downloads:
        transport = httpx2.MockTransport(lambda request: responses.pop(0))
        downloads._http_client = httpx2.Client(transport=transport)
        assert downloads.read_listing("https://host.example/listing") == b"listing"
    assert waits == [wait, 0.5]


def test_after_the_last_attempt_the_failure_says_how_often_it_was_tried(tmp_path: Path) -> None:
    with closing(Downloads(tmp_path, sleep=lambda seconds: None)) as downloads:
        transport = httpx2.MockTransport(lambda request: httpx2.Response(500))
        downloads._http_client = httpx2.Client(transport=transport)
        with pytest.raises(DownloadFailed, match="status 500, after 4 tries"):
            downloads.read_listing("https://host.example/listing")
