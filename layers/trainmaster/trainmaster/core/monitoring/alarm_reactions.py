"""Reactions to the alarms of a job's GPUs: the job before, what was read, and the job after."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from trainmaster.core.jobs.attempts import GpuWatch, Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.retries import may_requeue
from trainmaster.core.monitoring.alarms import AlarmKind, AlarmReading, AlarmState, Wanted
from trainmaster.core.policy.governance import Governing, Idle, Reaction, Utilization, Watch

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
    is_low = reading is not None and reading.state is AlarmState.ALARM and section_of(kind, watch) is not None
    since = reading.since if is_low and reading is not None else None
    hold = job.spec.hold_open.longest if job.spec.hold_open else timedelta()
    due = _stop_due(warning_of(job.live_attempt.watch, kind), since, section_of(kind, watch), now=now + hold)
    if kind is AlarmKind.IDLE:
        return steps.idle(job, since=since, stop_due=due)
    return steps.underused(job, since=since, stop_due=due)


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """One of a job's alarms as its row has it, and as its owner was notified."""

    since: datetime | None
    """Instant of the alarm; None: it is not in ALARM."""
    stop_due: datetime | None
    """Announced instant of the stop; None: none was announced."""


def warning_of(watch: GpuWatch, kind: AlarmKind) -> Warned:
    """Return what a job's row says of its alarm of this kind."""
    match kind:
        case AlarmKind.IDLE:
            return Warned(since=watch.idle_since, stop_due=watch.stop_due)
        case AlarmKind.UTILIZATION:
            return Warned(since=watch.underused_since, stop_due=watch.underused_stop_due)
        case _:
            assert_never(kind)


def section_of(kind: AlarmKind, watch: Watch) -> Idle | Utilization | None:
    """Return the part of the policy about alarms of this kind; None: it wants none."""
    return watch.idle if kind is AlarmKind.IDLE else watch.utilization


def _stop_due(
    warned: Warned, since: datetime | None, section: Idle | Utilization | None, *, now: datetime
) -> datetime | None:
    """Return when the job is to be stopped.

    From each transition to ALARM its owner has ``warn_first``; ``now`` is later by the time for which the job
    may wait for a visitor, whose GPUs do nothing meanwhile. The same ALARM keeps the instant that was
    announced; a new one begins a new warning.
    """
    if since is None or section is None or section.then is Reaction.NOTIFY:
        return None
    known = warned.stop_due if warned.since == since else None
    return known or now + section.warn_first


def stop_due_for(watch: GpuWatch, *, now: datetime) -> tuple[AlarmKind, ...]:
    """Return the kinds of alarms for which the attempt's announced stop is due, idleness first."""
    dues = {AlarmKind.IDLE: watch.stop_due, AlarmKind.UTILIZATION: watch.underused_stop_due}
    return tuple(kind for kind, due in dues.items() if due is not None and due <= now)


def stop_for(
    job: Job, kind: AlarmKind, reading: AlarmReading | None, governing: Governing, *, now: datetime
) -> Job | None:
    """Stop the job if its time is over and its alarm is in the ALARM that its owner was warned of.

    One that may not be requeued any more, because it was so again and again, is stopped for good. None
    means that the job is not stopped.

    Args:
        job: A running job.
        kind: Kind of the alarm.
        reading: State of this alarm now; None: there is no such alarm.
        governing: Rules for such jobs and for retries in force.
        now: UTC.
    """
    section = section_of(kind, governing.watch)
    if section is None or job.live is None or kind not in stop_due_for(job.live.watch, now=now):
        return None
    warned = warning_of(job.live_attempt.watch, kind)
    is_as_warned = reading is not None and reading.state is AlarmState.ALARM and reading.since == warned.since
    if not is_as_warned or not is_watched(job) or section.then is Reaction.NOTIFY:
        return None
    requeues = section.then is Reaction.REQUEUE and may_requeue(job, governing.recovery)
    code, says = _STOPS[kind, requeues]
    minutes = (now - warned.since) // timedelta(minutes=1) if warned.since else 0
    reason = Reason(code=code, message=f"{says}: {max(minutes, 0)} minutes since its alarm went off")
    return steps.stopped_by_rule(job, reason, requeues=requeues)


_IDLE, _UNDERUSED = "its GPUs did nothing", "its GPUs were used less than the policy expects"
_STOPS: Mapping[tuple[AlarmKind, bool], tuple[ReasonCode, str]] = {
    (AlarmKind.IDLE, False): (ReasonCode.IDLE, _IDLE),
    (AlarmKind.IDLE, True): (ReasonCode.IDLE_REQUEUE, _IDLE),
    (AlarmKind.UTILIZATION, False): (ReasonCode.UNDERUSED, _UNDERUSED),
    (AlarmKind.UTILIZATION, True): (ReasonCode.UNDERUSED_REQUEUE, _UNDERUSED),
}
"""Reason of a stop, by the kind of alarm and whether the job comes back."""
