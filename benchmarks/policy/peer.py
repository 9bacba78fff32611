"""The search that the policy contract describes, behind the bare SDK server: a peer over HTTP.

`python -m benchmarks.policy.peer FOLDER MODELS` embeds each query with the same model as ours, asks
ChromaDB with a `where` on the dates, and says where it listens.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio.to_thread
import chromadb
import mcp_types as wire
from chromadb.config import Settings
from mcp.server import Server

from readingroom.engine.embedding.embedder import Embedder
from readingroom.server.run import bind_listener, format_local_address, run_server

COLLECTION = "policy_docs"
_SHOWN_FIELDS = ("source", "revision_id", "version_label", "section_ref", "page_number")
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "effective_date": {"type": "string"}},
    "required": ["query"],
}


class DescribedSearch:
    """Sentence embedding and Chroma's `where`, as FR-001 has it."""

    def __init__(self, folder: Path, models: Path) -> None:
        settings = Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(folder, settings)
        self.collection = self._client.get_or_create_collection(COLLECTION, embedding_function=None)
        self.embedder = Embedder(models)
        self.embedder.embed("load the model")

    def search(self, query: str, day: str) -> dict[str, Any]:
        day_number = int(day.replace("-", ""))
        where: Any = {
            "$and": [
                {"effective_from": {"$lte": day_number}},
                {"effective_to": {"$gte": day_number}},
            ]
        }
        vector = self.embedder.embed(query).tolist()
        answer: Any = self.collection.query(query_embeddings=[vector], n_results=10, where=where)
        rows = zip(*(answer[name][0] for name in _COLUMNS), strict=True)
        results = [_make_hit(*row) for row in rows]
        return {
            "status": "success",
            "query": query,
            "effective_date": day,
            "results_count": len(results),
            "results": results,
        }


_COLUMNS = ("ids", "documents", "metadatas", "distances")


def _make_hit(id: str, text: str, metadata: dict[str, Any], distance: float) -> dict[str, Any]:
    score = max(0.0, 1 - distance / 2)
    shown_fields = {name: metadata[name] for name in _SHOWN_FIELDS}
    return {"chunk_id": id, "text": text, "relevance_score": score, **shown_fields}


def _build_server(described_search: DescribedSearch) -> Server[Any]:
    async def list_tools(context: Any, params: Any) -> wire.ListToolsResult:
        return wire.ListToolsResult(tools=[wire.Tool(name="search_policy", input_schema=_SCHEMA)])

    async def call_tool(context: Any, params: Any) -> wire.CallToolResult:
        arguments = params.arguments
        body = await anyio.to_thread.run_sync(
            described_search.search, arguments["query"], arguments["effective_date"]
        )
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        return wire.CallToolResult(content=[wire.TextContent(text=text)], structured_content=body)

    return Server(
        "described",
        version="0",
        get_tool_input_schema=lambda name: _SCHEMA,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def main(folder: str, models: str) -> None:
    """Serve on a free port, on the same HTTP server as ours."""
    server = _build_server(DescribedSearch(Path(folder), Path(models)))
    listener = bind_listener("127.0.0.1", 0)
    app, address = server.streamable_http_app(), format_local_address(listener, "http")
    run_server(app, listener, None, (), lambda: print(address, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
