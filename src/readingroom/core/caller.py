"""Who is calling, for code that shares something out among callers and is told nothing else."""

from contextvars import ContextVar

current_caller: ContextVar[str] = ContextVar("current_caller", default="local")
"""Set by the server for each request: `key:NAME` or `ip:ADDRESS`."""
