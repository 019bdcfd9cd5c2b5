"""Compare two policies on a pool as it is: two plans of one instant, job by job."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from trainmaster.core.jobs.instances import fits, vector_text
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.actions import Plan, Preempt, Start
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy


class Kind(StrEnum):
    """Effects that a changed policy has on a job."""

    STARTS = "starts"
    STOPS_WAITING = "stops-waiting"
    """Others are stopped for it, and it starts when they have stopped."""
    PREEMPTED = "preempted"
    WAITS = "waits"
    """It would start now without the change."""
    IMPOSSIBLE = "impossible"
    """It would not even fit into the empty pool."""
    FORBIDDEN = "forbidden"
    """The rules would refuse it when its turn comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    job: WaitingJob | RunningJob
    kind: Kind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A pool under one policy."""

    snapshot: Snapshot
    pool: PoolPolicy
    plan: Plan


def differences(before: Outlook, after: Outlook) -> Iterator[Difference]:
    """Yield the differences of candidates and running jobs; others fare like the candidates of their lane."""
    yield from _impossible(before, after)
    yield from _moved(before, after)
    stopped_before = {victim.name for action in _preemptions(before) for victim in action.victims}
    for action in _preemptions(after):
        for victim in action.victims:
            if victim.name not in stopped_before:
                message = f"makes room for {action.job.name}, priority {action.job.priority}"
                yield Difference(job=victim, kind=Kind.PREEMPTED, message=message)


def _impossible(before: Outlook, after: Outlook) -> Iterator[Difference]:
    room = pool_vector(after.pool)
    for job in after.snapshot.waiting:
        if _can_fit(job, before.pool) and not _can_fit(job, after.pool):
            message = wait_reasons.too_big(job.shapes[0].vector, room).message
            yield Difference(job=job, kind=Kind.IMPOSSIBLE, message=message)


def _moved(before: Outlook, after: Outlook) -> Iterator[Difference]:
    """Yield the jobs that start, that others are stopped for, or that no longer start."""
    started, starts = _starts(before), _starts(after)
    helped, helps = _helped(before), _helped(after)
    for job in after.snapshot.waiting:
        name = job.name
        why = after.plan.reasons.get(name)
        if name in starts and name not in started:
            yield Difference(job=job, kind=Kind.STARTS, message=f"in {starts[name]}")
        elif name in helps and name not in {*started, *helped}:
            yield Difference(job=job, kind=Kind.STOPS_WAITING, message=why.message if why else helps[name])
        elif name in started and name not in starts and _can_fit(job, after.pool):
            yield Difference(job=job, kind=Kind.WAITS, message=why.message if why else "0 instances for it")


def _can_fit(job: WaitingJob, pool: PoolPolicy) -> bool:
    room = pool_vector(pool)
    return any(fits(shape.vector, room) for shape in job.shapes)


def _starts(outlook: Outlook) -> dict[str, str]:
    """Return the instances that each starting job gets, as text by job name."""
    actions = outlook.plan.actions
    return {
        action.job.name: vector_text(action.shape.vector) for action in actions if isinstance(action, Start)
    }


def _helped(outlook: Outlook) -> dict[str, str]:
    return {action.job.name: vector_text(action.shape.vector) for action in _preemptions(outlook)}


def _preemptions(outlook: Outlook) -> list[Preempt]:
    return [action for action in outlook.plan.actions if isinstance(action, Preempt)]
