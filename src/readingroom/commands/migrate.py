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
from readingroom.commands.backup import load_base_backups, run_base_command
from readingroom.commands.errors import CopyDiffers
from readingroom.console.options import add_common_options, print_result
from readingroom.core.errors import InvalidSetting
from readingroom.core.progress import no_progress_sync
from readingroom.core.settings import RoomSettings
from readingroom.protocol.command import Command
from readingroom.storage.database import open_untrusted
from readingroom.storage.files import hash_file
from readingroom.storage.keys import KeyRing
from readingroom.storage.postgres.keys import SharedKeyRing, open_keys

_SAMPLE_QUESTIONS = 5
_WORKSPACE = ".migrating"


@click.command()
@click.option("--to", "url", required=True, help="The database: postgresql://user@host/name.")
@click.option("--force", is_flag=True, help="Replace what the database holds of these bases.")
@add_common_options
def migrate(url: str, force: bool, settings: RoomSettings, as_json: bool) -> None:
    """Copy policies, documents and keys of the data directory to a PostgreSQL database.

    A server may run on the directory meanwhile; changes wait while a base is copied. Each base is
    put into the database in one transaction, then read back and compared with the original, row by
    row and by the answers to sample questions. Run again, it leaves out what is there already.
    Nothing is taken from the data directory: set READINGROOM_DATABASE_URL when you serve.
    """
    if settings.database_url:
        raise InvalidSetting("READINGROOM_DATABASE_URL is set: this room is on a database already")
    target = settings.model_copy(update={"database_url": SecretStr(url)})
    outcomes: dict[str, dict[str, Any]] = {}
    for base_name, spec in BASES.items():
        has_data = spec.backup is not None and spec.backup.load().exists(settings)
        if spec.on_database == "moves" and has_data:
            click.echo(f"{base_name}: copying", err=True)
            outcomes[base_name] = _migrate_base(base_name, settings, target, force)
    key_count = _migrate_keys(settings, target)
    lines = [f"{name}: {_describe(outcome)}" for name, outcome in outcomes.items()]
    lines += [f"keys: {key_count} copied", "Set READINGROOM_DATABASE_URL, and serve from there."]
    print_result(as_json, {"bases": outcomes, "keys": key_count}, "\n".join(lines))


def _migrate_base(
    base_name: str, settings: RoomSettings, target: RoomSettings, force: bool
) -> dict[str, Any]:
    with _open_workspace(settings.data) as workspace:
        original, before, after = (workspace / name for name in ("original", "before", "after"))
        counts = _write_copy(base_name, settings, original)
        if _write_copy(base_name, target, before) == counts and not _list_differences(
            original, before
        ):
            return {"counts": counts, "was_there": True}
        staged = target.model_copy(update={"data": workspace / "staged"})
        staged.data.mkdir()
        shutil.copytree(original / base_name, staged.data / base_name)
        load_base_backups()[base_name].restore(
            staged, settings.data, force, partial(run_base_command, base_name)
        )
        _write_copy(base_name, target, after)
        if differences := _list_differences(original, after):
            raise CopyDiffers(
                f"The {base_name} base in the database differs from the original "
                f"({', '.join(differences[:5])}); did it change meanwhile? Run this again with "
                "--force"
            )
        question_count = _compare_answers(base_name, settings, target, original)
    return {"counts": counts, "was_there": False, "compared_answers": question_count}


@contextmanager
def _open_workspace(data_directory: Path) -> Iterator[Path]:
    """Give an empty folder beside the data, deleted at the end."""
    parent = data_directory / _WORKSPACE
    parent.mkdir(parents=True, exist_ok=True)
    workspace = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield workspace
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _write_copy(base_name: str, settings: RoomSettings, folder: Path) -> dict[str, int]:
    folder.mkdir()
    return load_base_backups()[base_name].write(
        settings, folder, partial(run_base_command, base_name), no_progress_sync
    )


def _list_differences(original: Path, copy: Path) -> list[str]:
    """Return the names of the files that do not say the same."""
    names = {
        path.relative_to(folder).as_posix()
        for folder in (original, copy)
        for path in folder.rglob("*")
        if path.is_file()
    }
    return sorted(
        name for name in names if _read_content(original / name) != _read_content(copy / name)
    )


def _read_content(path: Path) -> object:
    """Return what a file says: the rows of a database and the records of JSON in any order."""
    if not path.exists():
        return None
    if path.suffix == ".json":
        return _sort_lists(json.loads(path.read_text("utf-8")))
    if path.suffix == ".db":
        with closing(open_untrusted(path)) as db:
            tables = [row[0] for row in db.execute(db.dialect.table_names).fetchall()]
            return {
                table: sorted(map(_normalise_row, db.execute(f"SELECT * FROM {table}")))
                for table in tables
            }
    return hash_file(path)


def _normalise_row(row: tuple[Any, ...]) -> str:
    return repr([_sort_lists(json.loads(value)) if _is_json(value) else value for value in row])


def _is_json(value: object) -> bool:
    return isinstance(value, str) and value.startswith("{") and value.endswith("}")


def _sort_lists(value: Any) -> Any:
    """Return JSON whose lists and keys are in one order."""
    if isinstance(value, list):
        return sorted(map(_sort_lists, value), key=repr)
    if isinstance(value, dict):
        return {key: _sort_lists(value[key]) for key in sorted(value)}
    return value


def _compare_answers(
    base_name: str, settings: RoomSettings, target: RoomSettings, original: Path
) -> int:
    """Ask both the same; return how many questions. Raise `CopyDiffers` for other answers."""
    with closing(open_untrusted(original / base_name / "chunks.db")) as db:
        rows = db.execute(
            "SELECT text FROM chunks ORDER BY id LIMIT ?", (_SAMPLE_QUESTIONS,)
        ).fetchall()
    search = _find_search_command(base_name)
    for (text,) in rows:
        command = search.model_validate({"question": {"query": " ".join(text.split()[:12])}})
        answers = [run_base_command(base_name, command, side) for side in (settings, target)]
        citations = [[hit["citation"] for hit in answer["results"]] for answer in answers]
        if citations[0][:3] != citations[1][:3]:
            raise CopyDiffers(
                f"The {base_name} base in the database answers {text[:60]!r} otherwise than the "
                "original; report this, and keep serving the original"
            )
    return len(rows)


def _find_search_command(base_name: str) -> type[Command]:
    commands = BASES[base_name].commands
    assert commands is not None
    search: type[Command] = next(
        command for command in commands.load() if command.name == f"{base_name}.search"
    )
    return search


def _migrate_keys(settings: RoomSettings, target: RoomSettings) -> int:
    """Copy the keys that the database does not have yet; return how many."""
    keys = open_keys(target)
    assert isinstance(keys, SharedKeyRing)
    known_names = {key.name for key in keys.list_keys()}
    own_keys = KeyRing(settings.data)
    if not own_keys.path.exists():
        return 0
    new_rows = [row for row in own_keys.read_rows() if row[0] not in known_names]
    keys.insert_rows(new_rows)
    return len(new_rows)


def _describe(outcome: dict[str, Any]) -> str:
    contents = ", ".join(f"{count} {noun}" for noun, count in outcome["counts"].items())
    if outcome["was_there"]:
        return f"{contents}; all of it was there already"
    return f"{contents}; the same in the database, and {outcome['compared_answers']} answers alike"
