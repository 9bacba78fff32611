"""`GET /ready`: whether every base can answer, and which cannot and why."""

import asyncio
import logging
import math
from collections.abc import Sequence

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from readingroom.core.errors import InternalError, KnowledgeError
from readingroom.protocol.spec import KnowledgeBase

logger = logging.getLogger(__name__)

_CHECK_TIMEOUT_SECONDS = 3.0
# Open to everybody, so however often it is asked for, the bases are asked once a second.
_MAX_CHECK_AGE_SECONDS = 1.0


class ReadinessChecks:
    """Asks each base whether it can answer, and waits some seconds for those that say nothing."""

    def __init__(self, knowledge_bases: Sequence[KnowledgeBase]) -> None:
        self._base_checks = [_BaseCheck(knowledge_base) for knowledge_base in knowledge_bases]

    async def show_readiness(self, request: Request) -> Response:
        """Return 200, or 503 with the error code of each base that cannot answer."""
        async with anyio.create_task_group() as task_group:
            for base_check in self._base_checks:
                task_group.start_soon(base_check.wait_for_answer)
        error_codes_by_check = {
            base_check.base_name: error_code
            for base_check in sorted(self._base_checks, key=lambda check: check.base_name)
            if (error_code := base_check.error_code)
        }
        if error_codes_by_check:
            status_body = {"status": "degraded", "degraded": error_codes_by_check}
            return JSONResponse(status_body, status_code=503)
        return JSONResponse({"status": "ready"})


class _BaseCheck:
    """Asks one base, never twice at once.

    What a base waits for, such as a database that hangs, may hold a thread that nobody can end; so
    a check goes on behind the probes, which no longer wait for it.
    """

    def __init__(self, knowledge_base: KnowledgeBase) -> None:
        self.base_name = knowledge_base.name
        self._running_task: asyncio.Task[None] | None = None
        self._check_ready = knowledge_base.check_ready
        self._begun_at = -math.inf
        self._last_error_code: str | None = None

    @property
    def error_code(self) -> str | None:
        """What keeps the base from answering: `timeout` when it says nothing for too long.

        A check that another probe has just begun changes nothing yet.
        """
        is_silent = (
            self._running_task is not None
            and anyio.current_time() - self._begun_at >= _CHECK_TIMEOUT_SECONDS
        )
        return "timeout" if is_silent else self._last_error_code

    async def wait_for_answer(self) -> None:
        """Ask the base, unless it is being asked or was a moment ago; return in some seconds."""
        now_seconds = anyio.current_time()
        if self._running_task is None and now_seconds - self._begun_at > _MAX_CHECK_AGE_SECONDS:
            self._begun_at = now_seconds
            self._running_task = asyncio.create_task(self._ask_base())
        if self._running_task is not None:
            # A little longer: it is to be over when it is looked at.
            seconds_left = self._begun_at + _CHECK_TIMEOUT_SECONDS + 0.05 - now_seconds
            # The task goes on after that.
            await asyncio.wait([self._running_task], timeout=max(0.0, seconds_left))

    async def _ask_base(self) -> None:
        try:
            await self._check_ready()
            self._last_error_code = None
        except KnowledgeError as error:
            self._last_error_code = error.code
        except Exception:
            logger.exception("the %s base could not be asked whether it is ready", self.base_name)
            self._last_error_code = InternalError.code
        finally:
            self._running_task = None
