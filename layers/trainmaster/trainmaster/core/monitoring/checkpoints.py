"""How old the newest checkpoint of a running job is, and how often anybody looks."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Newest
from trainmaster.core.lifecycle import steps
from trainmaster.core.planning.snapshot import RunningJob

CHECKPOINT_RUNS = 5
"""A run of ``reconcile`` comes each minute: the checkpoints of a job are looked at every five at most."""


def needs_look(entry: RunningJob, *, others_wait: bool, max_age: timedelta, now: datetime) -> bool:
    """In its turn, if a look says anything."""
    return looks_at(entry.name, now=now) and is_worth_a_look(
        entry, others_wait=others_wait, max_age=max_age, now=now
    )


def is_worth_a_look(entry: RunningJob, *, others_wait: bool, max_age: timedelta, now: datetime) -> bool:
    """Where jobs wait, because a preemption chooses by it; elsewhere once the known one is too old."""
    if entry.training_since is None or not entry.has_checkpoint:
        return False
    return others_wait or is_overdue(entry.training_since, entry.checkpoint.last, max_age=max_age, now=now)


def looks_at(name: str, *, now: datetime) -> bool:
    """Each job once in five runs, not all in the same."""
    turn = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big")
    return int(now.timestamp() // 60) % CHECKPOINT_RUNS == turn % CHECKPOINT_RUNS


def is_overdue(
    training_since: datetime, last_checkpoint: datetime | None, *, max_age: timedelta, now: datetime
) -> bool:
    """A checkpoint of an earlier attempt is no younger than the start of Training of this one."""
    return now - max(training_since, last_checkpoint or training_since) > max_age


def _seen(job: Job, newest: Newest, now: datetime) -> Job:
    """What says less than is known takes nothing back."""
    seen = steps.checkpoint_seen(job, newest.written_at)
    live = seen.live_attempt
    if newest.written_at is None or newest.written_at != live.checkpoint.last:
        return seen
    since = None if newest.is_certain else live.checkpoint.uncertain_since or now
    checkpoint = replace(live.checkpoint, uncertain_since=since)
    return replace(seen, live=replace(live, checkpoint=checkpoint))


def looked_at(job: Job, newest: Newest, *, max_age: timedelta, now: datetime) -> Job:
    """The job after somebody looked for its newest checkpoint.

    What is not certain (a bucket that may not be read, a listing that goes on) never makes one overdue.
    """
    seen = _seen(job, newest, now)
    live = seen.live_attempt
    if live.training_since is None or seen.state is not JobState.RUNNING:
        return seen
    overdue = is_overdue(live.training_since, live.checkpoint.last, max_age=max_age, now=now)
    if overdue and not newest.is_certain:
        return seen
    return replace(seen, live=replace(live, checkpoint=replace(live.checkpoint, overdue=overdue)))
