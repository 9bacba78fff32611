"""The command line: help that teaches, JSON for machines, exit codes that mean something."""

import json
import os
import re
import sqlite3
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest

from readingroom import __version__
from readingroom.cli import main
from readingroom.commands.ask import _format_answer
from readingroom.engine.embedding.graphics_card import should_use_graphics_card
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.support.kit import invoke, run, serve_room


def list_verbs(group: click.Group, *path: str) -> dict[tuple[str, ...], click.Command]:
    """Every command below a group, by its words. Groups load lazily, so they are asked by name."""
    context = click.Context(group)
    commands: dict[tuple[str, ...], click.Command] = {path: group}
    for name in group.list_commands(context):
        verb = group.get_command(context, name)
        assert verb is not None
        is_group = isinstance(verb, click.Group)
        commands |= list_verbs(verb, *path, name) if is_group else {(*path, name): verb}
    return commands


VERBS = list_verbs(main)


@requirement("room:cli")
@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...]) -> None:
    result = invoke(*path, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith("Usage:")


@requirement("room:cli")
def test_what_a_command_makes_is_its_owners_alone(tmp_path: Path) -> None:
    """Also where everybody's default is to let others read, as on most machines."""
    data = tmp_path / "made" / "room"
    umask = os.umask(0o022)
    try:
        added = run(
            *("policy", "add", "NPPF", "--title", "The NPPF", "--category", "national_policy"),
            *("--data", str(data)),
        )
        assert added.returncode == 0, added.stderr
    finally:
        os.umask(umask)
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (data, *data.rglob("*"))}
    assert (data / "policy" / "chroma" / "chroma.sqlite3") in modes
    assert [path for path, mode in modes.items() if mode & 0o077] == []


@requirement("room:cli")
def test_every_verb_takes_data_and_json() -> None:
    assert len(VERBS) > 40
    for verb in VERBS.values():
        if not isinstance(verb, click.Group):
            assert {"data", "as_json"} <= {option.name for option in verb.params}


EMBEDDING_VERBS = {
    ("documents", "ingest"),
    ("embed-worker",),
    ("federal", "embed"),
    ("guidance", "sync"),
    ("policy", "import"),
    ("policy", "reindex"),
    ("policy", "revise"),
    ("serve",),
}
"""Every command that may embed more than a question; `serve --demo` loads the sample."""


def test_every_verb_that_embeds_takes_the_device_and_has_it_in_its_settings(
    tmp_path: Path,
) -> None:
    with_device = {
        path
        for path, verb in VERBS.items()
        if any("--device" in parameter.opts for parameter in verb.params)
    }
    assert with_device == EMBEDDING_VERBS
    if should_use_graphics_card("auto"):
        return
    # Asked for a card where there is none, a command ends and says so: the option is read.
    refused = invoke("federal", "embed", "--device", "cuda", "--data", str(tmp_path))
    assert refused.returncode == 1
    assert "--device cpu" in refused.stderr or "readingroom[gpu]" in refused.stderr


@requirement("room:cli")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--version",), 0),
        (("no-such-verb",), 2),
        (("serve", "no-such-base"), 2),
        (("serve", "--port", "many"), 2),
        (("keys", "revoke", "nobody"), 1),
        (("keys", "add", "two words"), 2),
    ],
)
def test_exit_codes_tell_success_failure_and_misuse(
    args: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    result = run(*args, env={"READINGROOM_DATA": str(tmp_path)})
    assert result.returncode == code
    assert "Traceback" not in result.stderr


@requirement("room:cli")
@pytest.mark.parametrize(
    ("args", "named"),
    [
        (("ask", "reserves", "--limit", "0"), "--limit"),
        (("ask", "reserves", "--on", "soon"), "--on"),
        (("ask", ""), "QUESTION"),
        (("guidance", "search", "  "), "QUERY"),
        (("policy", "search", "x", "--limit", "0"), "--limit"),
    ],
)
def test_a_wrong_value_ends_with_2_and_names_what_was_typed(
    args: tuple[str, ...], named: str, tmp_path: Path
) -> None:
    result = invoke(*args, "--data", str(tmp_path / "data"))
    assert result.returncode == 2
    assert named in result.stderr
    as_json = invoke(*args, "--data", str(tmp_path / "data"), "--json")
    assert as_json.returncode == 2
    assert json.loads(as_json.stderr)["error"]["code"] == "invalid_arguments"
    assert not (tmp_path / "data").exists()


def test_what_must_be_repeated_with_an_answer_is_printed_once() -> None:
    hit = {
        "snippet": "Keep some money.",
        "base": "guidance",
        "id": "guidance:/x",
        "url": "https://www.gov.uk/x",
        "in_force": None,
        "citation": {"citation_string": "Charity Commission, Reserves"},
        "attribution": "Source: GOV.UK. This is guidance, not legal advice.",
    }
    answer = {"results": [hit, hit], "confidence": "strong", "notes": []}
    assert _format_answer(answer).count(hit["attribution"]) == 1


def test_the_version_is_the_packages() -> None:
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert f'\nversion = "{__version__}"\n' in pyproject
    assert __version__ in run("--version").stdout


@requirement("room:keys", "room:cli")
def test_keys_are_added_listed_and_revoked(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    added = json.loads(invoke("keys", "add", "ann", *data, "--json").stdout)
    listed = json.loads(invoke("keys", "list", *data, "--json").stdout)
    revoked = invoke("keys", "revoke", "ann", *data)
    assert added["key"].startswith("rr_")
    assert [key["name"] for key in listed["keys"]] == ["ann"]
    assert revoked.stdout.startswith("Revoked ann. It was the last key, so nobody is let in")
    assert invoke("keys", "list", *data).stdout == "There are no keys.\n"


@requirement("room:keys")
def test_only_a_hash_of_a_key_is_kept_where_others_cannot_read(tmp_path: Path) -> None:
    secret = KeyRing(tmp_path).add_key("ann")
    stored = (tmp_path / "keys.db").read_bytes()
    for beside in tmp_path.glob("keys.db-*"):
        stored += beside.read_bytes()
    assert secret.encode() not in stored
    assert stat.S_IMODE((tmp_path / "keys.db").stat().st_mode) == 0o600


@requirement("room:keys")
@pytest.mark.parametrize("name", ["", "env", "a b", "-x", "x" * 65, "ann\n", "ännchen", "../x"])
def test_a_name_that_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    result = invoke("keys", "add", "--data", str(tmp_path), "--json", "--", name)
    assert result.returncode == 2
    assert json.loads(result.stderr)["error"]["code"] == "invalid_key_name"


@requirement("room:keys")
def test_a_name_is_given_once(tmp_path: Path) -> None:
    invoke("keys", "add", "ann", "--data", str(tmp_path))
    again = invoke("keys", "add", "ann", "--data", str(tmp_path), "--json")
    assert again.returncode == 1
    assert json.loads(again.stderr)["error"]["code"] == "key_exists"


@requirement("room:keys")
def test_two_writers_at_once_both_get_their_keys(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as writers:
        secrets = list(writers.map(lambda n: KeyRing(tmp_path).add_key(f"key-{n}"), range(40)))
    ring = KeyRing(tmp_path)
    holders = [ring.find_holder(secret.encode()) for secret in secrets]
    assert [holder and holder.name for holder in holders] == [f"key-{n}" for n in range(40)]
    with sqlite3.connect(tmp_path / "keys.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


@requirement("room:keys")
def test_keys_that_are_put_back_from_a_copy_count_at_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    old = KeyRing(data).add_key("old")
    with serve_room("text", data=data) as served:
        assert served.get("/", Authorization=f"Bearer {old}").status_code == 200
        (data / "keys.db").unlink()
        new = KeyRing(data).add_key("new")
        assert served.get("/", Authorization=f"Bearer {old}").status_code == 401
        assert served.get("/", Authorization=f"Bearer {new}").status_code == 200
        (data / "keys.db").unlink()
        assert served.get("/").status_code == 401


@requirement("room:cli")
def test_revoking_in_an_empty_directory_makes_nothing(tmp_path: Path) -> None:
    assert invoke("keys", "revoke", "ann", "--data", str(tmp_path / "data")).returncode == 1
    assert not (tmp_path / "data").exists()


@requirement("room:keys", "room:cli")
def test_damaged_keys_are_reported_and_let_nobody_in(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serve_room("text", data=data) as served:
        (data / "keys.db").write_bytes(b"this is no database" * 100)
        assert served.get("/").status_code == 503
        assert served.get("/health").status_code == 200
    for verb in (("keys", "list"), ("keys", "add", "ann"), ("serve", "--port", "0")):
        result = run(*verb, "--data", str(data))
        assert result.returncode == 1
        assert result.stderr.startswith("Error: The keys in keys.db")


@requirement("room:cli")
def test_a_data_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = invoke("keys", "add", "ann", "--data", str(tmp_path / "file" / "data"))
    assert result.returncode == 1
    assert result.stderr.startswith("Error: The keys in ")


@requirement("room:cli")
def test_a_busy_port_is_reported_with_what_to_do(tmp_path: Path) -> None:
    with serve_room("text", data=tmp_path / "data") as served:
        port = served.url.rpartition(":")[2]
        result = run("serve", "text", "--port", port, "--data", str(tmp_path / "other"))
    assert result.returncode == 1
    assert "--port" in result.stderr
    assert "Traceback" not in result.stderr


@requirement("room:two-commands")
def test_serve_prints_its_addresses_and_a_configuration_to_paste(tmp_path: Path) -> None:
    from tests.support.kit import clean_environment, make_command

    process = subprocess.Popen(
        make_command("serve", "--port", "0", "--data", str(tmp_path)),
        env=clean_environment({"JOSH_AUTH": "disabled", "MCP_API_KEY": "sesame"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    printed = "".join(iter(process.stdout.readline, "Press Ctrl-C to stop.\n"))
    process.terminate()
    process.communicate(timeout=300)
    pasted = json.loads(printed[printed.index("{") :])
    url = pasted["mcpServers"]["reading-room"]["url"]
    assert url in printed[: printed.index("{")]
    assert re.search(r"^  josh +open +http", printed, re.M)
    assert re.search(r"^  reading-room +key +http", printed, re.M)
    assert re.search(r"^  everything else +key +http", printed, re.M)
    assert "open: to this machine only" in printed
    assert process.returncode == 0
