"""Warnings about folders that a submission shares with live jobs."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from trainmaster.api.request_context import RequestContext
from trainmaster.core.errors import FieldError, RowSetAsideError, UnavailableError
from trainmaster.core.jobs.model import Job
from trainmaster.core.submission.admission import Submission
from trainmaster.core.submission.shared_folders import JobFolder, folders_of, warning

MOST_ASKED = 16
"""Jobs read to see whether they are live; older jobs of the same folders are left out."""


def foreseen_folder_warnings(submission: Submission, context: RequestContext) -> tuple[FieldError, ...]:
    """Return the warnings that a dry run would get; none where the table does not answer."""
    folders = folders_of(submission.body)
    register = context.outside.folders
    if register is None or not context.has_time:
        return ()
    with suppress(UnavailableError):
        return tuple(_warnings(folders, register.near(folders), context))
    return ()


def folder_warnings(submission: Submission, context: RequestContext) -> tuple[FieldError, ...]:
    """Return the warnings about a job just stored, and note its folders for later submissions.

    Crash safety: the job is stored already. If this is lost, the folder's next job gets no warning of it.
    """
    folders = folders_of(submission.body)
    register = context.outside.folders
    if register is None or not context.has_time:
        return ()
    warnings: tuple[FieldError, ...] = ()
    with suppress(UnavailableError):
        near = register.near(folders)
        register.note(folders, near=near, at=context.outside.clock())
        warnings = tuple(_warnings(folders, near, context))
    return warnings


def _warnings(
    folders: Sequence[JobFolder], near: Sequence[JobFolder], context: RequestContext
) -> Iterator[FieldError]:
    """Yield a warning for each of the job's folders, about the live job that named it last."""
    met = [theirs for theirs in near if any(mine.meets(theirs) for mine in folders)]
    live = _live(list(dict.fromkeys(theirs.job for theirs in met))[:MOST_ASKED], context)
    for mine in folders:
        theirs = next((folder for folder in met if folder.job in live and mine.meets(folder)), None)
        if theirs is not None:
            yield warning(mine, theirs, who=_named(live[theirs.job], context))


def _live(names: list[str], context: RequestContext) -> dict[str, Job]:
    if not names:
        return {}
    jobs: dict[str, Job] = {}
    with suppress(RowSetAsideError):
        jobs = context.outside.reader.jobs(names)
    return {name: job for name, job in jobs.items() if not job.is_final}


def _named(job: Job, context: RequestContext) -> str:
    """Name the job only to callers of its team."""
    return f"job {job.name} ({job.state})" if context.sees(job.spec.team) else "a live job of another team"
