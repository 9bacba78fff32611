"""`readingroom connect`: the configuration by which a client finds this server, printed or written.

A file that is there keeps all it has: one entry is put into it, and a copy of what it was before
stays beside it. A key is written only when it is given.
"""

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from readingroom.bases import BASES
from readingroom.commands.errors import ClientFileUnreadable
from readingroom.console.options import add_common_options, print_result
from readingroom.core.errors import InvalidSetting
from readingroom.federation import DESK_NAME as DESK
from readingroom.federation.room import FEDERATION_PORT
from readingroom.server.faces import ROOM_SERVER_NAME
from readingroom.server.pages.clients import CLAUDE_CODE, CURSOR, VSCODE, ClientFormat
from readingroom.server.settings import ServerSettings
from readingroom.storage.lock import read_folder_owner
from readingroom.storage.postgres.keys import open_keys

_KEY_VARIABLE_NAME = "READING_ROOM_KEY"
_DEFAULT_STDIO_BASE_NAME = min(
    (base_spec for base_spec in BASES.values() if base_spec.serves_stdio),
    key=lambda base_spec: base_spec.port,
).name


_CLAUDE_DESKTOP = ClientFormat(
    "Claude Desktop", "claude_desktop_config.json", "mcpServers", "", False
)
_FORMAT_BY_CLIENT = {
    "claude": _CLAUDE_DESKTOP,
    "claude-code": CLAUDE_CODE,
    "cursor": CURSOR,
    "vscode": VSCODE,
}


@click.command()
@click.argument("client", type=click.Choice([*_FORMAT_BY_CLIENT, "chatgpt"]))
@click.option("--base", type=click.Choice(sorted(BASES)), help="One base [all of them].")
@click.option("--url", help="The server's address [READINGROOM_PUBLIC_URL, else this machine].")
@click.option("--stdio", is_flag=True, help="Let the client start the server (text, guidance).")
@click.option("--key", help="Write this key; else a variable that holds it.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Project [here].")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Another file.")
@click.option("--write", is_flag=True, help="Write the file instead of printing.")
@add_common_options
def connect(client: str, settings: ServerSettings, as_json: bool, **connect_options: Any) -> None:
    """Print what CLIENT needs to reach this server, or write it with --write.

    \b
      readingroom connect claude-code --write    .mcp.json of this project
      readingroom connect vscode --base policy   one base, printed
      readingroom connect claude                 Claude Desktop, over stdio
    """
    if client == "chatgpt":
        _print_chatgpt_steps(settings, connect_options, as_json)
        return
    client_format = _FORMAT_BY_CLIENT[client]
    connection_target = _choose_connection_target(
        settings, connect_options, is_over_stdio=connect_options["stdio"] or client == "claude"
    )
    entry_by_server_name = {
        connection_target.name: _build_client_entry(client_format, connection_target)
    }
    project_folder = (connect_options["folder"] or Path()).absolute()
    client_file_path = connect_options["file"] or _get_client_file_path(
        client_format, project_folder
    )
    backup_path = (
        _write_client_entry(client_file_path, client_format.servers_key, entry_by_server_name)
        if connect_options["write"]
        else None
    )
    outcome_fields = {
        "client": client,
        "file": str(client_file_path),
        "configuration": {client_format.servers_key: entry_by_server_name},
        "written": connect_options["write"],
        "copy": str(backup_path) if backup_path else None,
    }
    print_result(
        as_json,
        outcome_fields,
        _describe_connection(client_format, connection_target, outcome_fields),
    )


@dataclass(frozen=True, slots=True)
class _ConnectionTarget:
    """What is to be reached: an address, or a command that the client starts."""

    name: str
    url: str
    key: str | None
    needs_key: bool
    stdio_base_name: str | None
    data_directory: str | None


def _choose_connection_target(
    settings: ServerSettings, connect_options: dict[str, Any], is_over_stdio: bool
) -> _ConnectionTarget:
    base_name: str | None = connect_options["base"]
    if is_over_stdio:
        base_name = base_name or _DEFAULT_STDIO_BASE_NAME
        if not BASES[base_name].serves_stdio:
            raise InvalidSetting(
                f"{base_name} is not served over stdio: serve it over HTTP, and in Claude "
                "add it as a connector (docs/clients.md)"
            )
    server_address = connect_options["url"] or settings.public_url or _get_server_address(settings)
    if not server_address.startswith(("http://", "https://")):
        raise InvalidSetting(
            f"{server_address!r} is not an address: it must begin with http:// or https://"
        )
    face_path = f"/{base_name}/mcp" if base_name else "/mcp"
    return _ConnectionTarget(
        name=f"{ROOM_SERVER_NAME}-{base_name}" if base_name else ROOM_SERVER_NAME,
        url=server_address
        if server_address.endswith("/mcp")
        else server_address.rstrip("/") + face_path,
        key=connect_options["key"],
        needs_key=settings.api_key is not None or open_keys(settings).is_closed(),
        stdio_base_name=base_name if is_over_stdio else None,
        # Named only where it was named to us: else the client's default is the same.
        data_directory=str(settings.data)
        if click.get_current_context().params.get("data")
        else None,
    )


def _get_server_address(settings: ServerSettings) -> str:
    """Return where a server of this data directory answers now, else where one would."""
    folder_owner = read_folder_owner(settings.data / DESK)
    return (
        folder_owner.url if folder_owner else f"http://127.0.0.1:{settings.port or FEDERATION_PORT}"
    )


def _build_client_entry(
    client_format: ClientFormat, connection_target: _ConnectionTarget
) -> dict[str, Any]:
    if connection_target.stdio_base_name:
        transport_field = {"type": "stdio"} if client_format.names_transport_type else {}
        data_arguments = (
            ["--data", connection_target.data_directory] if connection_target.data_directory else []
        )
        return {
            **transport_field,
            "command": _get_own_program_path(),
            "args": ["stdio", connection_target.stdio_base_name, *data_arguments],
        }
    key_or_variable = connection_target.key or (
        client_format.variable_template % _KEY_VARIABLE_NAME
        if connection_target.needs_key
        else None
    )
    return client_format.build_entry(connection_target.url, key_or_variable)


def _get_own_program_path() -> str:
    """Return the full path of our own command: a client has another PATH."""
    path_beside_python = Path(sys.executable).with_name("readingroom")
    if path_beside_python.exists():
        return str(path_beside_python)
    return shutil.which("readingroom") or "readingroom"


def _get_client_file_path(client_format: ClientFormat, project_folder: Path) -> Path:
    """Return the client's file: in the project's folder, or among the user's applications."""
    if client_format is not _CLAUDE_DESKTOP:
        return project_folder / client_format.configuration_path
    if sys.platform == "darwin":
        settings_folder = Path.home() / "Library" / "Application Support"
    else:
        settings_folder = Path.home() / ".config"
    return settings_folder / "Claude" / client_format.configuration_path


def _write_client_entry(
    client_file_path: Path, servers_key: str, entry_by_server_name: dict[str, Any]
) -> Path | None:
    """Put the entry into the file and return the copy of what it was, if it was there."""
    client_file_path = client_file_path.resolve()  # a link to a shared file stays one
    client_config = _read_client_file(client_file_path)
    all_entries_by_server_name = client_config.setdefault(servers_key, {})
    if not isinstance(all_entries_by_server_name, dict):
        raise ClientFileUnreadable(
            f"{client_file_path}: {servers_key!r} is not an object; mend it first"
        )
    backup_path = None
    if client_file_path.exists():
        backup_path = client_file_path.with_name(
            f"{client_file_path.name}.before-{ROOM_SERVER_NAME}"
        )
        shutil.copy2(client_file_path, backup_path)
    all_entries_by_server_name.update(entry_by_server_name)
    client_file_path.parent.mkdir(parents=True, exist_ok=True)
    temporary_path = client_file_path.with_name(f".{client_file_path.name}.{ROOM_SERVER_NAME}")
    temporary_path.touch(mode=0o600)  # it may hold a key
    temporary_path.write_text(
        json.dumps(client_config, indent=2, ensure_ascii=False) + "\n", "utf-8"
    )
    temporary_path.replace(client_file_path)
    return backup_path


def _read_client_file(client_file_path: Path) -> dict[str, Any]:
    try:
        client_config = json.loads(client_file_path.read_text("utf-8-sig").strip() or "{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ClientFileUnreadable(
            f"{client_file_path} is not plain JSON ({error}); leave --write out and paste the "
            "entry yourself"
        ) from error
    if not isinstance(client_config, dict):
        raise ClientFileUnreadable(f"{client_file_path} does not hold an object; mend it first")
    return client_config


def _describe_connection(
    client_format: ClientFormat,
    connection_target: _ConnectionTarget,
    outcome_fields: dict[str, Any],
) -> str:
    if outcome_fields["written"]:
        backup_sentence = (
            f" What it was before is in {outcome_fields['copy']}." if outcome_fields["copy"] else ""
        )
        outcome_lines = [
            f"{client_format.title}: {connection_target.name} is in "
            f"{outcome_fields['file']}.{backup_sentence} Restart the client."
        ]
    else:
        outcome_lines = [json.dumps(outcome_fields["configuration"], indent=2), ""]
        outcome_lines += [
            f"{client_format.title} reads this from {outcome_fields['file']}; "
            "--write puts it there."
        ]
    if (
        connection_target.needs_key
        and not connection_target.key
        and not connection_target.stdio_base_name
    ):
        outcome_lines += [
            f"Set {_KEY_VARIABLE_NAME} to a key where the client starts, or pass --key. Make one "
            "that can change nothing, because an agent may be misled by what it reads:",
            f"  readingroom keys add {connection_target.name} --read-only",
        ]
    return "\n".join(outcome_lines)


def _print_chatgpt_steps(
    settings: ServerSettings, connect_options: dict[str, Any], as_json: bool
) -> None:
    """It has no file: a connector is added in its settings."""
    connection_target = _choose_connection_target(settings, connect_options, is_over_stdio=False)
    is_https_address = connection_target.url.startswith("https://")
    step_texts = [
        "Settings > Connectors > Advanced: switch on developer mode.",
        f"Create a connector with the address {connection_target.url}",
        "Authentication: OAuth where the server has it (JOSH_AUTH=oauth), else none.",
    ]
    if not is_https_address:
        step_texts.append("ChatGPT calls from outside: it needs a public https address (--url).")
    outcome_fields = {
        "client": "chatgpt",
        "url": connection_target.url,
        "steps": step_texts,
        "written": False,
    }
    print_result(
        as_json,
        outcome_fields,
        "\n".join(
            f"{step_number}. {step_text}" for step_number, step_text in enumerate(step_texts, 1)
        ),
    )
