"""What a plan says, in words that a test can compare."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from trainmaster.core.jobs.instances import Shape, Vector
from trainmaster.core.planning.actions import (
    Action,
    EndReservation,
    KeepWarm,
    LimitReservation,
    Preempt,
    ReleaseWarm,
    SettleWarm,
    Start,
    Stop,
    Unpark,
    WarnOfBudget,
    subject,
)
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot, WarmPool
from trainmaster.core.policy import PoolPolicy, Preemption, Quota

from tests.builders import NOON, A, minutes, of, pool

VERBS = {
    Start: "start",
    Preempt: "preempt for",
    Stop: "stop",
    Unpark: "unpark",
    EndReservation: "drop hold of",
    LimitReservation: "limit hold of",
    KeepWarm: "keep warm",
    ReleaseWarm: "release warm",
    SettleWarm: "settle warm",
    WarnOfBudget: "warn of budget",
}


def said(action: Action) -> tuple[str, ...]:
    """The verb, whom it is about, and of a preemption who is stopped."""
    victims = tuple(one.name for one in action.victims) if isinstance(action, Preempt) else ()
    return (VERBS[type(action)], subject(action), *victims)


def decided(
    world: Snapshot, capacity: int | PoolPolicy = 2, *, now: datetime = NOON, **preemption: Any
) -> list[tuple[str, ...]]:
    """The actions of a plan, in their order."""
    rules = pool(capacity) if isinstance(capacity, int) else capacity
    if preemption:
        rules = replace(rules, preemption=Preemption(**preemption))
    return [said(action) for action in plan(world, rules, now=now).actions]


def starts(world: Snapshot, rules: PoolPolicy, *, now: datetime = NOON) -> dict[str, Start]:
    found = plan(world, rules, now=now).actions
    return {action.job.name: action for action in found if isinstance(action, Start)}


def told(world: Snapshot, rules: PoolPolicy, name: str, *, now: datetime = NOON) -> tuple[str, str]:
    """Code and message of the reason why a job waits."""
    reason = plan(world, rules, now=now).reasons[name]
    return (reason.code, reason.message)


def quota(nominal: int, limit: int | None = None) -> Quota:
    return Quota(nominal={A: nominal}, borrowing_limit=None if limit is None else {A: limit})


def shared(capacity: int, quotas: Mapping[str, Quota], **preemption: Any) -> PoolPolicy:
    """A pool with quotas."""
    return replace(pool(capacity), quotas=quotas, preemption=Preemption(**preemption))


def shape(count: int = 1, instance_type: str = A, *, key: str | None = None, spot: bool = False) -> Shape:
    return Shape(vector=of(count, instance_type, spot=spot), warm_key=key)


def warm(name: str, *, key: str = "k", left: float = 10, age: float = 5, **fields: Any) -> WarmPool:
    """One that is kept for ``left`` more minutes and was left ``age`` minutes ago."""
    vector: Vector = fields.pop("vector", of(1))
    return WarmPool(
        training_job_name=name,
        team="default",
        vector=vector,
        warm_key=key,
        since=NOON - minutes(age),
        expires_at=NOON + minutes(left),
        **fields,
    )
