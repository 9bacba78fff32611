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

_KEY_VARIABLE = "READING_ROOM_KEY"
_DEFAULT_STDIO_BASE_NAME = min(
    (spec for spec in BASES.values() if spec.serves_stdio), key=lambda spec: spec.port
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
def connect(client: str, settings: ServerSettings, as_json: bool, **options: Any) -> None:
    """Print what CLIENT needs to reach this server, or write it with --write.

    \b
      readingroom connect claude-code --write    .mcp.json of this project
      readingroom connect vscode --base policy   one base, printed
      readingroom connect claude                 Claude Desktop, over stdio
    """
    if client == "chatgpt":
        _print_chatgpt_steps(settings, options, as_json)
        return
    client_format = _FORMAT_BY_CLIENT[client]
    connection_target = _choose_connection_target(
        settings, options, is_over_stdio=options["stdio"] or client == "claude"
    )
    entry_by_server_name = {
        connection_target.name: _build_client_entry(client_format, connection_target)
    }
    project_folder = (options["folder"] or Path()).absolute()
    client_file = options["file"] or _find_client_file(client_format, project_folder)
    backup_file = (
        _write_client_entry(client_file, client_format.section, entry_by_server_name)
        if options["write"]
        else None
    )
    outcome_fields = {
        "client": client,
        "file": str(client_file),
        "configuration": {client_format.section: entry_by_server_name},
        "written": options["write"],
        "copy": str(backup_file) if backup_file else None,
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
    data: str | None


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
    server_address = connect_options["url"] or settings.public_url or _find_server_address(settings)
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
        data=str(settings.data) if click.get_current_context().params.get("data") else None,
    )


def _find_server_address(settings: ServerSettings) -> str:
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
        data_arguments = ["--data", connection_target.data] if connection_target.data else []
        return {
            **transport_field,
            "command": _find_own_program(),
            "args": ["stdio", connection_target.stdio_base_name, *data_arguments],
        }
    sent_key = connection_target.key or (
        client_format.variable % _KEY_VARIABLE if connection_target.needs_key else None
    )
    return client_format.build_entry(connection_target.url, sent_key)


def _find_own_program() -> str:
    """Return the full path of our own command: a client has another PATH."""
    program_beside_python = Path(sys.executable).with_name("readingroom")
    if program_beside_python.exists():
        return str(program_beside_python)
    return shutil.which("readingroom") or "readingroom"


def _find_client_file(client_format: ClientFormat, project_folder: Path) -> Path:
    """Return the client's file: in the project's folder, or among the user's applications."""
    if client_format is not _CLAUDE_DESKTOP:
        return project_folder / client_format.file
    if sys.platform == "darwin":
        settings_folder = Path.home() / "Library" / "Application Support"
    else:
        settings_folder = Path.home() / ".config"
    return settings_folder / "Claude" / client_format.file


def _write_client_entry(
    client_file: Path, section_name: str, entry_by_server_name: dict[str, Any]
) -> Path | None:
    """Put the entry into the file and return the copy of what it was, if it was there."""
    client_file = client_file.resolve()  # a link to a shared file stays one
    client_config = _read_client_file(client_file)
    server_entries = client_config.setdefault(section_name, {})
    if not isinstance(server_entries, dict):
        raise ClientFileUnreadable(
            f"{client_file}: {section_name!r} is not an object; mend it first"
        )
    backup_file = None
    if client_file.exists():
        backup_file = client_file.with_name(f"{client_file.name}.before-{ROOM_SERVER_NAME}")
        shutil.copy2(client_file, backup_file)
    server_entries.update(entry_by_server_name)
    client_file.parent.mkdir(parents=True, exist_ok=True)
    new_file = client_file.with_name(f".{client_file.name}.{ROOM_SERVER_NAME}")
    new_file.touch(mode=0o600)  # it may hold a key
    new_file.write_text(json.dumps(client_config, indent=2, ensure_ascii=False) + "\n", "utf-8")
    new_file.replace(client_file)
    return backup_file


def _read_client_file(client_file: Path) -> dict[str, Any]:
    try:
        client_config = json.loads(client_file.read_text("utf-8-sig").strip() or "{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ClientFileUnreadable(
            f"{client_file} is not plain JSON ({error}); leave --write out and paste the "
            "entry yourself"
        ) from error
    if not isinstance(client_config, dict):
        raise ClientFileUnreadable(f"{client_file} does not hold an object; mend it first")
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
            f"Set {_KEY_VARIABLE} to a key where the client starts, or pass --key. Make one that "
            "can change nothing, because an agent may be misled by what it reads:",
            f"  readingroom keys add {connection_target.name} --read-only",
        ]
    return "\n".join(outcome_lines)


def _print_chatgpt_steps(
    settings: ServerSettings, connect_options: dict[str, Any], as_json: bool
) -> None:
    """It has no file: a connector is added in its settings."""
    connection_target = _choose_connection_target(settings, connect_options, is_over_stdio=False)
    is_public = connection_target.url.startswith("https://")
    step_texts = [
        "Settings > Connectors > Advanced: switch on developer mode.",
        f"Create a connector with the address {connection_target.url}",
        "Authentication: OAuth where the server has it (JOSH_AUTH=oauth), else none.",
    ]
    if not is_public:
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
