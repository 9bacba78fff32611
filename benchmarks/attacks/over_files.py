"""The findings that are attacks by files, commands and processes, each played to its end."""

import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import time
from contextlib import closing
from pathlib import Path

import httpx2
from PIL import Image

from benchmarks.attacks.arena import (
    Arena,
    Outcome,
    ask,
    ask_tool,
    connect,
    find_valkey,
    list_processes_below,
    make_key,
)
from readingroom.storage.keys import KeyRing
from tests.commands.test_restore import INTENTS, REMOVE_VICTIM, make_database, write_backup
from tests.ingest.test_ocr import make_scan
from tests.server.test_auth import INITIALIZE
from tests.storage.test_chunks import FUNCTION
from tests.support import kit
from tests.support.kit import Served
from tests.support.papers import encode_image, make_drawn_pdf, make_paper

_UPLOAD = "/api/v1/documents?application_ref=25/01178/REM"


def restore_hostile_backup(arena: Arena) -> Outcome:
    """H3."""
    folder = arena.make_folder()
    (folder / "victim" / "precious").mkdir(parents=True)
    intents = make_database(folder, INTENTS, REMOVE_VICTIM)
    files = {
        "manifest.json": json.dumps({"format": 1}).encode(),
        "documents/intents.db": intents,
        "documents/files/x/y": b"x",
    }
    backup = write_backup(folder / "evil.backup", files)
    arena.run("restore", str(backup), "--data", str(folder / "home"))
    arena.run("documents", "list", "--data", str(folder / "home"))
    is_gone = not (folder / "victim").exists()
    return Outcome(is_gone, f"a folder outside was {'deleted' if is_gone else 'left alone'}")


def restore_without_keys(arena: Arena) -> Outcome:
    """Second report: a backup takes the keys away."""
    folder = arena.make_folder()
    empty, home = folder / "empty", folder / "home"
    for data in (empty, home):
        arena.run(
            "documents", "application", "25/01178/REM", "--status", "open", "--data", str(data)
        )
    backup = folder / "plain.backup"
    arena.run("backup", str(backup), "--data", str(empty))
    make_key(home)
    arena.run("restore", str(backup), "--force", "--data", str(home))
    names = [key.name for key in KeyRing(home).list_keys()]
    return Outcome(not names, f"keys after restoring a backup that has none: {len(names)} of 1")


def take_over_a_parser(arena: Arena) -> Outcome:
    """M1: a tesseract that was taken over, started by the reader of documents itself."""
    programs = arena.make_folder()
    loot = programs / "loot"
    data = arena.make_data()
    make_key(data)
    parser = programs / "tesseract"
    parser.write_text(f"#!/bin/sh\ncat {data}/keys.db > {loot}\ntouch {data}/taken\nexit 1\n")
    parser.chmod(0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    key = make_key(data, "ben")
    with arena.serve("documents", data=data, env=env) as room:
        form = {"file": ("scan.png", _make_scan(), "image/png")}
        ask(room, "POST", _UPLOAD, 300, files=form, headers=key)
    taken = [name for name, path in (("keys", loot), ("data", data / "taken")) if path.exists()]
    seen = f"read the keys and wrote to the data directory: {len(taken)} of 2"
    return Outcome(bool(taken), seen)


def look_with_another_account(arena: Arena) -> Outcome:
    """M3."""
    data = arena.make_folder() / "home"
    arena.run(
        *("documents", "application", "25/01178/REM", "--status", "open", "--data", str(data)),
        umask=0o022,
    )
    mode = stat.S_IMODE(data.stat().st_mode)
    return Outcome(bool(mode & 0o077), f"a new data directory is {mode:o}")


def kill_registry(arena: Arena) -> Outcome:
    """M6."""
    with arena.serve("policy") as room:
        os.kill(find_valkey(room), signal.SIGKILL)
        time.sleep(1)
        statuses = [ask(room, "GET", "/api/v1/policies").status_code for _ in range(3)]
    return Outcome(statuses[-1] != 200, f"the third call after Valkey was killed: {statuses[-1]}")


def stop_registry(arena: Arena) -> Outcome:
    """Second report: a stopped Valkey."""
    with arena.serve("policy") as room:
        process_id = find_valkey(room)
        os.kill(process_id, signal.SIGSTOP)
        try:
            status = str(ask(room, "GET", "/api/v1/policies", 60).status_code)
        except httpx2.TimeoutException:
            status = "no answer in 60 s"
        finally:
            os.kill(process_id, signal.SIGCONT)
    return Outcome("no answer" in status, f"a call while Valkey stands still: {status}")


def read_row_of_dots(arena: Arena) -> Outcome:
    """M7."""
    data = arena.make_data()
    dots = data.parent / "dots.pdf"
    dots.write_bytes(
        make_drawn_pdf(lambda canvas: canvas.drawString(10, 400, ". " * 6_000 + "end"))
    )
    category = ("--title", "x", "--category", "national_policy")
    arena.run("policy", "add", "NPPF", *category, "--data", str(data)).check_returncode()
    arguments = ("--label", "One", "--from", "2024-01-01", "--data", str(data))
    before = sum(os.times()[2:4])
    try:
        arena.run("policy", "revise", "NPPF", str(dots), *arguments, seconds=240)
    except subprocess.TimeoutExpired:
        return Outcome(True, "a policy that is one row of dots is not read in 240 s")
    seconds = sum(os.times()[2:4]) - before
    return Outcome(seconds > 20, f"a policy that is one row of dots: {seconds:.0f} s of processor")


def name_embedding_function(arena: Arena) -> Outcome:
    """M8."""
    data = arena.make_data()
    file = data.parent / "a.pdf"
    file.write_bytes(make_paper("Bicycles are parked under cover."))
    arguments = ("--application", "25/01178/REM", "--data", str(data))
    arena.run("documents", "ingest", str(file), *arguments).check_returncode()
    with closing(sqlite3.connect(data / "documents" / "chroma" / "chroma.sqlite3")) as db:
        rows = db.execute("SELECT id, schema_str FROM collections").fetchall()
        for collection_id, text in rows:
            schema = json.loads(text)
            index = schema["keys"]["#embedding"]["float_list"]["vector_index"]
            index["config"]["embedding_function"] = FUNCTION
            values = (json.dumps(schema), collection_id)
            db.execute("UPDATE collections SET schema_str = ? WHERE id = ?", values)
        db.commit()
    file.write_bytes(make_paper("Oaks stand at the gate."))
    done = arena.run("documents", "ingest", str(file), *arguments)
    told = done.stdout + done.stderr
    is_refused = "names an embedding function" in told
    return Outcome(not is_refused, f"such a collection is {'refused' if is_refused else 'used'}")


def read_environment_of_children(arena: Arena) -> Outcome:
    """L7."""
    room = arena.locked_room
    process_ids = [find_valkey(room)]
    process_ids += [
        process_id
        for process_id in list_processes_below(room.process.pid)
        if b"valkey" in Path(f"/proc/{process_id}/cmdline").read_bytes()
    ]
    knowing = [
        process_id
        for process_id in set(process_ids)
        if b"MCP_API_KEY" in Path(f"/proc/{process_id}/environ").read_bytes()
    ]
    return Outcome(bool(knowing), f"children of the registry that know the key: {len(knowing)}")


def choose_a_short_key(arena: Arena) -> Outcome:
    """L8."""
    with arena.serve("text", env={"MCP_API_KEY": "x"}) as room:
        warnings = [line for line in room.lines() if line["level"] == "WARNING"]
    return Outcome(not warnings, f"warnings of a key of one character: {len(warnings)}")


def kill_server_while_it_reads(arena: Arena) -> Outcome:
    """L10."""
    temporary = arena.make_folder()
    data = arena.make_data()
    env = {"TMPDIR": str(temporary)}
    with (
        arena.serve("documents", data=data, env=env) as room,
        closing(_begin_upload(room, _make_scan(frames=6))),
    ):
        _wait_for_reader(room)
        os.kill(room.process.pid, signal.SIGKILL)
        time.sleep(5)
    with arena.serve("documents", data=data, env=env) as room:
        form = {"file": ("a.pdf", make_paper("Oaks stand at the gate."), "application/pdf")}
        ask(room, "POST", _UPLOAD, 300, files=form).raise_for_status()
    # Other files are of libraries, such as onnxruntime's.
    left = [path for path in (*temporary.iterdir(), *data.rglob("*scratch-*")) if path.is_dir()]
    return Outcome(bool(left), f"scratch folders left after a kill -9 and a start: {len(left)}")


def leave_while_it_reads(arena: Arena) -> Outcome:
    """L12: work for callers who have left."""
    with arena.serve("documents") as room:
        with closing(_begin_upload(room, _make_scan(frames=12))):
            _wait_for_reader(room)
        time.sleep(6)
        readers = _list_readers(room)
    return Outcome(bool(readers), f"6 s after its sender left a file is {_say(bool(readers))}")


def _say(is_read: bool) -> str:
    return "still read" if is_read else "read no further"


def _begin_upload(room: Served, content: bytes) -> socket.socket:
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="scan.tiff"\r\n'
        b"Content-Type: image/tiff\r\n\r\n" + content + b"\r\n--x--\r\n"
    )
    host = room.url.removeprefix("http://")
    head = (
        f"POST {_UPLOAD} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    sender = connect(room)
    sender.sendall(head.encode() + body)
    return sender


def _list_readers(room: Served) -> list[int]:
    return [
        process_id
        for process_id in list_processes_below(room.process.pid)
        if b"tesseract" in Path(f"/proc/{process_id}/cmdline").read_bytes()
        or b"worker" in Path(f"/proc/{process_id}/cmdline").read_bytes()
    ]


def _wait_for_reader(room: Served) -> None:
    deadline = time.monotonic() + 120
    while not _list_readers(room) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)


def ingest_sparse_file(arena: Arena) -> Outcome:
    """L11."""
    data = arena.make_data()
    inbox = data / "documents" / "inbox"
    inbox.mkdir(parents=True)
    sparse = inbox / "large.pdf"
    with sparse.open("wb") as file:
        file.write(b"%PDF-1.4")
        file.truncate(20 * 2**30)
    with arena.serve("documents", data=data) as room:
        before = _read_written(room)
        ask_tool(
            room,
            "",
            "ingest_document",
            {"file_path": str(sparse), "application_ref": "25/01178/REM"},
            300,
        )
        written = (_read_written(room) - before) / 2**20
    return Outcome(written > 50, f"written of a sparse file of 20 GB: {written:,.0f} MB")


def _read_written(room: Served) -> int:
    fields = Path(f"/proc/{room.process.pid}/io").read_text().split()
    return int(fields[fields.index("wchar:") + 1])


def print_control_characters(arena: Arena) -> Outcome:
    """Second report: control characters in titles reached the terminal."""
    data = arena.make_data()
    with arena.serve("policy", data=data) as room:
        policy = {"source": "NPPF", "title": "\x1b]0;pwned\x07x", "category": "national_policy"}
        status = ask(room, "POST", "/api/v1/policies", json=policy).status_code
        printed = arena.run("policy", "list", "--data", str(data)).stdout
    return Outcome(
        "\x1b" in printed, f"a title with ESC ({status}), printed raw: {chr(27) in printed}"
    )


def look_at_the_unit(arena: Arena) -> Outcome:
    """L13."""
    root = Path(arena.env["PYTHONPATH"]).parent if arena.env else Path(__file__).parents[2]
    unit = next((root / "deploy" / "systemd").glob("*.service")).read_text()
    compose = (root / "compose.yaml").read_text()
    wanted = ("SystemCallFilter=@system-service", "ProtectProc=", "TasksMax=", "ProtectHostname=")
    missing = [name for name in wanted if name not in unit]
    missing += [name for name in ("pids_limit",) if name not in compose]
    return Outcome(bool(missing), f"missing in the unit and compose: {len(missing)} of 5")


def speak_nonsense_over_stdio(arena: Arena) -> Outcome:
    """I6."""
    done = subprocess.run(
        kit.make_command("stdio", "text", "--log-level", "debug"),
        env=kit.clean_environment(arena.env),
        input="{no json\n" + json.dumps(INITIALIZE) + "\n",
        capture_output=True,
        text=True,
        timeout=300,
    )
    is_silent = "is no JSON-RPC message" not in done.stderr
    return Outcome(is_silent, f"a line that is no JSON is {'not ' if is_silent else ''}logged")


def _make_scan(frames: int = 1) -> bytes:
    picture: Image.Image = make_scan("Bicycles are parked under cover. " * 60)
    if frames == 1:
        return encode_image(picture, "png")
    return encode_image(picture, "tiff", save_all=True, append_images=[picture] * (frames - 1))
