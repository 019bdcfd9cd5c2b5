"""Whose GPUs are not watched as the policy wants it."""

from datetime import datetime
from itertools import islice

from trainmaster.core.jobs.model import JobState
from trainmaster.core.monitoring.alarms import wanted_of
from trainmaster.core.planning.actions import WatchGpus
from trainmaster.core.planning.snapshot import RunningJob, Snapshot
from trainmaster.core.policy.governing import Watch

AT_ONCE = 20
"""In one look, lest a changed policy keeps jobs from starting: CloudWatch takes 3 alarms a second."""


def missing_alarms(snapshot: Snapshot, *, now: datetime) -> list[WatchGpus]:
    """Also of a paused pool: watching starts nothing."""
    watch = snapshot.watch
    if watch is None:
        return []
    lacking = (job for job in snapshot.running if _lacks(job, watch, now=now))
    return [WatchGpus(job=job, watch=watch) for job in islice(lacking, AT_ONCE)]


def _lacks(job: RunningJob, watch: Watch, *, now: datetime) -> bool:
    """From Training on: before it there is nothing to measure."""
    if job.state is not JobState.RUNNING or job.training_since is None:
        return False
    if job.guard_again_at is not None and now < job.guard_again_at:
        return False
    wanted = wanted_of(job.vector, watch)
    code = wanted.unguarded.code if wanted.unguarded else None
    return (wanted.digest, code) != (job.guarded, job.unguarded)
