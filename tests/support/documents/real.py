"""The shared real files through a client of the documents base, and what the server weighs."""

from pathlib import Path
from typing import Any

import anyio

from tests.support.documents.base import REF
from tests.support.kit import Served, body, http

AT_ONCE = 3


def files_in(folder: Path) -> list[Path]:
    kinds = (".pdf", ".png", ".jpg", ".tif", ".tiff", ".bmp")
    return [path for path in sorted(folder.rglob("*")) if path.suffix in kinds]


async def ingest_all(served: Served, folder: Path) -> dict[str, Any]:
    """Each file by a call of its own; the answers by name."""
    told: dict[str, Any] = {}
    seats = anyio.Semaphore(AT_ONCE)
    async with http(f"{served.url}/mcp", seconds=300) as client:

        async def ingest(path: Path) -> None:
            async with seats:
                asked = {"file_path": str(path), "application_ref": REF}
                answer = body(await client.call_tool("ingest_document", asked))
                told[str(path.relative_to(folder))] = answer

        async with anyio.create_task_group() as tasks:
            for path in files_in(folder):
                tasks.start_soon(ingest, path)
    return told


async def remove_all(served: Served) -> None:
    async with http(f"{served.url}/mcp") as client:
        listed = body(await client.call_tool("list_ingested_documents", {"application_ref": REF}))
        for one in listed["documents"]:
            await client.call_tool("remove_document", {"document_id": one["document_id"]})


def outcome(answer: dict[str, Any]) -> str:
    return str(answer.get("error_type") or answer.get("extraction_method") or answer["status"])
