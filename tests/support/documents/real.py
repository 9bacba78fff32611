"""The shared real files through a client of the documents base, and what the server weighs."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import anyio

from tests.support.documents.base import REF
from tests.support.kit import Served, connect_http, read_body

AT_ONCE = 3


def list_files(folder: Path) -> list[Path]:
    kinds = (".pdf", ".png", ".jpg", ".tif", ".tiff", ".bmp")
    return [path for path in sorted(folder.rglob("*")) if path.suffix in kinds]


def sample_of(folder: Path, always: Collection[str], per_kind: int = 2) -> list[Path]:
    """The smallest files of every kind in every subfolder, and those that `always` names."""
    groups: dict[tuple[Path, str], list[Path]] = {}
    for path in sorted(list_files(folder), key=lambda path: path.stat().st_size):
        groups.setdefault((path.parent, path.suffix), []).append(path)
    smallest = {path for group in groups.values() for path in group[:per_kind]}
    return sorted(smallest | {folder / name for name in always})


async def ingest_all(
    served: Served, folder: Path, files: Sequence[Path] | None = None
) -> dict[str, Any]:
    """Ingest each file of the folder (or these of it) by its own call; the answers by name."""
    answers: dict[str, Any] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)
    async with connect_http(f"{served.url}/mcp", seconds=900) as client:

        async def ingest(path: Path) -> None:
            async with limiter:
                arguments = {"file_path": str(path), "application_ref": REF}
                answer = read_body(await client.call_tool("ingest_document", arguments))
                answers[str(path.relative_to(folder))] = answer

        async with anyio.create_task_group() as tasks:
            for path in list_files(folder) if files is None else files:
                tasks.start_soon(ingest, path)
    return answers


async def remove_all(served: Served) -> None:
    async with connect_http(f"{served.url}/mcp") as client:
        listing = read_body(
            await client.call_tool("list_ingested_documents", {"application_ref": REF})
        )
        for document in listing["documents"]:
            await client.call_tool("remove_document", {"document_id": document["document_id"]})


def describe_outcome(answer: dict[str, Any]) -> str:
    return str(answer.get("error_type") or answer.get("extraction_method") or answer["status"])
