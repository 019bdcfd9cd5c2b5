"""Notices about preemptions: of one that did not help, and to the owners of jobs that were stopped."""

from collections.abc import Mapping
from typing import Any

from trainmaster.core.jobs.attempts import StopsInARow
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.instances import vector_text
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import Code, ReasonCode
from trainmaster.core.lifecycle.change import Change, reason_of_end
from trainmaster.core.outbox.messages import Notice, NoticeKind
from trainmaster.core.outbox.texts.refusals import PlatformSubject, platform_notice
from trainmaster.core.outbox.texts.wording import NOTHING, Words, instant, iso, quoted, span

WHAT_HELPS = (
    "Ask for fewer instances, allow another type (`trainmaster:alternatives`), or get instances that AWS"
    " keeps for you (a training plan)."
)
"""Advice for the owner of a job that AWS has no instances for."""


def futile_preemption_notice(change: Change) -> Notice | None:
    """Return the owner's notice at the first preemption that did not help since an attempt trained."""
    futile = _first(change)
    if futile is None:
        return None
    job = change.after
    return Notice(
        kind=NoticeKind.PREEMPTION_FUTILE,
        team=job.spec.team,
        job=job.name,
        what=_what(change, futile),
        why=_why(change),
        todo=f"{WHAT_HELPS} `trainmaster why {job.name}` says until when it waits.",
        undo=f"`trainmaster cancel {job.name}` ends it.",
        detail={
            "wanted": vector_text(futile.vector),
            "not_before": iso(futile.until),
            **_code(change),
        },
    )


def futile_preemption_warning(change: Change) -> Notice | None:
    """Return the same for operators: AWS does not serve what the pool's policy counts on."""
    futile = _first(change)
    if futile is None:
        return None
    job = change.after
    return platform_notice(
        PlatformSubject.PREEMPTION_FUTILE,
        Words(
            what=_what(change, futile),
            why=_why(change),
            todo=f"Compare the capacity of pool {job.spec.pool} with what AWS has of {_types(futile)}; the"
            " owner of the job was notified. Each further such start doubles the wait, up to 4 hours.",
        ),
        job=job.name,
    )


def _first(change: Change) -> FutilePreemptions | None:
    return change.after.futile if change.before.futile is None else None


def _what(change: Change, futile: FutilePreemptions) -> str:
    """Say whether it was claimed and not served by AWS, or not even claimed in time."""
    job = change.after
    how = "it did not start in time" if change.before.live is None else "AWS did not let it train"
    return (
        f"Jobs were stopped for job {job.name}, and {how} ({vector_text(futile.vector)})."
        f" No job is stopped for it before {instant(futile.until)}, unless AWS serves as many instances of"
        " the type to some job. It starts at once where enough is free."
    )


def _why(change: Change) -> str:
    """Return the words of AWS about the attempt, or about the start that it refused."""
    reason = reason_of_end(change) or change.after.waiting
    return quoted(reason.message) if reason else "it did not start in time"


def _code(change: Change) -> Mapping[str, Any]:
    reason = reason_of_end(change) or change.after.waiting
    return {"reason": reason.code} if reason else NOTHING


def _types(futile: FutilePreemptions) -> str:
    return ", ".join(sorted({capacity.instance_type for capacity in futile.vector}))


def waits_text(change: Change) -> str:
    """Return what the end of an attempt that others were stopped for means; empty where none were."""
    futile = change.after.futile
    if futile is None or futile == change.before.futile:
        return ""
    times = "once" if futile.count == 1 else f"{futile.count} times in a row"
    return f" Jobs were stopped for it in vain, {times}: it stops none before {instant(futile.until)}."


_WIDTH_TEXTS: Mapping[Code, str] = {
    ReasonCode.SHRINK: "gave instances to another job and comes back at once, narrower.",
    ReasonCode.GROW: "was stopped to come back at once on more instances.",
    ReasonCode.MAX_RUNTIME_AT_WIDTH: "ran out of time at a narrow width and is back in the queue.",
}


def stop_text(change: Change) -> str:
    """Say how a job came to stop and be in the queue again, without its name."""
    reason = change.ended.reason if change.ended else None
    if reason is not None and reason.code in _WIDTH_TEXTS:
        return _WIDTH_TEXTS[reason.code]
    return f"was preempted by another job and is back in the queue.{_stops_text(change.after)}"


def _stops_text(job: Job) -> str:
    """Return how often it was stopped, and for which job; empty at the first time."""
    if job.preemptions <= 1:
        return ""
    row = job.stopped_for
    repeated = f", the last {row.count} times for {_preemptor(row, job)}" if row and row.count > 1 else ""
    return f" It has made room {job.preemptions} times{repeated}."


def _preemptor(row: StopsInARow, job: Job) -> str:
    """Name the preemptor; names stay within their team."""
    preemptor = row.preemptor
    own = preemptor.team in {None, job.spec.team}
    return f"job {preemptor.name}" if own else f"a job of team {preemptor.team}"


def lost_startup_text(change: Change) -> str:
    """Return what an end before Training cost; empty if it trained."""
    ended = change.ended
    if ended is None or ended.training_since is not None or ended.ended_at is None:
        return ""
    return f"It had not begun to train: {span(ended.ended_at - ended.claim.at)} of start-up was lost."


def stops_detail(change: Change) -> Mapping[str, int]:
    """Return the stops in a row for the same job, and the seconds of start-up lost, if known."""
    before, after = change.before.spent, change.after.spent
    startup = sum((after.startups or {}).values()) - sum((before.startups or {}).values())
    row = change.after.stopped_for
    return {
        **({"in_a_row": row.count} if row is not None else {}),
        **({"startup_seconds": startup} if startup else {}),
    }


def todo_when_stopped(job: Job) -> str:
    """Return what to do: nothing at the first preemption, what helps against others from the second on."""
    if job.preemptions <= 1:
        return "It is in the queue and starts again automatically."
    return (
        f"It starts again automatically. To be stopped less often: `trainmaster priority {job.name} N`, or"
        " ask an admin for a longer `preemption.min_runtime` or a lower `preemption.max_per_job`."
        f" `trainmaster show {job.name}` lists each stop."
    )
