"""Every finding of SECURITY.md, played against 0.1.0 and against this version."""

import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.attacks import over_files, over_http
from benchmarks.attacks.arena import Arena, Outcome
from benchmarks.table import Table

Play = Callable[[Arena], Outcome]

PLAYS: dict[str, Play | str] = {
    "H1 REST bodies": over_http.send_large_body,
    "H2 unread event streams": over_http.post_long_id,
    "H3 `restore`": over_files.restore_hostile_backup,
    "H4 half-open connections": over_http.leave_headers_unfinished,
    "M1 the sandbox": over_files.take_over_a_parser,
    "M2 hostile guidance pages": over_http.read_hostile_page,
    "M3 the data directory": over_files.look_with_another_account,
    "M4 web pages": over_http.flood_as_image,
    "M5 retrieved text": over_http.read_instructions,
    "M6 a killed Valkey": over_files.kill_registry,
    "M7 small files": over_files.read_row_of_dots,
    "M8 ChromaDB": over_files.name_embedding_function,
    "M9 uploads": over_http.receive_in_temporary_folder,
    "L1 machine paths": over_http.break_a_store,
    "L2 a file that cannot be kept": over_http.refuse_to_keep_a_file,
    "L3 cursors": over_http.forge_cursor,
    "L4 IPv6": over_http.come_from_one_network,
    "L5 upstream paths": over_http.cite_another_host,
    "L6 sessions": over_http.take_every_session,
    "L7 environment of children": over_files.read_environment_of_children,
    "L8 short keys": over_files.choose_a_short_key,
    "L9 headers": over_http.look_at_headers,
    "L10 scratch folders": over_files.kill_server_while_it_reads,
    "L11 sparse files": over_files.ingest_sparse_file,
    "L12 callers who left": over_files.leave_while_it_reads,
    "L13 the unit and compose": over_files.look_at_the_unit,
    "I1 streams of revoked keys": over_http.stay_after_revocation,
    "I2 the open page": over_http.look_at_open_page,
    "I3 `file_path`": "declined: the contract fixes it",
    "I4 `--read-only`": "declined: documented",
    "I5 an issuer's `jwks_uri`": "not played, see below",
    "I6 stdio": over_files.speak_nonsense_over_stdio,
    "second: slow bodies": over_http.send_body_slowly,
    "second: unread sessions": over_http.flood_unread_stream,
    "second: Markdown in words": over_http.write_markdown_in_words,
    "second: streams by `Accept`": over_http.stay_by_accept,
    "second: navigations": over_http.flood_as_navigation,
    "second: backups and keys": over_files.restore_without_keys,
    "second: control characters": over_files.print_control_characters,
    "second: a stopped Valkey": over_files.stop_registry,
    "after it: every connection": over_http.open_every_stream,
    "third: long quotations": over_http.quote_thousands_of_words,
    "Host and Origin": over_http.open_from_other_names,
}
"""By finding, the attack; or why there is none."""

_NOTE = (
    "`python -m benchmarks --part findings --write --baseline FOLDER`, where the folder has 0.1.0 "
    "(b0dd50c). Each attack is played over HTTP, by a file, a command or a signal, by the same "
    "program against both versions; nothing of either is imported. The findings of the third "
    "report are in what 0.1.0 did not have: the console, its jobs and pictures, the readers of "
    "office files and HTML. I5 takes an https issuer: 0.1.0 fetches any `jwks_uri` that its "
    "metadata names, http on loopback too (line 215 of its oauth.py)."
)


def tables(quick: bool) -> Iterator[Table]:
    yield measure(("H1", "H2", "L3") if quick else ())


def measure(names: tuple[str, ...] = ()) -> Table:
    """Play every attack, or those named, against both versions."""
    baseline = os.environ.get("BENCHMARK_BASELINE")
    versions = {"now": {}}
    if baseline:
        versions = {"0.1.0": {"PYTHONPATH": str(Path(baseline) / "src")}, "now": {}}
    chosen = {name: play for name, play in PLAYS.items() if not names or name.split()[0] in names}
    columns = {version: _play_all(chosen, env) for version, env in versions.items()}
    rows = [(name, *(column[name] for column in columns.values())) for name in chosen]
    return Table("Attacks: each finding", ("finding", *columns), tuple(rows), _NOTE)


def _play_all(plays: dict[str, Play | str], env: dict[str, str]) -> dict[str, str]:
    seen = {}
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(Path(folder), env)
        try:
            for name, play in plays.items():
                seen[name] = play if isinstance(play, str) else _play(play, arena)
                print(f"{'0.1.0' if env else 'now'}: {name}: {seen[name]}", flush=True)
        finally:
            arena.close()
    return seen


def _play(play: Play, arena: Arena) -> str:
    try:
        return str(play(arena))
    except Exception as error:
        traceback.print_exc()
        return f"not played: {type(error).__name__}"
