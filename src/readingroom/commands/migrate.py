"""`readingroom migrate`: an embedded room copied to a PostgreSQL database, and compared with it."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from pydantic import SecretStr

from readingroom.bases import BASES
from readingroom.commands.backup import load_backup_handlers, run_base_command
from readingroom.commands.errors import CopyDiffers
from readingroom.console.options import add_common_options, explain_interrupt, print_result
from readingroom.core.errors import InvalidSetting
from readingroom.core.progress import no_progress_sync
from readingroom.core.settings import RoomSettings
from readingroom.protocol.command import Command
from readingroom.storage.database import open_untrusted
from readingroom.storage.files import hash_file
from readingroom.storage.keys import KeyRing
from readingroom.storage.postgres.keys import SharedKeyRing, open_keys
from readingroom.storage.postgres.preflight import check_database

_SAMPLE_QUESTION_COUNT = 5
_WORKSPACE_FOLDER_NAME = ".migrating"
# A room that was moved or copied names the folder it was in, and its copy the one it is in.
_PATH_KEYS = frozenset({"file_path", "folder"})


@click.command()
@click.option("--to", "url", required=True, help="The database: postgresql://user@host/name.")
@click.option("--force", is_flag=True, help="Replace what the database holds of these bases.")
@add_common_options
def migrate(url: str, force: bool, settings: RoomSettings, as_json: bool) -> None:
    """Copy all bases and keys of the data directory to a PostgreSQL database.

    A server may run on the directory meanwhile; changes wait while a base is copied. Each base is
    put into the database in one transaction, then read back and compared with the original, row by
    row and by the answers to sample questions. Run again, it leaves out what is there already.
    Nothing is taken from the data directory: set READINGROOM_DATABASE_URL when you serve.
    """
    if settings.database_url:
        raise InvalidSetting("READINGROOM_DATABASE_URL is set: this room is on a database already")
    if not url.strip():
        raise InvalidSetting("--to is empty: write postgresql://user@host/name")
    target_settings = settings.model_copy(update={"database_url": SecretStr(url)})
    check_database(target_settings)
    _check_data_to_migrate(settings)
    with explain_interrupt(
        "Bases that were copied are in the database whole, and nothing was taken from the data "
        "directory: run the same command again, which leaves out what is there"
    ):
        outcome_by_base = _migrate_all_bases(settings, target_settings, force)
        key_count = _migrate_keys(settings, target_settings)
    outcome_lines = [
        f"{store_name}: {_describe_migration(migration_outcome)}"
        for store_name, migration_outcome in outcome_by_base.items()
    ]
    outcome_lines += [
        f"keys: {key_count} copied",
        "Set READINGROOM_DATABASE_URL, and serve from there.",
    ]
    print_result(as_json, {"bases": outcome_by_base, "keys": key_count}, "\n".join(outcome_lines))


def _check_data_to_migrate(settings: RoomSettings) -> None:
    """Raise `InvalidSetting` where the data directory has no base and no key."""
    has_bases = any(
        BASES[base_name].database_support == "moves" and backup_handler.has_data(settings)
        for base_name, backup_handler in load_backup_handlers().items()
    )
    if not has_bases and not KeyRing(settings.data).path.exists():
        found_text = "holds no base and no key" if settings.data.is_dir() else "does not exist"
        raise InvalidSetting(
            f"There is nothing to migrate: the data directory {settings.data} {found_text}. Name "
            "the room's with --data or READINGROOM_DATA"
        )


def _migrate_all_bases(
    settings: RoomSettings, target_settings: RoomSettings, is_forced: bool
) -> dict[str, dict[str, Any]]:
    """Copy the bases that have data; return what came of each."""
    outcome_by_base: dict[str, dict[str, Any]] = {}
    for base_name, backup_handler in load_backup_handlers().items():
        if BASES[base_name].database_support == "moves" and backup_handler.has_data(settings):
            click.echo(f"{base_name}: copying", err=True)
            outcome_by_base[base_name] = backup_handler.migrate_base(
                settings, target_settings, is_forced
            ) or _migrate_base(base_name, settings, target_settings, is_forced)
    return outcome_by_base


def _migrate_base(
    base_name: str, settings: RoomSettings, target_settings: RoomSettings, is_forced: bool
) -> dict[str, Any]:
    with _open_migration_workspace(settings.data) as migration_workspace:
        original_folder, copy_before_folder, copy_after_folder = (
            migration_workspace / folder_name for folder_name in ("original", "before", "after")
        )
        record_counts = _write_base_copy(base_name, settings, original_folder)
        if _write_base_copy(
            base_name, target_settings, copy_before_folder
        ) == record_counts and not _list_differing_files(original_folder, copy_before_folder):
            return {"counts": record_counts, "was_there": True}
        staged_settings = target_settings.model_copy(
            update={"data": migration_workspace / "staged"}
        )
        staged_settings.data.mkdir()
        shutil.copytree(original_folder / base_name, staged_settings.data / base_name)
        load_backup_handlers()[base_name].restore_backup(
            staged_settings, settings.data, is_forced, partial(run_base_command, base_name)
        )
        _write_base_copy(base_name, target_settings, copy_after_folder)
        if differing_file_names := _list_differing_files(original_folder, copy_after_folder):
            raise CopyDiffers(
                f"The {base_name} base in the database differs from the original "
                f"({', '.join(differing_file_names[:5])}); did it change meanwhile? Run this again "
                "with --force"
            )
        question_count = _compare_search_answers(
            base_name, settings, target_settings, original_folder
        )
    return {"counts": record_counts, "was_there": False, "compared_answers": question_count}


@contextmanager
def _open_migration_workspace(data_directory: Path) -> Iterator[Path]:
    """Give an empty folder beside the data, deleted at the end."""
    workspace_parent = data_directory / _WORKSPACE_FOLDER_NAME
    workspace_parent.mkdir(parents=True, exist_ok=True)
    migration_workspace = Path(tempfile.mkdtemp(dir=workspace_parent))
    try:
        yield migration_workspace
    finally:
        shutil.rmtree(workspace_parent, ignore_errors=True)


def _write_base_copy(base_name: str, settings: RoomSettings, copy_folder: Path) -> dict[str, int]:
    copy_folder.mkdir()
    return load_backup_handlers()[base_name].write_backup(
        settings, copy_folder, partial(run_base_command, base_name), no_progress_sync
    )


def _list_differing_files(original_folder: Path, copy_folder: Path) -> list[str]:
    """Return the names of the files that do not say the same."""
    file_names = {
        file_path.relative_to(compared_folder).as_posix()
        for compared_folder in (original_folder, copy_folder)
        for file_path in compared_folder.rglob("*")
        if file_path.is_file()
    }
    return sorted(
        file_name
        for file_name in file_names
        if _read_comparable_content(original_folder / file_name)
        != _read_comparable_content(copy_folder / file_name)
    )


def _read_comparable_content(file_path: Path) -> object:
    """Return what a file says: the rows of a database and the records of JSON in any order."""
    if not file_path.exists():
        return None
    if file_path.suffix == ".json":
        return _sort_json_lists(json.loads(file_path.read_text("utf-8")))
    if file_path.suffix == ".db":
        with closing(open_untrusted(file_path)) as copied_database:
            table_names = [
                table_name
                for (table_name,) in copied_database.execute(
                    copied_database.dialect.table_names_sql
                ).fetchall()
            ]
            return {
                table_name: sorted(
                    map(
                        _normalise_table_row, copied_database.execute(f"SELECT * FROM {table_name}")
                    )
                )
                for table_name in table_names
            }
    return hash_file(file_path)


def _normalise_table_row(table_row: tuple[Any, ...]) -> str:
    return repr(
        [
            _sort_json_lists(json.loads(column_value))
            if _is_json_text(column_value)
            else column_value
            for column_value in table_row
        ]
    )


def _is_json_text(column_value: object) -> bool:
    return (
        isinstance(column_value, str)
        and column_value.startswith("{")
        and column_value.endswith("}")
    )


def _sort_json_lists(json_value: Any) -> Any:
    """Return JSON whose lists and keys are in one order, and paths without their folders."""
    if isinstance(json_value, list):
        return sorted(map(_sort_json_lists, json_value), key=repr)
    if isinstance(json_value, dict):
        return {
            object_key: Path(json_value[object_key]).name
            if object_key in _PATH_KEYS and isinstance(json_value[object_key], str)
            else _sort_json_lists(json_value[object_key])
            for object_key in sorted(json_value)
        }
    return json_value


def _compare_search_answers(
    base_name: str, settings: RoomSettings, target_settings: RoomSettings, original_folder: Path
) -> int:
    """Ask both the same; return how many questions. Raise `CopyDiffers` for other answers."""
    with closing(open_untrusted(original_folder / base_name / "chunks.db")) as copied_database:
        chunk_text_rows = copied_database.execute(
            "SELECT text FROM chunks ORDER BY id LIMIT ?", (_SAMPLE_QUESTION_COUNT,)
        ).fetchall()
    search_command_type = _find_search_command(base_name)
    for (chunk_text,) in chunk_text_rows:
        search_command_here = search_command_type.model_validate(
            {"question": {"query": " ".join(chunk_text.split()[:12])}}
        )
        answers_of_both_rooms = [
            run_base_command(base_name, search_command_here, room_settings)
            for room_settings in (settings, target_settings)
        ]
        citations_of_both_rooms = [
            [hit["citation"] for hit in room_answer["results"]]
            for room_answer in answers_of_both_rooms
        ]
        if citations_of_both_rooms[0][:3] != citations_of_both_rooms[1][:3]:
            raise CopyDiffers(
                f"The {base_name} base in the database answers {chunk_text[:60]!r} otherwise than "
                "the original; report this, and keep serving the original"
            )
    return len(chunk_text_rows)


def _find_search_command(base_name: str) -> type[Command]:
    command_loader = BASES[base_name].commands
    assert command_loader is not None
    search_command_type: type[Command] = next(
        command_type
        for command_type in command_loader.import_value()
        if command_type.name == f"{base_name}.search"
    )
    return search_command_type


def _migrate_keys(settings: RoomSettings, target_settings: RoomSettings) -> int:
    """Copy the keys that the database does not have yet; return how many."""
    target_key_ring = open_keys(target_settings)
    assert isinstance(target_key_ring, SharedKeyRing)
    target_key_names = {target_key.name for target_key in target_key_ring.list_keys()}
    own_key_ring = KeyRing(settings.data)
    if not own_key_ring.path.exists():
        return 0
    missing_key_rows = [
        key_row for key_row in own_key_ring.read_rows() if key_row[0] not in target_key_names
    ]
    target_key_ring.insert_rows(missing_key_rows)
    if own_key_ring.is_closed():
        target_key_ring.close_room()
    return len(missing_key_rows)


def _describe_migration(migration_outcome: dict[str, Any]) -> str:
    counts_text = ", ".join(
        f"{record_count} {record_noun}"
        for record_noun, record_count in migration_outcome["counts"].items()
    )
    if migration_outcome["was_there"]:
        return f"{counts_text}; all of it was there already"
    return (
        f"{counts_text}; the same in the database, and {migration_outcome['compared_answers']} "
        "answers alike"
    )
