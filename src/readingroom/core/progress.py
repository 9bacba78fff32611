"""Progress callbacks: how long-running work reports how far it has come.

Both kinds take the amount done, the total (None when it is not known) and a message that says what
is being done. Coroutines use `ReportProgress`; blocking code uses `ReportProgressSync`.
"""

from collections.abc import Awaitable, Callable

ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]
ReportProgressSync = Callable[[float, float | None, str | None], None]


async def no_progress(
    done_count: float, total_count: float | None, progress_message: str | None
) -> None:
    """Ignore the progress of work that nobody follows."""


def no_progress_sync(
    done_count: float, total_count: float | None, progress_message: str | None
) -> None:
    """Ignore the progress of work that nobody follows."""


def scale_progress(
    report_progress: ReportProgress, start_percent: float, end_percent: float
) -> ReportProgress:
    """Return a callback that maps the progress of one stage to `start_percent`..`end_percent`.

    What it passes on never decreases: MCP demands that of progress notifications.
    """
    reached_percent = start_percent

    async def report_scaled(
        done_count: float, total_count: float | None, progress_message: str | None
    ) -> None:
        nonlocal reached_percent
        done_fraction = min(1.0, done_count / total_count) if total_count else 0.0
        reached_percent = max(
            reached_percent, start_percent + (end_percent - start_percent) * done_fraction
        )
        await report_progress(reached_percent, 100.0, progress_message)

    return report_scaled
