"""Notices about a job while it runs: its GPUs, its alarms, its checkpoints, its capacity."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from trainmaster.core.jobs.attempts import Attempt, GpuWatch, LossWatch
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import Code, ReasonCode
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import Notice, NoticeKind
from trainmaster.core.outbox.texts.wording import LOSS_ADVICE, NOTHING, Words, instant, iso, quoted

_HOW_TO_GUARD: Mapping[Code, str] = {
    ReasonCode.ALARM_QUOTA: (
        "Admins: raise the account's quota of CloudWatch alarms. It is retried automatically."
    ),
    ReasonCode.ALARM_REFUSED: "Admins: see that `schedule` may make alarms. It is retried automatically.",
    ReasonCode.NO_METRICS: (
        "Admins: allow the training role `cloudwatch:PutMetricData`; the job's next attempt is watched then."
    ),
}
"""Advice by reason code; jobs with other codes cannot be monitored at all."""


def idle_notice(change: Change) -> Notice | None:
    """Return the idle warning, if due. The policy decides whether a stop follows; ``stop_due`` says when."""
    live = _warned(change, lambda watch: (watch.idle_since, watch.stop_due))
    if live is None or live.watch.idle_since is None:
        return None
    job, due = change.after.name, live.watch.stop_due
    follows = "Nothing happens automatically."
    if due is not None:
        follows = f"It is stopped at {instant(due)} unless they work again by then."
    return _notice(
        NoticeKind.JOB_IDLE,
        change.after,
        Words(
            what=f"The GPUs of job {job} have been idle since {instant(live.watch.idle_since)}. {follows}",
            why="The busiest of its hosts is below what the policy calls idle (`idle.gpu_below_percent`).",
            todo=f"See in its log what they wait for. `trainmaster cancel {job}` frees them now.",
            undo="It counts as idle no longer once its GPUs work again.",
        ),
        {"idle_since": iso(live.watch.idle_since), **({} if due is None else {"stop_due": iso(due)})},
    )


def busy_again_notice(change: Change) -> Notice | None:
    if _became(change, lambda live: not live.watch.is_idle) is None:
        return None
    return _notice(
        NoticeKind.JOB_BUSY_AGAIN,
        change.after,
        Words(what=f"Job {change.after.name} is no longer considered idle. It keeps running."),
    )


def underused_notice(change: Change) -> Notice | None:
    """Return the warning of underused GPUs, if due; ``underused_stop_due`` says whether a stop follows."""
    live = _warned(change, lambda watch: (watch.underused_since, watch.underused_stop_due))
    if live is None or live.watch.underused_since is None:
        return None
    job, due = change.after.name, live.watch.underused_stop_due
    follows, advice = "", "Look for a slow input pipeline or a small batch."
    if due is not None:
        follows = f" It is stopped at {instant(due)} unless they are used more by then."
    return _notice(
        NoticeKind.JOB_UNDERUSED,
        change.after,
        Words(
            what=f"The GPUs of job {job} have been underused since {instant(live.watch.underused_since)}."
            f"{follows}",
            why="One of its hosts is below what the policy expects (`utilization.gpu_below_percent`).",
            todo=advice if due is not None else f"Nothing is done about it. {advice}",
        ),
        {
            "underused_since": iso(live.watch.underused_since),
            **({} if due is None else {"stop_due": iso(due)}),
        },
    )


def loss_notice(change: Change) -> Notice | None:
    """Return the warning of a loss that breaks the rule; again if the breach or what follows has changed."""
    before, after = change.before.live, change.after.live
    if before is None or after is None or before.number != after.number:
        return None
    was, loss = before.loss or LossWatch(), after.loss or LossWatch()
    stops_anew = loss.stop_due is not None and was.stop_due is None
    is_news = loss.finding is not None and (loss.finding != was.finding or stops_anew)
    if loss.finding is None or not is_news or change.after.state is not JobState.RUNNING:
        return None
    job, due = change.after.name, loss.stop_due
    follows = "Nothing happens automatically."
    if due is not None:
        follows = f"It is stopped at {instant(due)} unless it recovers by then."
    return _notice(
        NoticeKind.LOSS_WARNING,
        change.after,
        Words(
            what=f"The loss of job {job} shows that it may train in vain. {follows}",
            why=quoted(loss.finding.message),
            todo=f"{LOSS_ADVICE[loss.finding.code]} `trainmaster cancel {job}` frees its instances now.",
            undo=""
            if due is None
            else "It is not stopped if its loss recovers, or `loss` is taken out of the policy.",
        ),
        {"reason": loss.finding.code, **({} if due is None else {"stop_due": iso(due)})},
    )


def unguarded_notice(change: Change) -> Notice | None:
    live = _became(change, lambda live: live.unmonitored is not None)
    if live is None or live.unmonitored is None:
        return None
    job, code = change.after.name, live.unmonitored.code
    lacks = "its alarms get no data" if code is ReasonCode.NO_METRICS else "it has no alarms"
    return _notice(
        NoticeKind.JOB_UNGUARDED,
        change.after,
        Words(
            what=f"The GPUs of job {job} are not monitored: {lacks}. It keeps running.",
            why=quoted(live.unmonitored.message),
            todo=_HOW_TO_GUARD.get(code, "Nothing: watch it yourself."),
        ),
        {"reason": code},
    )


def checkpoint_notice(change: Change) -> Notice | None:
    live = _became(change, lambda live: live.checkpoint.overdue)
    if live is None:
        return None
    job, newest = change.after.name, live.checkpoint.last
    last = "none was seen. A stop would lose all of its training."
    if newest is not None:
        last = f"the newest is from {instant(newest)}. A stop would lose all since then."
    seen = {} if newest is None else {"last_checkpoint": iso(newest)}
    return _notice(
        NoticeKind.CHECKPOINT_OVERDUE,
        change.after,
        Words(
            what=f"Job {job} has no recent checkpoint: {last}",
            why="It saved none for longer than `checkpoints.max_age` of the policy.",
            todo=f"See in its log whether it still saves, and that it saves below {_place(change.after)}.",
        ),
        seen,
    )


def spot_notice(change: Change) -> Notice | None:
    live = _became(change, lambda live: live.spot.stays is not None)
    if live is None or live.spot.stays is None:
        return None
    job = change.after.name
    return _notice(
        NoticeKind.STAYS_ON_SPOT,
        change.after,
        Words(
            what=f"Job {job} makes little progress on spot instances and stays there.",
            why=quoted(live.spot.stays.message),
            todo=f"Give its pool on-demand capacity of the type, or `trainmaster cancel {job}`.",
        ),
        {"reason": live.spot.stays.code, "interruptions": _interruptions(change.after, live)},
    )


def _warned(change: Change, warning: Callable[[GpuWatch], tuple[datetime | None, ...]]) -> Attempt | None:
    """Return the attempt if one of its alarms rings since now, or its announced stop has changed.

    Args:
        change: A change of a job.
        warning: Returns the instant of the alarm, and that of the stop.
    """
    before, after = change.before.live, change.after.live
    if before is None or after is None or warning(after.watch)[1] in (None, warning(before.watch)[1]):
        return _became(change, lambda live: warning(live.watch)[0] is not None)
    same = before.number == after.number and change.after.state is JobState.RUNNING
    return after if same else None


def _became(change: Change, holds: Callable[[Attempt], bool]) -> Attempt | None:
    """Return the attempt if it runs before and after the change, and ``holds`` only since; None otherwise."""
    before, after = change.before.live, change.after.live
    if before is None or after is None or change.after.state is not JobState.RUNNING:
        return None
    return after if before.number == after.number and holds(after) and not holds(before) else None


def _interruptions(job: Job, live: Attempt) -> int:
    return job.spot.interruptions + live.spot.interruptions


def _place(job: Job) -> str:
    return quoted(job.spec.checkpoint_uri or "CheckpointConfig.S3Uri")


def _notice(kind: NoticeKind, job: Job, words: Words, detail: Mapping[str, Any] = NOTHING) -> Notice:
    return Notice(
        kind=kind,
        team=job.spec.team,
        training_job_name=job.live_attempt.training_job_name,
        job=job.name,
        what=words.what,
        why=words.why,
        todo=words.todo,
        undo=words.undo,
        detail={"attempt": job.live_attempt.number, **detail},
    )
