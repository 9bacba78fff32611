"""Describes the formats of a data directory: SQLite schemas, Chroma metadata, Redis keys."""

import json
import re
import sqlite3
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

# Values that differ from one directory to the next, and what stands for them.
_PATTERNS = {
    r"(?<=files/)\w+/[^/]+": "{document}/{file}",
    r"rev_\w+": "{revision}",
    r"\b[0-9a-f]{32,64}\b": "{hash}",
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b": "{uuid}",
    r"\b[A-Z][A-Z0-9]+(_[A-Z0-9]+)*\b": "{source}",
}
_COLLECTIONS = """
    SELECT collections.name, key FROM embedding_metadata
    JOIN embeddings USING (id)
    JOIN segments ON segments.id = embeddings.segment_id
    JOIN collections ON collections.id = segments.collection
    GROUP BY 1, 2 ORDER BY 1, 2
"""


def describe_data(data: Path) -> dict[str, Any]:
    """Return the formats of everything in a data directory."""
    return {
        "sqlite": {
            path.relative_to(data).as_posix(): describe_database(path)
            for path in sorted(data.rglob("*.db"))
        },
        "chroma": {
            path.relative_to(data).parts[0]: describe_collections(path)
            for path in sorted(data.rglob("chroma.sqlite3"))
        },
        "redis": describe_keys(data),
    }


def describe_database(path: Path) -> dict[str, Any]:
    """Return the SQL of a database, by name, with the version in its header."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        schema = {name: shorten(" ".join(sql.split())) for name, sql in rows}
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return {"schema": schema, "user_version": version}


def shorten(sql: str) -> str:
    """Replace long lists of characters, as tokenizers are given them, by their digest."""
    return re.sub(
        r"[^\x00-\x7f]{20,}", lambda match: f"{{{sha256(match[0].encode()).hexdigest()}}}", sql
    )


def describe_collections(path: Path) -> dict[str, list[str]]:
    """Return the metadata keys of each collection."""
    keys: dict[str, list[str]] = defaultdict(list)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        for collection, key in connection.execute(_COLLECTIONS):
            keys[collection].append(key)
    return keys


def describe_keys(data: Path) -> dict[str, list[str]]:
    """Return every key pattern that was written to Redis, with the commands and hash fields."""
    keys: dict[str, set[str]] = defaultdict(set)
    for path in data.rglob("*.incr.aof"):
        for command, *arguments in parse_commands(path.read_bytes()):
            if arguments and command.upper() != "SELECT":
                pattern = generalize(arguments[0])
                keys[pattern].add(command.upper())
                if command.upper() == "HSET":
                    keys[pattern] |= {f"field {name}" for name in arguments[1::2]}
    return {pattern: sorted(uses) for pattern, uses in keys.items()}


def parse_commands(log: bytes) -> Iterator[list[str]]:
    """Yield the commands of an append-only file, which is in the Redis protocol."""
    position = 0

    def read_line() -> bytes:
        nonlocal position
        end = log.index(b"\r\n", position)
        line, position = log[position:end], end + 2
        return line

    while position < len(log):
        words = []
        line = read_line()
        if not line.startswith(b"*"):  # an annotation, such as the time
            continue
        for _ in range(int(line[1:])):
            length = int(read_line()[1:])
            words.append(log[position : position + length].decode("utf-8", "replace"))
            position += length + 2
        yield words


def describe_backup(path: Path) -> dict[str, Any]:
    """Return the keys of a backup's manifest, and the patterns of the files in it."""
    with tarfile.open(path) as archive:
        member = archive.extractfile("manifest.json")
        assert member is not None
        manifest = json.load(member)
        files = {generalize(name) for name in archive.getnames()}
    return {"manifest": sorted(manifest), "files": sorted(files)}


def generalize(name: str) -> str:
    for pattern, placeholder in _PATTERNS.items():
        name = re.sub(pattern, placeholder, name)
    return name
