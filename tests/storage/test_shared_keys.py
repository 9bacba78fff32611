"""Keys in the shared database: what one process adds or revokes, every other one obeys."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from readingroom.settings import load_settings
from readingroom.storage.errors import InvalidKeyName, KeyExists, KeyNotFound, StorageFailed
from readingroom.storage.keys import KeyRing
from readingroom.storage.postgres import database
from readingroom.storage.postgres import keys as postgres_keys
from readingroom.storage.postgres.database import PostgresDatabase
from readingroom.storage.postgres.keys import SharedKeyRing, open_keys
from tests.support.postgres import PostgresServer, make_database, make_template, run_server
from tests.support.processes import find_free_port, wait_until


@pytest.fixture
def rings(postgres: PostgresServer, tmp_path: Path) -> Iterator[tuple[KeyRing, KeyRing]]:
    """The keys as two processes see them, each with a data directory of its own."""
    with make_database(postgres) as url:
        environment = {"READINGROOM_DATABASE_URL": url}
        one = open_keys(load_settings({"data": tmp_path / "one"}, environment))
        two = open_keys(load_settings({"data": tmp_path / "two"}, environment))
        assert isinstance(one, SharedKeyRing) and isinstance(two, SharedKeyRing)
        yield one, two
        one.close()
        two.close()


def test_a_key_of_one_process_opens_every_other(rings: tuple[KeyRing, KeyRing]) -> None:
    one, other = rings
    assert not other.has_keys()
    secret = one.add_key("desk", is_operator=True)
    one.add_subject("agent", "subject 1", read_only=True)

    assert other.has_keys()
    holder = other.find_holder(secret.encode())
    assert holder is not None and (holder.name, holder.operator) == ("desk", True)
    assert other.find_holder_by_digest(holder.digest) == holder
    agent = other.find_subject_holder("subject 1")
    assert agent is not None and agent.read_only
    assert [key.name for key in other.list_keys()] == ["agent", "desk"]
    assert not (one.path.exists() or other.path.exists())


def test_a_key_that_one_process_revokes_is_refused_by_every_other(
    rings: tuple[KeyRing, KeyRing],
) -> None:
    one, other = rings
    secret = one.add_key("desk").encode()
    assert other.find_holder(secret) is not None
    one.revoke_key("desk")
    wait_until(lambda: other.find_holder(secret) is None)
    later = one.add_key("later").encode()
    wait_until(lambda: other.find_holder(later) is not None)


def test_names_are_held_to_the_same_rules(rings: tuple[KeyRing, KeyRing]) -> None:
    one, other = rings
    one.add_key("desk")
    with pytest.raises(KeyExists):
        other.add_key("desk")
    with pytest.raises(InvalidKeyName):
        other.add_key("a b")
    with pytest.raises(KeyNotFound):
        other.revoke_key("nobody")


def test_the_first_key_of_one_process_closes_the_room_in_every_other(
    rings: tuple[KeyRing, KeyRing],
) -> None:
    one, other = rings
    assert not one.is_key_asked_for() and not other.is_key_asked_for()
    one.add_key("desk")
    assert one.is_key_asked_for()
    wait_until(other.is_key_asked_for)
    one.revoke_key("desk")
    assert one.is_key_asked_for() and other.is_key_asked_for()


def test_a_room_that_is_reopened_is_so_in_every_process(rings: tuple[KeyRing, KeyRing]) -> None:
    one, other = rings
    one.close_room()
    wait_until(other.is_key_asked_for)
    one.reopen_room()
    assert not one.is_key_asked_for()
    wait_until(lambda: not other.is_key_asked_for())


def test_a_revoked_key_is_refused_while_others_have_all_the_connections(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_CONNECTION_WAIT_SECONDS", 1e6)
    with make_database(postgres) as url, ExitStack() as stack:
        revoking = SharedKeyRing(tmp_path, PostgresDatabase(url))
        busy_database = PostgresDatabase(url)
        serving = SharedKeyRing(tmp_path, busy_database)
        stack.callback(busy_database.close)
        stack.callback(serving.close)
        secret = revoking.add_key("desk").encode()
        assert serving.find_holder(secret) is not None
        for _ in range(database._MAX_CONNECTIONS):
            stack.enter_context(busy_database.lend_connection())
        revoking.revoke_key("desk")
        wait_until(lambda: serving.find_holder(secret) is None)


def test_a_ring_that_was_never_read_asks_no_database_for_a_caller(tmp_path: Path) -> None:
    url = f"postgresql://postgres@127.0.0.1:{find_free_port()}/room"
    ring = open_keys(load_settings({"data": tmp_path}, {"READINGROOM_DATABASE_URL": url}))
    assert isinstance(ring, SharedKeyRing)
    ring.follow_changes()  # as a server does that has another key, and goes on without these
    with pytest.raises(StorageFailed, match="no key can be checked"):
        ring.find_holder(b"any key")
    ring.close()


def test_a_caller_is_told_that_keys_cannot_be_checked_and_nothing_of_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_server(port=find_free_port()) as server:
        make_template(server)
        server.make_room("a_certain_room")
        url = f"postgresql://postgres@127.0.0.1:{server.port}/a_certain_room"
        environment = {"READINGROOM_DATABASE_URL": url}
        ring = open_keys(load_settings({"data": tmp_path}, environment))
        secret = ring.add_key("desk").encode()
        assert ring.find_holder(secret) is not None
        server.stop()
        assert ring.find_holder(secret) is not None  # for a while what was read is believed
        assert ring.is_key_asked_for()
        monkeypatch.setattr(postgres_keys, "_MAX_STALE_SECONDS", -1.0)
        with pytest.raises(StorageFailed) as refused:
            ring.find_holder(secret)
        with pytest.raises(StorageFailed) as unanswered:
            ring.is_key_asked_for()  # of somebody who may never have had a key
        ring.close()
    assert "the same key" not in unanswered.value.message
    assert "whether a key is asked for" in unanswered.value.message
    told = refused.value.message
    assert "the database with the API keys does not answer" in told
    assert "Try again in a minute" in told and "whoever runs this server" in told
    for hidden in ("127.0.0.1", str(server.port), "a_certain_room", "postgres"):
        assert hidden not in told
