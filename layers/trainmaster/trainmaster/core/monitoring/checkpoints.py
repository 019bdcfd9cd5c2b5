"""Age of the newest checkpoint of a running job, and how often it is looked for."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Newest
from trainmaster.core.lifecycle import steps
from trainmaster.core.planning.snapshot import RunningJob

CHECKPOINT_RUNS = 5
"""Runs of ``reconcile``, one a minute, in which the checkpoints of each job are looked at once at most."""


def needs_look(entry: RunningJob, *, others_wait: bool, max_age: timedelta, now: datetime) -> bool:
    """Tell whether the job's checkpoints are looked at in this run: it is its turn, and a look is useful.

    Args:
        entry: The row of a running job.
        others_wait: Whether other jobs wait in its pool.
        max_age: Age from which a checkpoint is too old.
        now: Instant of the run.
    """
    return looks_at(entry.name, now=now) and is_worth_a_look(
        entry, others_wait=others_wait, max_age=max_age, now=now
    )


def is_worth_a_look(entry: RunningJob, *, others_wait: bool, max_age: timedelta, now: datetime) -> bool:
    """Tell whether a look is useful.

    It is where jobs wait, as preemption chooses by checkpoints, and else if the known one is too old.
    """
    if entry.training_since is None or not entry.has_checkpoint:
        return False
    return others_wait or is_overdue(entry.training_since, entry.checkpoint.last, max_age=max_age, now=now)


def looks_at(name: str, *, now: datetime) -> bool:
    """Tell whether it is the job's turn: each has one in five runs, spread over the runs."""
    # The hash spreads the jobs over the runs; the minute of the run picks those whose turn it is.
    turn = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big")
    return int(now.timestamp() // 60) % CHECKPOINT_RUNS == turn % CHECKPOINT_RUNS


def is_overdue(
    training_since: datetime, last_checkpoint: datetime | None, *, max_age: timedelta, now: datetime
) -> bool:
    """Tell whether the newest checkpoint is too old.

    One of an earlier attempt counts as no younger than the start of Training of this one.

    Args:
        training_since: Start of Training of the attempt.
        last_checkpoint: When the newest known checkpoint was written; None: none is known.
        max_age: Age from which a checkpoint is too old.
        now: Instant of the check.
    """
    return now - max(training_since, last_checkpoint or training_since) > max_age


def _seen(job: Job, newest: Newest, now: datetime) -> Job:
    """Return the job with what was found; less than what is known takes nothing back."""
    seen = steps.checkpoint_seen(job, newest.written_at)
    live = seen.live_attempt
    if newest.written_at is None or newest.written_at != live.checkpoint.last:
        return seen
    since = None if newest.is_certain else live.checkpoint.uncertain_since or now
    checkpoint = replace(live.checkpoint, uncertain_since=since)
    return replace(seen, live=replace(live, checkpoint=checkpoint))


def looked_at(job: Job, newest: Newest, *, max_age: timedelta, now: datetime) -> Job:
    """Return the job after its newest checkpoint was looked for.

    An uncertain answer (a bucket that may not be read, a listing that goes on) never makes one overdue.

    Args:
        job: A running job.
        newest: What was found.
        max_age: Age from which a checkpoint is too old.
        now: When it was looked for.
    """
    seen = _seen(job, newest, now)
    live = seen.live_attempt
    if live.training_since is None or seen.state is not JobState.RUNNING:
        return seen
    overdue = is_overdue(live.training_since, live.checkpoint.last, max_age=max_age, now=now)
    if overdue and not newest.is_certain:
        return seen
    return replace(seen, live=replace(live, checkpoint=replace(live.checkpoint, overdue=overdue)))
