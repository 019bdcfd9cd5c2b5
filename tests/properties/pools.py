"""Pools for the planner: small, full, and of every kind, so that properties meet what they are about."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from trainmaster.core.costs.ledger import MonthAccount
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Shape, Vector, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import (
    BudgetState,
    PreemptionReservation,
    RunningJob,
    Snapshot,
    WaitingJob,
)
from trainmaster.core.planning.snapshot import WarmPool as KeptPool
from trainmaster.core.planning.warm_history import KeyStart, WarmHistory
from trainmaster.core.policy import AtLimit, Order, PoolPolicy, Preemption, PreemptionCost, Quota, WarmPool

from tests.builders import NOON, A, B, minutes, of, running, waiting

EXAMPLES = int(os.environ.get("TRAINMASTER_EXAMPLES", "120"))
"""Of each property."""
always = settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
"""The same pools in each run, however slow the machine."""
TEAMS = ("vision", "speech")
KEY = f"{A}x1"
"""Warm key of a single instance of A."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One pool at noon."""

    pool: PoolPolicy
    snapshot: Snapshot

    @property
    def capacity(self) -> dict[Capacity, int]:
        on_demand = {Capacity(name): count for name, count in self.pool.capacity.items()}
        spot = {Capacity(name, CapacityType.SPOT): n for name, n in self.pool.spot_capacity.items()}
        return on_demand | spot


def shape(vector: Vector) -> Shape:
    """With the warm key that jobs of its form have in common."""
    ((capacity, count), *more) = vector.items()
    keeps = not more and capacity.capacity_type is CapacityType.ON_DEMAND
    return Shape(vector=vector, warm_key=f"{capacity}x{count}" if keeps else None)


VECTORS = st.sampled_from(
    [of(1), of(1), of(1), of(2), of(3), of(1, B), of(2, B), {**of(1), **of(1, B)}, of(1, spot=True)]
)
MINUTES = st.integers(-90, 300)


@st.composite
def waiting_jobs(draw: st.DrawFn, number: int) -> WaitingJob:
    shapes = tuple(shape(draw(VECTORS)) for _ in range(draw(st.sampled_from([1, 1, 1, 2]))))
    single = all(len(one.vector) == 1 for one in shapes)
    distinct = len({capacity for one in shapes for capacity in one.vector}) == len(shapes)
    by_sagemaker = single and distinct and len(shapes) > 1 and draw(st.booleans())
    return waiting(
        f"w{number}",
        priority=draw(st.integers(0, 3)),
        minutes_ago=draw(st.integers(0, 9)),
        team=draw(st.sampled_from(TEAMS)),
        shapes=shapes,
        choice=Choice.SAGEMAKER if by_sagemaker else Choice.FIRST_FIT,
        runs_at_most=minutes(draw(st.sampled_from([10, 60, 600]))),
        has_checkpoint=draw(st.booleans()),
        state=draw(st.sampled_from([JobState.PENDING, JobState.PREEMPTED])),
    )


@st.composite
def running_jobs(draw: st.DrawFn, number: int) -> RunningJob:
    vector = draw(VECTORS)
    trains = draw(st.booleans())
    state = draw(
        st.sampled_from([*[JobState.RUNNING] * 5, JobState.STARTING, JobState.PREEMPTING, JobState.STOPPING])
    )
    since = NOON - minutes(draw(st.integers(1, 120))) if trains else None
    return running(
        f"r{number}",
        priority=draw(st.integers(0, 3)),
        minutes_ago=draw(st.integers(0, 200)),
        team=draw(st.sampled_from(TEAMS)),
        vector=vector,
        state=state,
        training_since=since,
        ends_by=None if since is None else NOON + minutes(draw(st.integers(1, 400))),
        last_checkpoint=None
        if since is None or draw(st.booleans())
        else NOON - minutes(draw(st.integers(0, 60))),
        has_checkpoint=draw(st.booleans()),
        preemptible=draw(st.integers(0, 5)) > 0,
        preemptions=draw(st.integers(0, 3)),
        stop_sent=draw(st.booleans()),
        warm_key=shape(vector).warm_key,
    )


@st.composite
def policies(draw: st.DrawFn, surely: str) -> PoolPolicy:
    capacity = {A: draw(st.integers(0, 4)), B: draw(st.integers(0, 3))}
    quotas: Mapping[str, Quota] = {}
    if surely == "quotas" or draw(st.booleans()):
        first = draw(st.integers(0, capacity[A]))
        limit = draw(st.sampled_from([{A: 0}, {A: 1}] if surely == "quotas" else [None, {A: 0}, {A: 1}]))
        quotas = {
            "vision": Quota(nominal={A: first}, borrowing_limit=limit),
            "speech": Quota(nominal={A: capacity[A] - first, B: capacity[B]}),
        }
    return PoolPolicy(
        name="main",
        capacity=capacity,
        spot_capacity={A: draw(st.integers(0, 1))},
        order=Order(backfill=draw(st.integers(0, 4)) > 0),
        preemption=Preemption(
            enabled=surely == "delay" or draw(st.integers(0, 4)) > 0,
            min_priority_gap=draw(st.sampled_from([1, 1, 2])),
            min_runtime=minutes(draw(st.sampled_from([0, 0, 30]))),
            preempt_delay=minutes(60 if surely == "delay" else draw(st.sampled_from([0, 0, 60]))),
            needs_checkpoint=draw(st.integers(0, 5)) == 0,
            cost=PreemptionCost(enabled=draw(st.integers(0, 3)) == 0),
        ),
        warm_pool=WarmPool(
            keep_alive=minutes(10 if surely == "warm" else draw(st.sampled_from([0, 10]))),
            retain=draw(st.sampled_from([minutes(0), minutes(5), None])),
        ),
        quotas=quotas,
    )


@st.composite
def histories(draw: st.DrawFn) -> WarmHistory:
    """The record of a warm key: ends an hour apart, and jobs that came some minutes after them."""
    gaps = draw(st.lists(st.integers(0, 40), max_size=6))
    ends = tuple(NOON - minutes(60 * number) for number in range(1, len(gaps) + 1))
    comings = [end + minutes(gap) for end, gap in zip(ends, gaps, strict=True)]
    starts = tuple(KeyStart(at=at, ready=at) for at in comings)
    return WarmHistory(starts=starts, ends=ends, cold=(minutes(draw(st.sampled_from([1, 5, 60]))),))


@st.composite
def warm_pools(draw: st.DrawFn, number: int) -> KeptPool:
    vector = draw(st.sampled_from([of(1), of(1), of(2), of(1, B)]))
    key = shape(vector).warm_key
    assert key is not None
    return KeptPool(
        training_job_name=f"k{number}",
        team=draw(st.sampled_from(TEAMS)),
        vector=vector,
        warm_key=key,
        since=NOON - minutes(draw(st.sampled_from([0, 3, 25, 40]))),
        expires_at=NOON + minutes(draw(st.sampled_from([-1, 0.5, 1.5, 5, 9]))),
        releasing=draw(st.integers(0, 5)) == 0,
    )


@st.composite
def cases(draw: st.DrawFn, *, plain: bool = False, surely: str = "") -> Case:
    """Some pool.

    Args:
        draw: Hypothesis's.
        plain: Without warm pools, holds, limits and money.
        surely: What there is for certain: ``warm``, ``holds``, ``limits``, ``money``, ``quotas``, ``delay``.
    """
    pool = draw(policies(surely))
    most = 2 if surely in {"warm", "quotas", "money"} else 5
    live = tuple(draw(running_jobs(number)) for number in range(draw(st.integers(0, most))))
    queue = tuple(draw(waiting_jobs(number)) for number in range(draw(st.integers(1, 6))))
    case = Case(pool=pool, snapshot=Snapshot(waiting=queue, running=live, prices=PRICES))
    if draw(st.integers(0, 3)):
        live = _within(live, case.capacity)
    case = replace(
        case, snapshot=replace(case.snapshot, running=live, used=_some(total(one.vector for one in live)))
    )
    if plain:
        return case
    return replace(case, snapshot=replace(case.snapshot, **draw(_extras(case, surely))))


PRICES = PriceTable(overrides={})


@st.composite
def _extras(draw: st.DrawFn, case: Case, surely: str) -> dict[str, Any]:
    """Warm pools, holds, learned limits, budgets, parked jobs, a pause."""
    number_kept = [1, 2, 3] if surely == "warm" else [0, 0, 1, 2, 3]
    kept = tuple(draw(warm_pools(number)) for number in range(draw(st.sampled_from(number_kept))))
    fields: dict[str, Any] = {"warm_pools": kept, "warm": _some(total(one.vector for one in kept))}
    fields["warm_histories"] = {one.warm_key: draw(histories()) for one in kept if draw(st.booleans())}
    if surely == "holds" or draw(st.booleans()):
        fields |= draw(_holds(case))
    if surely == "limits" or draw(st.booleans()):
        until = NOON + minutes(draw(st.sampled_from([-1, 5, 5])))
        limit = AccountLimit(limit=draw(st.integers(0, 2)), until=until, refusals=1)
        fields["account_limits"] = {Capacity(A): limit}
    if surely == "money" or draw(st.booleans()):
        fields["budgets"] = {team: draw(_budgets()) for team in TEAMS[: draw(st.integers(1, 2))]}
        fields["prices"] = PriceTable(
            overrides={A: Decimal(1)} | draw(st.sampled_from([{}, {B: Decimal(2)}]))
        )
    if draw(st.integers(0, 3)) == 0:
        fields["due"] = (waiting("due", not_before=NOON - minutes(1)),)
    fields["paused"] = draw(st.integers(0, 9)) == 0
    return fields


@st.composite
def _holds(draw: st.DrawFn, case: Case) -> dict[str, Any]:
    owner = draw(st.sampled_from([*case.snapshot.waiting[:2], waiting("gone", shapes=(shape(of(1)),))]))
    stopping = tuple(one.name for one in case.snapshot.running if one.state is JobState.PREEMPTING)
    until = draw(st.sampled_from([None, NOON + minutes(5), NOON - minutes(1)]))
    hold = PreemptionReservation(
        preemptor=owner.name, vector=owner.shapes[0].vector, victims=stopping or ("over",), until=until
    )
    gone = frozenset({"gone"}) & {owner.name}
    return {"holds": (hold,), "gone_preemptors": gone}


@st.composite
def _budgets(draw: st.DrawFn) -> BudgetState:
    spent, reserved = draw(st.sampled_from([0, 0, 40, 900])), draw(st.sampled_from([0, 0, 50]))
    return BudgetState(
        month="2026-11",
        account=MonthAccount(spent=spent, reserved=reserved),
        limit_cents=draw(st.sampled_from([100, 150, 1000, 5000])),
        at_limit=draw(st.sampled_from(list(AtLimit))),
        warned=draw(st.booleans()),
    )


def _within(live: tuple[RunningJob, ...], capacity: Vector) -> tuple[RunningJob, ...]:
    """Those of them that fit into the pool together: what it is like unless its capacity was lowered."""
    kept: list[RunningJob] = []
    for job in live:
        with_it = total(one.vector for one in (*kept, job))
        if all(count <= capacity.get(one, 0) for one, count in with_it.items()):
            kept.append(job)
    return tuple(kept)


def _some(counts: Vector) -> dict[Capacity, int]:
    return {capacity: count for capacity, count in counts.items() if count}
