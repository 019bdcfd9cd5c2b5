"""Rows that a pass stumbles over: each stops the one job it names, and the next takes its turn."""

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
    """An entry that led to no job is gone; who was behind it takes its turn at the next look."""


def read_job(seen: WaitingJob | RunningJob, context: PassContext, *, known: Job | None = None) -> Job:
    """The whole job, provided that it is still what the plan was made for: one that waits, in its turn.

    Raises:
        LostRaceError: It has changed since.
        EntryRemovedError: The entry is gone, and its place is empty.
        RowSetAsideError: Its row cannot be understood, or nobody is behind the entry that was seen.
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
    """Whatever else was written to it: that moves the job's version, not the entry's."""
    if job.is_live or job.is_final:
        return False
    entry = waiting_entry(job)
    place = (entry.team, entry.state, entry.shapes, entry.score, entry.parked_until_ms)
    return place == (seen.team, seen.state, seen.shapes, seen.score, seen.parked_until_ms)


def _remove(seen: WaitingJob, job: Job | None, context: PassContext) -> None:
    """An entry that leads to no job would be the head of its lane for ever."""
    try:
        context.store.remove_entry(context.pool, seen, job)
    except LostRaceError as error:
        raise RowSetAsideError(f"Q#{context.pool}/{seen.name}", subject=seen.name) from error
    raise EntryRemovedError(f"the entry of {seen.name} led to no job")


def request_of(job: Job, context: PassContext) -> Mapping[str, Any] | None:
    """As it was submitted; None: it cannot be read, and the job has failed to start."""
    try:
        return context.reader.request(job.name)
    except RowSetAsideError:
        after = steps.failed(job, reason=UNREADABLE, now=context.clock())
        context.store.commit([Change(before=job, after=after)], at=context.clock())
        return None


def without(snapshot: Snapshot, out_of_reach: frozenset[str]) -> Snapshot:
    """Jobs that cannot be acted on are nobody's victims; the reader has left out those that wait."""
    if not out_of_reach:
        return snapshot
    running = (
        replace(job, preemptible=False) if job.name in out_of_reach else job for job in snapshot.running
    )
    return replace(snapshot, running=tuple(running))
