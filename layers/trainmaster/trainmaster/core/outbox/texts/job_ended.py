"""Notices about ends: of a job, or of an attempt whose job comes back."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from trainmaster.core.costs.ledger import lost_to
from trainmaster.core.costs.prices import usd_text
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import Code, ReasonCode
from trainmaster.core.lifecycle.change import Change, EndKind, end_kind, failure_class, reason_of_end
from trainmaster.core.outbox.messages import Notice, NoticeKind
from trainmaster.core.outbox.texts.preemptions import (
    WHAT_HELPS,
    lost_startup_text,
    stop_text,
    stops_detail,
    todo_when_stopped,
    waits_text,
)
from trainmaster.core.outbox.texts.wording import LOSS_ADVICE, NOTHING, Words, instant, iso, quoted, span


def loss_text(change: Change) -> str:
    ended = change.ended
    assert ended is not None, change
    if ended.lost:
        return f"{span(ended.lost)} of training was lost."
    if (
        change.after.spec.has_checkpoint
        and ended.checkpoint.last is None
        and ended.training_since is not None
    ):
        return "How much of its training is lost is unknown: no checkpoint was seen."
    return lost_startup_text(change) or "Nothing is lost."


_TODO_WHEN_STOPPED: Mapping[Code, str] = MappingProxyType(
    {
        ReasonCode.MAX_RUNTIME: "Give it a longer MaxRuntimeInSeconds; it resumes from its checkpoints.",
        ReasonCode.MAX_WAIT: "Give it a longer MaxWaitTimeInSeconds, or on-demand instances.",
        ReasonCode.STOPPED_OUTSIDE: "CloudTrail says who called StopTrainingJob; `cancel` would note it.",
        ReasonCode.IDLE: "Find in its log what its GPUs waited for before you queue it again.",
        ReasonCode.UNDERUSED: "Look for a slow input pipeline or a small batch.",
        **LOSS_ADVICE,
    },
)
"""Advice by reason code of the stop."""


def _completed(change: Change) -> Notice:
    job = change.after
    cost = "" if job.spent.unpriced else f" It cost about {usd_text(job.spent.cents)}."
    return _notice(
        NoticeKind.JOB_COMPLETED,
        change,
        Words(
            what=f"Job {job.name} completed.{cost}",
            todo=f"`trainmaster show {job.name}` shows its attempts.",
        ),
        {} if job.spent.unpriced else {"cost_cents": job.spent.cents},
    )


def _failed(change: Change) -> Notice:
    job, why = change.after, failure_class(change)
    return _notice(
        NoticeKind.JOB_FAILED,
        change,
        Words(
            what=f"Job {job.name} failed ({why}). It is not requeued.",
            why=_why_it_failed(change),
            todo=_advice(change.ended) or f"`trainmaster show {job.name}` has the whole reason.",
            undo=_again(job),
        ),
        {"failure_class": why, "retries": job.comebacks.retries, **_diagnosed(change.ended)},
    )


def _stopped(change: Change) -> Notice:
    job = change.after
    todo = _TODO_WHEN_STOPPED.get(job.reason.code) if job.reason else None
    return _notice(
        NoticeKind.JOB_STOPPED,
        change,
        Words(
            what=f"Job {job.name} is stopped. It is not requeued.",
            why=_reason(change),
            todo=todo or f"`trainmaster show {job.name}` has its history.",
            undo=_again(job),
        ),
    )


def _retried(change: Change) -> Notice:
    """Return the notice of a retry, also of one that is not charged: no capacity, a restored table."""
    job, ended, why = change.after, change.ended, failure_class(change)
    assert ended is not None, change
    charged = job.comebacks.retries > change.before.comebacks.retries
    most = "" if job.spec.retries is None else f" of at most {job.spec.retries}"
    count = f"retry {job.comebacks.retries}{most}" if charged else "not counted as a retry"
    ended_how = "failed" if charged else "got nowhere"
    later = "" if job.not_before is None else f" It starts at {instant(job.not_before)} or later."
    halved = " With half the batch." if job.comebacks.halvings > change.before.comebacks.halvings else ""
    wait_reason = job.waiting.message if job.waiting else ""
    return _notice(
        NoticeKind.JOB_RETRIED,
        change,
        Words(
            what=f"Attempt {ended.number} of job {job.name} {ended_how} ({why}). It is requeued, {count}."
            f"{later}{halved}{waits_text(change)}",
            why=quoted(wait_reason) or _reason(change),
            todo=_todo_when_retried(change),
            undo=_or_not(job),
        ),
        {
            "failure_class": why,
            "charged": charged,
            "retries": job.comebacks.retries,
            "halvings": job.comebacks.halvings,
            **({} if job.not_before is None else {"not_before": iso(job.not_before)}),
            **_diagnosed(ended),
        },
    )


def _todo_when_retried(change: Change) -> str:
    job, ended = change.after, change.ended
    code = ended.reason.code if ended is not None and ended.reason is not None else None
    if code is ReasonCode.CAPACITY and (job.futile is not None or (job.starts.no_capacity or 0) > 1):
        return WHAT_HELPS
    if job.futile is not None:
        return _advice(ended) or f"`trainmaster why {job.name}` says what it waits for."
    return (
        "Nothing: it resumes from its last checkpoint."
        if job.spec.has_checkpoint
        else "Nothing." + _unsaved(job)
    )


def _preempted(change: Change) -> Notice:
    """Return the notice of a preemption; of another team's preemptor it gives the team, not the name."""
    job, ended = change.after, change.ended
    preemptor = ended.preempted_for if ended else None
    whom = {}
    if preemptor is not None and preemptor.team is not None:
        own = {"for_job": preemptor.name} if preemptor.team == job.spec.team else {}
        whom = {"for_team": preemptor.team, **own}
    return _notice(
        NoticeKind.JOB_PREEMPTED,
        change,
        Words(
            what=f"Job {job.name} {stop_text(change)} {loss_text(change)}",
            why=_reason(change),
            todo=todo_when_stopped(job) + _unsaved(job),
            undo=f"`trainmaster priority {job.name} N` moves it. {_or_not(job)}",
        ),
        {"preemptions": job.preemptions, **whom, **stops_detail(change)},
    )


def _requeued(change: Change) -> Notice:
    job, ended = change.after, change.ended
    code = ended.reason.code if ended is not None and ended.reason is not None else None
    how, todo = "while its GPUs were idle", "See in its log what its GPUs waited for."
    if code is ReasonCode.UNDERUSED_REQUEUE:
        how = "while its GPUs were underused"
    elif code is ReasonCode.WINDOW:
        how = "for the calendar or a reservation of its pool"
        todo = f"Nothing: it starts again automatically.{_unsaved(job)}"
    return _notice(
        NoticeKind.JOB_REQUEUED,
        change,
        Words(
            what=f"Job {job.name} was stopped {how} and is back in the queue. {loss_text(change)}",
            why=_reason(change),
            todo=todo,
            undo=_or_not(job),
        ),
    )


def _moved(change: Change) -> Notice:
    job = change.after
    return _notice(
        NoticeKind.MOVED_TO_ON_DEMAND,
        change,
        Words(
            what=f"Job {job.name} made little progress on spot instances; from now on it asks for on-demand "
            f"ones. {loss_text(change)}",
            why=_reason(change),
            todo="Nothing: it is in the queue and starts again automatically. On-demand instances cost more."
            + _unsaved(job),
            undo=f"Submit it again to run it on spot again. {_or_not(job)}",
        ),
        {"interruptions": job.spot.interruptions},
    )


_NOTICES: Mapping[EndKind, Callable[[Change], Notice]] = MappingProxyType(
    {
        EndKind.COMPLETED: _completed,
        EndKind.STOPPED: _stopped,
        EndKind.FAILED: _failed,
        EndKind.RETRIED: _retried,
        EndKind.PREEMPTED: _preempted,
        EndKind.REQUEUED: _requeued,
        EndKind.MOVED_TO_ON_DEMAND: _moved,
    },
)


def end_notice(change: Change) -> Notice | None:
    """Return the notice of the end of a job, or of an attempt after which it waits again; None if neither."""
    kind = end_kind(change)
    return None if kind is None else _NOTICES[kind](change)


def _reason(change: Change) -> str:
    return quoted(reason.message) if (reason := reason_of_end(change)) else ""


def _why_it_failed(change: Change) -> str:
    """Return the reason and the log line that shows it; the advice has its place elsewhere in the notice."""
    ended = change.ended
    if ended is None or ended.diagnosis is None or ended.reason is None:
        return _reason(change)
    diagnosis, message = ended.diagnosis, quoted(ended.reason.message)
    if diagnosis.evidence is None or diagnosis.evidence in message:
        return message
    return f"{message}; the line that shows it: {quoted(diagnosis.evidence)}"


def _advice(ended: Attempt | None) -> str:
    return "" if ended is None or ended.diagnosis is None else quoted(ended.diagnosis.advice)


def _diagnosed(ended: Attempt | None) -> dict[str, Any]:
    if ended is None or ended.diagnosis is None:
        return {}
    diagnosis = ended.diagnosis
    detail: dict[str, Any] = {"advice": quoted(diagnosis.advice)}
    if diagnosis.evidence is not None:
        detail["evidence"] = quoted(diagnosis.evidence)
    if diagnosis.exit_code is not None:
        detail["exit_code"] = diagnosis.exit_code
    return detail


def _again(job: Job) -> str:
    saved = job.spec.checkpoint_uri
    return "Queue it again under another name" + (f"; {quoted(saved)} has its checkpoints." if saved else ".")


def _or_not(job: Job) -> str:
    return (
        f"`trainmaster hold {job.name}` keeps it from starting until `trainmaster release {job.name}`;"
        f" `trainmaster cancel {job.name}` ends it."
    )


def _unsaved(job: Job) -> str:
    return "" if job.spec.has_checkpoint else " Without a CheckpointConfig it starts from the beginning."


def _notice(kind: NoticeKind, change: Change, words: Words, detail: Mapping[str, Any] = NOTHING) -> Notice:
    job, ended = change.after, change.ended
    reason = reason_of_end(change)
    return Notice(
        kind=kind,
        team=job.spec.team,
        training_job_name=ended.training_job_name if ended else None,
        job=job.name,
        what=words.what,
        why=words.why,
        todo=words.todo,
        undo=words.undo,
        detail={
            "state": job.state.value,
            **({"reason": reason.code} if reason else {}),
            **({} if ended is None else _of_attempt(ended)),
            **detail,
        },
    )


def _of_attempt(ended: Attempt) -> dict[str, Any]:
    instances: dict[str, int] = {}
    for capacity, count in ended.vector.items():
        instances[capacity.instance_type] = instances.get(capacity.instance_type, 0) + count
    lost = int(ended.lost.total_seconds())
    code = ended.reason.code if ended.reason else ""
    return {
        "attempt": ended.number,
        "capacity_type": ended.capacity_type.value,
        "instances": instances,
        "lost_seconds": lost,
        **({"lost_to": lost_to(code).value} if lost else {}),
    }
