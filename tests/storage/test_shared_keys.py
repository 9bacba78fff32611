"""Keys in the shared database: what one process adds or revokes, every other one obeys."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from readingroom.settings import load_settings
from readingroom.storage.errors import InvalidKeyName, KeyExists, KeyNotFound
from readingroom.storage.keys import KeyRing
from readingroom.storage.postgres.keys import SharedKeyRing, open_keys
from tests.support.postgres import PostgresServer, make_database
from tests.support.processes import wait_until


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
