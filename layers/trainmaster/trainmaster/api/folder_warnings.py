"""Warnings about folders that a submission shares with live jobs."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from trainmaster.api.request_context import RequestContext
from trainmaster.core.errors import FieldError, RowSetAsideError, UnavailableError
from trainmaster.core.jobs.model import Job
from trainmaster.core.submission.admission import Submission
from trainmaster.core.submission.shared_folders import JobFolder, folders_of, warning

MOST_ASKED = 16
"""Jobs that are read to see whether they are live; older ones of the same folders are left out."""


def foreseen_folder_warnings(submission: Submission, context: RequestContext) -> tuple[FieldError, ...]:
    """What would be said of a job that is not submitted; nothing where the table does not answer."""
    folders = folders_of(submission.body)
    register = context.outside.folders
    if register is None or not context.has_time:
        return ()
    with suppress(UnavailableError):
        return tuple(_warnings(folders, register.near(folders), context))
    return ()


def folder_warnings(submission: Submission, context: RequestContext) -> tuple[FieldError, ...]:
    """What is said of a job that was just stored, whose folders are remembered for those that come.

    Crash safety: the job stands. Without this the next job of the folder is not warned of this one.
    """
    folders = folders_of(submission.body)
    register = context.outside.folders
    if register is None or not context.has_time:
        return ()
    found: tuple[FieldError, ...] = ()
    with suppress(UnavailableError):
        near = register.near(folders)
        register.note(folders, near=near, at=context.outside.clock())
        found = tuple(_warnings(folders, near, context))
    return found


def _warnings(
    folders: Sequence[JobFolder], near: Sequence[JobFolder], context: RequestContext
) -> Iterator[FieldError]:
    """One for each of the job's folders, about the job that named it last and is live."""
    met = [theirs for theirs in near if any(mine.meets(theirs) for mine in folders)]
    live = _live(list(dict.fromkeys(theirs.job for theirs in met))[:MOST_ASKED], context)
    for mine in folders:
        theirs = next((one for one in met if one.job in live and mine.meets(one)), None)
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
    """Names stay within their team."""
    return f"job {job.name} ({job.state})" if context.sees(job.spec.team) else "a live job of another team"
