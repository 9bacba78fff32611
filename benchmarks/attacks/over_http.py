"""The findings that are attacks over HTTP, each played against a running server."""

import json
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.attacks.arena import (
    Arena,
    Outcome,
    ask,
    ask_method,
    ask_tool,
    connect,
    make_key,
    open_stream,
    read_processor_seconds,
    read_until,
)
from readingroom.storage.keys import KeyRing
from tests.server.test_auth import INITIALIZE
from tests.support import kit
from tests.support.govuk import RETURN, run_emulator
from tests.support.kit import POST, Served
from tests.support.papers import make_paper

_FACES = ("", "/text", "/policy", "/documents", "/guidance", "/federal")
_POLICY = {"source": "NPPF", "title": "Framework", "category": "national_policy"}


def send_large_body(arena: Arena) -> Outcome:
    """H1."""
    body = {**_POLICY, "title": "a" * (4 * 2**20)}
    status = ask(arena.open_room, "POST", "/api/v1/policies", json=body).status_code
    return Outcome(status != 413, f"4 MB of JSON over REST: {status}")


def post_long_id(arena: Arena) -> Outcome:
    """H2."""
    with open_stream(arena.open_room) as (_, path):
        ping = {**kit.make_rpc("ping"), "id": "x" * 3_000_000}
        status = ask(arena.open_room, "POST", path, json=ping).status_code
    return Outcome(status == 202, f"an id of 3 MB to a stream that nobody reads: {status}")


def flood_unread_stream(arena: Arena) -> Outcome:
    """Second report: unread SSE sessions."""
    with open_stream(arena.open_room) as (_, path):
        statuses = []
        for _ in range(3):
            message = {**kit.make_rpc("ping"), "method": "m" * 100_000}
            statuses.append(ask(arena.open_room, "POST", path, json=message).status_code)
    return Outcome(202 in statuses, f"a method of 100 kB, which the answer repeats: {statuses[0]}")


def leave_headers_unfinished(arena: Arena) -> Outcome:
    """H4."""
    data = arena.make_data()
    key = make_key(data)
    with arena.serve("text", data=data, files=1024) as room, ExitStack() as opened:
        _open_all(room, 1100, opened, b"GET /health HTTP/1.1\r\nX: ")
        return _see_whether_served(room, key, "1,100 half-open connections")


def open_every_stream(arena: Arena) -> Outcome:
    """Looked for after the second report: one caller waits on every connection."""
    data = arena.make_data()
    key, other = make_key(data), make_key(data, "ben")
    head = f"GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {key['Authorization']}\r\n\r\n"
    env = {"READINGROOM_MAX_SESSIONS_PER_CALLER": "1000", "READINGROOM_RATE_LIMIT": "0"}
    with arena.serve("text", data=data, files=256, env=env) as room, ExitStack() as opened:
        _open_all(room, 300, opened, head.encode())
        return _see_whether_served(room, other, "300 event streams of one key, 256 open files")


def _open_all(room: Served, count: int, opened: ExitStack, sent: bytes) -> None:
    for _ in range(count):
        try:
            connection = connect(room, 5)
            connection.sendall(sent)
        except OSError:
            continue
        opened.enter_context(closing(connection))


def _see_whether_served(room: Served, key: dict[str, str], attack: str) -> Outcome:
    try:
        status = str(ask(room, "GET", "/", 10, headers=key).status_code)
    except httpx2.HTTPError as error:
        status = type(error).__name__
    return Outcome(status != "200", f"{attack}, then a request with a key: {status}")


def flood_as_image(arena: Arena) -> Outcome:
    """M4."""
    return _spend_allowance(arena, {"Sec-Fetch-Site": "cross-site"})


def flood_as_navigation(arena: Arena) -> Outcome:
    """Second report: cross-site navigations."""
    navigation = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    return _spend_allowance(arena, {"Sec-Fetch-Site": "cross-site", **navigation})


def _spend_allowance(arena: Arena, headers: dict[str, str]) -> Outcome:
    with arena.serve("text", env={"READINGROOM_RATE_LIMIT": "60"}) as room:
        with httpx2.Client(trust_env=False, timeout=60) as web:
            for _ in range(80):
                web.get(f"{room.url}/nothing", headers=headers)
        status = ask(room, "POST", "/mcp", json=INITIALIZE, headers=POST).status_code
    return Outcome(status == 429, f"80 requests of a page elsewhere, then the agent's: {status}")


def read_instructions(arena: Arena) -> Outcome:
    """M5."""
    unframed = []
    for face in _FACES:
        answer = ask_method(arena.open_room, face, "initialize", {})
        instructions = answer["result"].get("instructions") or ""
        if "quoted" not in instructions or "instruction" not in instructions:
            unframed.append(face or "/")
    return Outcome(bool(unframed), f"faces that do not say that text is quoted: {len(unframed)}")


def receive_in_temporary_folder(arena: Arena) -> Outcome:
    """M9."""
    temporary = arena.make_folder()
    env = {"TMPDIR": str(temporary)}
    with arena.serve("documents", env=env) as room, closing(connect(room)) as sender:
        host = room.url.removeprefix("http://")
        head = (
            "POST /api/v1/documents?application_ref=25/01178/REM HTTP/1.1\r\n"
            f"Host: {host}\r\nContent-Type: multipart/form-data; boundary=x\r\n"
            "Content-Length: 30000000\r\n\r\n--x\r\nContent-Disposition: form-data; "
            'name="file"; filename="a.pdf"\r\nContent-Type: application/pdf\r\n\r\n'
        )
        sender.sendall(head.encode() + b"%PDF-1.4 " + b"x" * 8_000_000)
        time.sleep(3)
        descriptors = Path(f"/proc/{room.process.pid}/fd")
        places = [str(link.readlink()) for link in descriptors.iterdir()]
    in_temporary = any(place.startswith(str(temporary)) for place in places)
    where = "the folder for temporary files" if in_temporary else "the data directory"
    return Outcome(in_temporary, f"an upload is written to {where}")


def break_a_store(arena: Arena) -> Outcome:
    """L1."""
    with arena.serve("documents") as room:
        (room.data / "documents" / "intents.db").write_bytes(b"no database " * 100)
        form = {"file": ("a.pdf", _make_pdf(), "application/pdf")}
        path = "/api/v1/documents?application_ref=25/01178/REM"
        told = ask(room, "POST", path, files=form).text
    has_path = str(room.data) in told
    return Outcome(has_path, f"a broken store names {'its path' if has_path else 'no path'}")


def refuse_to_keep_a_file(arena: Arena) -> Outcome:
    """L2."""
    with arena.serve("documents") as room:
        # As when the disk is full: nothing can be made in there.
        (room.data / "documents" / "files").write_bytes(b"a file where a folder should be")
        form = {"file": ("a.pdf", _make_pdf(), "application/pdf")}
        path = "/api/v1/documents?application_ref=25/01178/REM"
        code = ask(room, "POST", path, files=form).json()["error"]["code"]
    return Outcome(code == "internal", f"a file that cannot be kept: `{code}`")


def forge_cursor(arena: Arena) -> Outcome:
    """L3."""
    answer = ask_method(arena.open_room, "", "resources/list", {"cursor": "9" * 5000})
    code = answer.get("error", {}).get("code")
    return Outcome(code != -32602, f"a cursor of 5,000 digits: {code}")


def come_from_one_network(arena: Arena) -> Outcome:
    """L4."""
    env = {"READINGROOM_RATE_LIMIT": "60", "READINGROOM_TRUSTED_PROXIES": "127.0.0.1"}
    addresses = [{"X-Forwarded-For": f"2001:db8::{number:x}"} for number in range(1, 81)]
    with arena.serve("text", env=env) as room, httpx2.Client(trust_env=False, timeout=60) as web:
        statuses = [web.get(f"{room.url}/", headers=header).status_code for header in addresses]
    passed = statuses.count(200)
    return Outcome(passed == 80, f"80 addresses of one /64 under a limit of 60: {passed} pass")


def cite_another_host(arena: Arena) -> Outcome:
    """L5."""
    with run_emulator() as upstream:
        item = upstream.emulator.items_by_path[RETURN]
        upstream.emulator.items_by_path[RETURN] = {**item, "base_path": "@evil.example/x"}
        with arena.serve("guidance", env={"GOVUK_BASE_URL": upstream.url}) as room:
            told = json.dumps(ask_tool(room, "", "get_content_by_path", {"path": RETURN}))
    is_cited = "gov.uk@evil.example" in told
    return Outcome(is_cited, f"evil.example is {'cited' if is_cited else 'not cited'}")


def write_markdown_in_words(arena: Arena) -> Outcome:
    """Second report: Markdown in the words of a page."""
    with run_emulator() as upstream:
        item = upstream.emulator.items_by_path[RETURN]
        details = {**item["details"], "body": "<p>[click](https://evil.example/) now</p>"}
        upstream.emulator.items_by_path[RETURN] = {**item, "details": details}
        with arena.serve("guidance", env={"GOVUK_BASE_URL": upstream.url}) as room:
            answer = ask_tool(room, "", "get_content_by_path", {"path": RETURN})
    is_link = "[click](https://evil.example/)" in answer["result"]["structuredContent"]["text"]
    return Outcome(is_link, f"words in brackets {'became a link' if is_link else 'stay words'}")


def read_hostile_page(arena: Arena) -> Outcome:
    """M2."""
    rows = 9000
    table = f"<table><tr>{'<td></td>' * rows}</tr>{'<tr></tr>' * rows}</table>"
    seconds = {}
    for name, body in (("a table", table), ("tags", "<a " * 8000)):
        with run_emulator() as upstream:
            item = upstream.emulator.items_by_path[RETURN]
            details = {**item["details"], "body": body}
            upstream.emulator.items_by_path[RETURN] = {**item, "details": details}
            with arena.serve("guidance", env={"GOVUK_BASE_URL": upstream.url}) as room:
                before = read_processor_seconds(room.process.pid)
                ask_tool(room, "", "get_content_by_path", {"path": RETURN})
                seconds[name] = read_processor_seconds(room.process.pid) - before
    seen = ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items())
    return Outcome(max(seconds.values()) > 1.5, f"processor time of a hostile page: {seen}")


def take_every_session(arena: Arena) -> Outcome:
    """L6."""
    env = {"READINGROOM_RATE_LIMIT": "0"}
    with (
        arena.serve("documents", env=env) as room,
        httpx2.Client(trust_env=False, timeout=60, headers=POST) as web,
    ):
        statuses = [web.post(f"{room.url}/mcp", json=INITIALIZE).status_code for _ in range(130)]
    opened = statuses.count(200)
    return Outcome(opened == 130, f"sessions of one caller: {opened} of 130")


def look_at_headers(arena: Arena) -> Outcome:
    """L9."""
    wanted = ("x-content-type-options", "content-security-policy", "cross-origin-resource-policy")
    missing = {
        name
        for path in ("/health", "/api/v1/policies", "/nothing")
        for name in wanted
        if name not in ask(arena.open_room, "GET", path).headers
    }
    return Outcome(bool(missing), f"missing on some responses: {len(missing)} of {len(wanted)}")


def stay_after_revocation(arena: Arena, accept: str = "text/event-stream") -> Outcome:
    """I1, and the second report on `Accept`."""
    data = arena.make_data()
    key = make_key(data)
    make_key(data, "ben")
    with (
        arena.serve(data=data) as room,
        open_stream(room, {**key, "Accept": accept}) as (stream, _),
    ):
        KeyRing(data).revoke_key("ann")
        # The end of the answer; the connection itself may serve another request.
        is_open = read_until(stream, b"\r\n0\r\n\r\n", 75) is None
    return Outcome(is_open, f"75 s after its key was revoked a stream is {_say(is_open)}")


def stay_by_accept(arena: Arena) -> Outcome:
    return stay_after_revocation(arena, "*/*")


def _say(is_open: bool) -> str:
    return "open" if is_open else "closed"


def look_at_open_page(arena: Arena) -> Outcome:
    """I2."""
    page = ask(arena.locked_room, "GET", "/mcp", headers={"Accept": "text/html"}).text
    names = [name for name in ("remove_document", "ingest_policy_revision") if name in page]
    return Outcome(bool(names), f"tools of other bases on the open page: {len(names)}")


def send_body_slowly(arena: Arena) -> Outcome:
    """Second report: bodies that never end."""
    room = arena.open_room
    head = f"POST /mcp HTTP/1.1\r\nHost: {room.url[7:]}\r\nContent-Type: application/json\r\n"
    with closing(connect(room)) as sender:
        sender.sendall(f"{head}Content-Length: 1000000\r\n\r\n".encode())
        deadline = time.monotonic() + 75
        answer = None
        while time.monotonic() < deadline and answer is None:
            try:
                sender.sendall(b" ")
            except OSError:
                answer = b"closed"
                break
            answer = read_until(sender, b"\r\n", 1)
    seen = answer.split(b"\r\n")[0].decode() if answer else "still waited for"
    return Outcome(answer is None, f"a byte a second, after 75 s: {seen}")


def open_from_other_names(arena: Arena) -> Outcome:
    """The check of Host and Origin."""
    statuses = {
        ask(arena.open_room, "POST", path, json=INITIALIZE, headers={**POST, **header}).status_code
        for path in ("/mcp", "/text/mcp")
        for header in ({"Host": "evil.example"}, {"Origin": "https://evil.example"})
    }
    return Outcome(not statuses <= {421, 403}, f"foreign Host and Origin: {sorted(statuses)}")


def quote_thousands_of_words(arena: Arena) -> Outcome:
    """Third report: `verify_policy_quote`."""
    with arena.serve("policy") as room:
        _add_policy(room, " ".join("ab"[n * n % 7 % 2] for n in range(1500)))
        short = {"source": "NPPF", "quote": "not there", "date": "2025-01-01"}
        ask_tool(room, "", "verify_policy_quote", short)  # which loads the model
        before = read_processor_seconds(room.process.pid)
        words = " ".join("ab"[n * n % 11 % 2] for n in range(1990))
        arguments = {"source": "NPPF", "quote": words, "date": "2025-01-01"}
        answer = ask_tool(room, "", "verify_policy_quote", arguments, seconds=300)
        seconds = read_processor_seconds(room.process.pid) - before
    if "error" in answer or "Unknown tool" in json.dumps(answer):
        return Outcome(False, "there is no such tool")
    return Outcome(seconds > 2, f"a quotation of 1,990 words: {seconds:.1f} s of the processor")


def _add_policy(room: Served, text: str) -> None:
    ask(room, "POST", "/api/v1/policies", json=_POLICY).raise_for_status()
    fields = {"version_label": "One", "effective_from": "2024-01-01"}
    form = {"file": ("p.pdf", _make_pdf(text), "application/pdf")}
    sent = ask(room, "POST", "/api/v1/policies/NPPF/revisions", files=form, data=fields)
    sent.raise_for_status()
    status: dict[str, Any] = {"status": "processing"}
    while status["status"] == "processing":
        time.sleep(0.2)
        status = ask(room, "GET", sent.json()["links"]["status"]).json()


def _make_pdf(text: str = "Bicycles are parked under cover.") -> bytes:
    return make_paper(text)
