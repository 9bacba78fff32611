"""`readingroom keys`: make, list and revoke named API keys."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from readingroom.console.completion import complete_with
from readingroom.console.layout import format_table, make_bold
from readingroom.console.options import add_common_options, print_result
from readingroom.core.settings import RoomSettings
from readingroom.storage.keys import Key, WorkerKeys
from readingroom.storage.postgres.keys import open_keys

_NO_KEY_LEFT_TEXT = (
    "It was the last key, so nobody is let in: `readingroom keys add NAME` makes another, "
    "`readingroom keys reopen` lets the next start be open to this machine."
)


@click.group()
def keys() -> None:
    """Named API keys, for when one MCP_API_KEY is not enough.

    Each caller gets a key of its own: it shows in the log as api_key:NAME, has its own rate limit
    and sessions, and can be revoked while the server runs. Only a hash is kept. With
    JOSH_AUTH=oauth a key may stand for the tokens of one subject instead of a secret.
    """


@keys.command()
@click.argument("name")
@click.option("--subject", help="Let in OAuth tokens with this `sub`; no secret is made.")
@click.option("--read-only", is_flag=True, help="Its holder sees and calls nothing that writes.")
@click.option("--operator", is_flag=True, help="Its holder may manage keys and jobs in a browser.")
@click.option("--worker", is_flag=True, help="For `readingroom embed-worker`, and nothing else.")
@add_common_options
def add(
    name: str,
    subject: str | None,
    read_only: bool,
    operator: bool,
    worker: bool,
    settings: RoomSettings,
    as_json: bool,
) -> None:
    """Make a key called NAME and print it, this once."""
    if operator and (read_only or subject is not None):
        raise click.UsageError("--operator goes with neither --read-only nor --subject")
    if worker and (operator or read_only or subject is not None):
        raise click.UsageError("--worker goes with none of --operator, --read-only and --subject")
    if subject is not None:
        open_keys(settings).add_subject(name, subject, read_only)
        key_fields = {"name": name, "subject": subject}
        return print_result(as_json, key_fields, f"Tokens of {subject} are let in as {name}.")
    if worker:
        key_secret = WorkerKeys(settings.data).add_key(name)
    else:
        key_secret = open_keys(settings).add_key(name, read_only, operator)
    printed_text = (
        f"{key_secret}\n\nThis is the only time it is shown. "
        "Send it as: Authorization: Bearer <key>"
    )
    print_result(as_json, {"name": name, "key": key_secret}, printed_text)


@keys.command("list")
@add_common_options
def list_keys(settings: RoomSettings, as_json: bool) -> None:
    """Show every key's name, when it was made, and whose tokens it stands for."""
    all_keys = [*open_keys(settings).list_keys(), *WorkerKeys(settings.data).list_keys()]
    key_rows = [
        (
            make_bold(listed_key.name),
            listed_key.created_at,
            _describe_role(listed_key),
            listed_key.subject or "",
        )
        for listed_key in all_keys
    ]
    print_result(
        as_json,
        {"keys": [asdict(listed_key) for listed_key in all_keys]},
        format_table(key_rows) or "There are no keys.",
    )


def _list_key_names(settings: RoomSettings, typed_arguments: Mapping[str, Any]) -> list[str]:
    all_keys = [*open_keys(settings).list_keys(), *WorkerKeys(settings.data).list_keys()]
    return [listed_key.name for listed_key in all_keys]


@keys.command()
@click.argument("name", shell_complete=complete_with(_list_key_names))
@add_common_options
def revoke(name: str, settings: RoomSettings, as_json: bool) -> None:
    """Revoke the key called NAME: its next request is refused."""
    worker_keys = WorkerKeys(settings.data)
    if not worker_keys.revoke_key(name):
        open_keys(settings).revoke_key(name)
    key_ring = open_keys(settings)
    is_last = key_ring.is_closed() and not key_ring.has_keys()
    last_key_text = f" {_NO_KEY_LEFT_TEXT}" if is_last else ""
    print_result(as_json, {"name": name, "revoked": True}, f"Revoked {name}.{last_key_text}")


@keys.command()
@add_common_options
def reopen(settings: RoomSettings, as_json: bool) -> None:
    """Let a room whose keys are all revoked be open again, from the next start of its server.

    A room that had a key once asks for one until this: revoking the last key opens nothing.
    """
    open_keys(settings).reopen_room()
    print_result(
        as_json,
        {"reopened": True},
        "A server that starts from now on is open to this machine until a key is added.",
    )


def _describe_role(named_key: Key) -> str:
    has_role_by_role_name = {
        "read-only": named_key.read_only,
        "operator": named_key.operator,
        "worker": named_key.worker,
    }
    return next(
        (role_name for role_name, has_role in has_role_by_role_name.items() if has_role), ""
    )
