"""Handle unreadable rows in a pass: each stops only the job it names, and the next job takes its turn."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainmaster.core.errors import LostRaceError, RowSetAsideError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.services.scheduler.context import PassContext

UNREADABLE = Reason(
    code=ReasonCode.FAILED_TO_START,
    message="its request cannot be read: the row is gone or broken; submit the job again under another name",
)


class EntryRemovedError(LostRaceError):
    """An entry that led to no job was removed; the job behind it takes its turn at the next look."""


def read_job(seen: WaitingJob | RunningJob, context: PassContext, *, known: Job | None = None) -> Job:
    """Read the whole job, if it is still as the plan saw it: one that waits must still wait in its turn.

    Raises:
        LostRaceError: It has changed since.
        EntryRemovedError: The entry was removed.
        RowSetAsideError: Its row is unreadable, or no job is behind the entry that was seen.
    """
    job = context.reader.job(seen.name) if known is None else known
    if isinstance(seen, RunningJob):
        if job is not None and job.ver == seen.ver:
            return job
        if job is None:
            raise RowSetAsideError(f"R#{context.pool}/{seen.name}", subject=seen.name)
    elif job is None or not _stands_there(job, seen):
        _remove(seen, job, context)
    else:
        return job
    raise LostRaceError(f"{seen.name} changed after it was planned for")


def _stands_there(job: Job, seen: WaitingJob) -> bool:
    """Tell whether the job is still in its place; other writes change its version, but not its entry."""
    if job.is_live or job.is_final:
        return False
    entry = waiting_entry(job)
    place = (entry.team, entry.state, entry.shapes, entry.score, entry.parked_until_ms)
    return place == (seen.team, seen.state, seen.shapes, seen.score, seen.parked_until_ms)


def _remove(seen: WaitingJob, job: Job | None, context: PassContext) -> None:
    """Remove an entry that leads to no job, which would head its lane forever. Always raises."""
    try:
        context.store.remove_entry(context.pool, seen, job)
    except LostRaceError as error:
        if job is not None:  # another pass has claimed or changed it, and its entry went with that
            raise
        raise RowSetAsideError(f"Q#{context.pool}/{seen.name}", subject=seen.name) from error
    raise EntryRemovedError(f"the entry of {seen.name} led to no job")


def request_of(job: Job, context: PassContext) -> Mapping[str, Any] | None:
    """Return the request as submitted; None if it is unreadable, and then the job has failed to start."""
    try:
        return context.reader.request(job.name)
    except RowSetAsideError:
        after = steps.failed(job, reason=UNREADABLE, now=context.clock())
        context.store.commit([Change(before=job, after=after)], at=context.clock())
        return None


def without(snapshot: Snapshot, out_of_reach: frozenset[str]) -> Snapshot:
    """Protect running jobs with unreadable rows from preemption; the reader has left out waiting ones."""
    if not out_of_reach:
        return snapshot
    running = (
        replace(job, preemptible=False) if job.name in out_of_reach else job for job in snapshot.running
    )
    return replace(snapshot, running=tuple(running))
