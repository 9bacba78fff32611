"""An operator's command on a base: the same object here and in the owner's process."""

from abc import abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from readingroom.core.progress import ReportProgress
from readingroom.core.settings import RoomSettings

ADMIN_PATH_PREFIX = "/admin/"
"""Where the owner of a folder takes commands from other processes."""

is_opened_for_command: ContextVar[bool] = ContextVar("is_opened_for_command", default=False)
"""Whether a base is open for one command only, and closes with it: it begins no other work."""


class Command(BaseModel):
    """Arguments as fields, the work in `run`. It travels to a live owner as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: ClassVar[str]
    """Its name on the admin route: `policy.revise`."""
    base: ClassVar[str]
    """The base whose folder it needs."""
    reads_only: ClassVar[bool] = False
    """Whether it changes nothing; then it makes no folder where there is none."""

    @abstractmethod
    async def run(self, service: Any, report_progress: ReportProgress) -> BaseModel:
        """Do the work on the base's service, saying how far it has come."""


RunCommand = Callable[[Command, RoomSettings], dict[str, Any]]
"""Runs a command, here or at the owner of the folder, and returns its result as JSON."""
