"""`/jobs/{id}`: how far a job has come, and what came of it."""

from functools import partial

import anyio.to_thread

from readingroom.protocol.pages import BasePage, PageRequest, RenderedPage
from readingroom.storage.jobs.store import JobStore
from readingroom.web.templates import render_template


def make_job_pages(job_store: JobStore) -> list[BasePage]:
    """Return the page of one job."""
    return [BasePage("/jobs/{job_id}", partial(_show_job, job_store), role="editor")]


async def _show_job(job_store: JobStore, request: PageRequest) -> RenderedPage:
    background_job = await anyio.to_thread.run_sync(
        job_store.get_job, request.get_parameter("job_id")
    )
    return RenderedPage(
        background_job.title,
        render_template("job.html", job=background_job),
        data=background_job.hide_question(),
    )
