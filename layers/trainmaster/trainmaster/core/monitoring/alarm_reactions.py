"""Reactions to the alarms of a job's GPUs: the job before, what was read, and the job after."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.retries import may_requeue
from trainmaster.core.monitoring.alarms import AlarmKind, AlarmReading, AlarmState, Wanted
from trainmaster.core.policy.governance import Governing, Idle, IdleThen, Watch

TRAINING = "Training"
"""The one secondary status in which GPUs are expected to work."""
AGAIN = timedelta(minutes=15)
"""Time between two tries to make alarms that CloudWatch refused."""


def monitored(job: Job, wanted: Wanted) -> Job:
    """Record that its alarms are as they are wanted, or that there are to be none.

    Alarms that are made again bring no data: where those are missing, that stays reported.
    """
    live = job.live_attempt
    watch = replace(live.watch, monitored=wanted.digest, monitor_again_at=None)
    is_silent = live.unmonitored is not None and live.unmonitored.code is ReasonCode.NO_METRICS
    unmonitored = live.unmonitored if is_silent and wanted.digest is not None else wanted.unmonitored
    return replace(job, live=replace(live, watch=watch, unmonitored=unmonitored))


def refused(job: Job, reason: Reason, *, now: datetime) -> Job:
    """Record that CloudWatch did not make all of its alarms."""
    live = job.live_attempt
    watch = replace(live.watch, monitored=None, monitor_again_at=now + AGAIN)
    return replace(job, live=replace(live, watch=watch, unmonitored=reason))


def alarms_lost(job: Job) -> Job:
    """Record that an alarm was deleted, so that the next pass makes it again."""
    live = job.live_attempt
    return replace(job, live=replace(live, watch=replace(live.watch, monitored=None)))


def is_watched(job: Job) -> bool:
    """Tell whether its alarms count: not while it stops, starts, downloads, uploads or is interrupted."""
    progress = job.live.progress if job.live else None
    return (
        job.state is JobState.RUNNING
        and progress is not None
        and progress.training_since is not None
        and progress.secondary_status == TRAINING
    )


def heard(job: Job, kind: AlarmKind, reading: AlarmReading | None, watch: Watch, *, now: datetime) -> Job:
    """Return the job after one of its alarms was read.

    INSUFFICIENT_DATA changes nothing: an alarm is in it before its first evaluation, also when it is made
    again for a changed policy, and that tells nothing about the GPUs. An alarm that is gone will never read
    OK, so its last state is taken back.

    Args:
        job: A running job.
        kind: Kind of the alarm.
        reading: The alarm's state; None: there is no such alarm.
        watch: Monitoring that the policy wants now.
        now: UTC.
    """
    if not is_watched(job) or (reading is not None and reading.state is AlarmState.INSUFFICIENT_DATA):
        return job
    since = reading.since if reading is not None and reading.state is AlarmState.ALARM else None
    match kind:
        case AlarmKind.IDLE:
            return _idle_since(job, since if watch.idle else None, watch.idle, now=now)
        case AlarmKind.UTILIZATION:
            live = job.live_attempt
            noted = replace(live.watch, underused_since=since if watch.utilization else None)
            return replace(job, live=replace(live, watch=noted))
        case _:
            assert_never(kind)


def _idle_since(job: Job, since: datetime | None, idle: Idle | None, *, now: datetime) -> Job:
    """Record since when it is idle.

    From each transition to ALARM its owner has ``warn_first`` before a stop.
    """
    live = job.live_attempt
    if since is None or idle is None or idle.then is IdleThen.NOTIFY:
        return steps.idle(job, since=since)
    # The same ALARM keeps the instant that its owner was notified of; a new one begins a new warning.
    known = live.watch.stop_due if live.watch.is_idle_since(since) else None
    return steps.idle(job, since=since, stop_due=known or now + idle.warn_first)


def stop_for_idleness(
    job: Job, reading: AlarmReading | None, governing: Governing, *, now: datetime
) -> Job | None:
    """Stop the job if its time is over and its alarm is in the ALARM that its owner was warned of.

    One that may not be requeued any more, because it was idle again and again, is stopped for good. None
    means that the job is not stopped.

    Args:
        job: A running job.
        reading: State of its idle alarm now; None: there is no such alarm.
        governing: Rules for idle jobs and retries in force.
        now: UTC.
    """
    watch, idle = (job.live.watch if job.live else None), governing.idle
    if idle is None or watch is None or not watch.is_stop_due(now) or not is_watched(job):
        return None
    if reading is None or reading.state is not AlarmState.ALARM or not watch.is_idle_since(reading.since):
        return None
    match idle.then:
        case IdleThen.STOP:
            return steps.stopped_for_idle(job, now)
        case IdleThen.REQUEUE if not may_requeue(job, governing.recovery):
            return steps.stopped_for_idle(job, now)
        case IdleThen.REQUEUE:
            return steps.requeued_for_idle(job, now)
        case IdleThen.NOTIFY:
            return None
        case _:
            assert_never(idle.then)
