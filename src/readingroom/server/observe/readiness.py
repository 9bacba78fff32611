"""`GET /ready`: whether every base can answer, and which cannot and why."""

import math
from collections.abc import Sequence

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from readingroom.core.errors import KnowledgeError
from readingroom.protocol.spec import KnowledgeBase

_CHECK_TIMEOUT_SECONDS = 5.0
# Open to everybody, so however often it is asked for, the bases are asked once a second.
_MAX_CHECK_AGE_SECONDS = 1.0


class ReadinessChecks:
    """Asks each base whether it can answer."""

    def __init__(self, knowledge_bases: Sequence[KnowledgeBase]) -> None:
        self._bases = knowledge_bases
        self._lock = anyio.Lock()
        self._checked_at = -math.inf
        self._error_codes_by_base: dict[str, str] = {}

    async def show_readiness(self, request: Request) -> Response:
        """Return 200, or 503 with the error code of each base that cannot answer."""
        async with self._lock:
            if anyio.current_time() - self._checked_at > _MAX_CHECK_AGE_SECONDS:
                self._error_codes_by_base = await self._check_bases()
                self._checked_at = anyio.current_time()
        if self._error_codes_by_base:
            status_body = {"status": "degraded", "degraded": self._error_codes_by_base}
            return JSONResponse(status_body, status_code=503)
        return JSONResponse({"status": "ready"})

    async def _check_bases(self) -> dict[str, str]:
        error_code_by_base: dict[str, str] = {}

        async def check_one_base(knowledge_base: KnowledgeBase) -> None:
            try:
                with anyio.fail_after(_CHECK_TIMEOUT_SECONDS):
                    await knowledge_base.check_ready()
            except KnowledgeError as error:
                error_code_by_base[knowledge_base.name] = error.code
            except TimeoutError:
                error_code_by_base[knowledge_base.name] = "timeout"

        async with anyio.create_task_group() as task_group:
            for knowledge_base in self._bases:
                task_group.start_soon(check_one_base, knowledge_base)
        return dict(sorted(error_code_by_base.items()))
