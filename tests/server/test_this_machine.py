"""Without a key, whoever sits at this machine runs the server, and nobody who comes by a proxy."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from readingroom.server.auth import this_machine
from readingroom.server.auth.this_machine import find_sender_user_id, is_direct_and_local
from readingroom.server.settings import ServerSettings
from tests.requirements import requirement
from tests.support.kit import HANG_SECONDS, Served


def ask_for_operations(room: Served, version: str, *headers: str) -> bytes:
    """Return the status line of the page that only an operator may open."""
    host, port = room.url.removeprefix("http://").split(":")
    head = [f"GET /operations HTTP/{version}", f"Host: {host}:{port}", "Connection: close"]
    with closing(socket.create_connection((host, int(port)), HANG_SECONDS)) as connection:
        connection.sendall("\r\n".join([*head, *headers, "", ""]).encode())
        with connection.makefile("rb") as answer:
            return answer.readline().split()[1]


@requirement("room:sign-in")
def test_whoever_comes_by_a_proxy_is_no_operator(room: Served) -> None:
    assert ask_for_operations(room, "1.1", "Accept: text/html") == b"200"
    # What nginx sends of itself, with no word of configuration.
    assert ask_for_operations(room, "1.0", "Accept: text/html") == b"403"
    for header in (
        *("Via: 1.1 proxy", "Forwarded: for=1.2.3.4", "X-Forwarded-For: 1.2.3.4"),
        *("X-Forwarded-Proto: https", "X-Real-IP: 1.2.3.4", "X-Request-Start: 1"),
        *("CF-Connecting-IP: 1.2.3.4", "True-Client-IP: 1.2.3.4", "CDN-Loop: example"),
    ):
        assert ask_for_operations(room, "1.1", header) == b"403", header


@pytest.fixture(params=["127.0.0.1", "::1"])
def scope(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """A request that came over a connection that stands."""
    host = request.param
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family)) as listener, closing(socket.socket(family)) as client:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        listener.listen()
        client.connect(listener.getsockname())
        name = f"[{host}]" if ":" in host else host
        yield {
            "type": "http",
            "scheme": "http",
            "http_version": "1.1",
            "path": "/",
            "headers": [(b"host", f"{name}:8000".encode())],
            "client": client.getsockname()[:2],
            "server": listener.getsockname()[:2],
        }


@requirement("room:sign-in")
def test_a_proxy_with_an_account_of_its_own_is_told_by_it(
    scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_sender_user_id(scope) == os.getuid()
    assert is_direct_and_local(scope, ServerSettings())
    # As if this server had another account than the program that calls.
    monkeypatch.setattr(this_machine, "find_sender_user_id", lambda scope: os.getuid() + 1)
    assert not is_direct_and_local(scope, ServerSettings())


@requirement("room:sign-in")
def test_a_proxy_that_settings_or_the_host_name_is_believed_to_be_there(
    scope: dict[str, Any],
) -> None:
    assert not is_direct_and_local(scope, ServerSettings(trusted_proxies=("127.0.0.1",)))
    assert not is_direct_and_local(scope, ServerSettings(public_url="http://room.example"))
    assert not is_direct_and_local(scope, ServerSettings(host="0.0.0.0"))
    scope["headers"] = [(b"host", b"room.example")]
    assert not is_direct_and_local(scope, ServerSettings(allowed_hosts=("room.example",)))


def test_where_the_kernel_may_not_be_asked_its_tables_tell_the_account(
    scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*ends: object) -> None:
        raise PermissionError("a sandbox forbids it")

    with monkeypatch.context() as patched:
        patched.setattr(this_machine, "_CONNECTION_TABLE_PATHS", ())
        assert find_sender_user_id(scope) == os.getuid()
    monkeypatch.setattr(this_machine, "_ask_kernel_for_user_id", refuse)
    assert find_sender_user_id(scope) == os.getuid()


def test_a_connection_that_the_kernel_does_not_know_has_no_account(scope: dict[str, Any]) -> None:
    scope["client"] = ("127.0.0.1", 1)
    assert find_sender_user_id(scope) is None
    scope["client"] = None
    assert find_sender_user_id(scope) is None
    scope["client"] = ("testclient", 50000)
    assert find_sender_user_id(scope) is None
