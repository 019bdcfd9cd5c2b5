"""How long a pool stays idle by itself, and that a replay that relies on it decides what one without does."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot
from trainmaster.core.policy import FairShare, Policy, PoolPolicy
from trainmaster_client.simulate.engine import idle_pool
from trainmaster_client.simulate.engine.checkpoint_turns import CheckpointTurns
from trainmaster_client.simulate.engine.idle_plans import may_act
from trainmaster_client.simulate.engine.idle_times import NEVER, idle_until
from trainmaster_client.simulate.engine.past_jobs import AccountBounds, History
from trainmaster_client.simulate.io.replaying import replay

from tests.builders import NOON, minutes, of, pool, running, snapshot, waiting
from tests.properties.pools import Case, always, cases
from tests.unit.client.simulate.test_invariants import TYPES, drawn

FULL = running("a", vector=of(2), priority=5, training_since=NOON - minutes(5))
HELD = PreemptionReservation(preemptor="p", vector=of(2), until=NOON + minutes(9))
FUTILE = FutilePreemptions(count=1, since=NOON, until=NOON + minutes(7), vector=of(1))


def world(*queue: str, live: RunningJob = FULL, priority: int = 5, **other: Any) -> Snapshot:
    return replace(snapshot(*(waiting(name, priority=priority) for name in queue), live), **other)


def protecting(runtime: timedelta) -> PoolPolicy:
    plain = pool(2)
    return replace(plain, preemption=replace(plain.preemption, min_runtime=runtime))


@pytest.mark.parametrize(
    ("found", "rules", "expected"),
    [
        pytest.param(world("b"), pool(2), NEVER, id="it outranks no job: only a change helps"),
        pytest.param(world("b", priority=6), pool(2), NOON, id="a stop may be worth it at any instant"),
        pytest.param(
            world("b", priority=6), protecting(minutes(8)), NOON + minutes(3), id="min_runtime is over then"
        ),
        pytest.param(world("b", holds=(HELD,)), pool(2), NOON + minutes(9), id="a reservation ends then"),
        pytest.param(
            world(waiting=(waiting("b", futile=FUTILE),)),
            pool(2),
            NOON + minutes(7),
            id="it may preempt again then",
        ),
    ],
)
def test_a_pool_is_idle_until_a_rule_may_come_out_otherwise(
    found: Snapshot, rules: PoolPolicy, expected: datetime
) -> None:
    assert idle_until(found, rules, (), now=NOON) == expected


def test_a_pool_is_idle_until_a_back_off_is_over() -> None:
    parked = (waiting("c", not_before=NOON + minutes(4)), waiting("d", not_before=NOON + minutes(2)))
    assert idle_until(world("b"), pool(2), parked, now=NOON) == NOON + minutes(2)


SPANS = st.sampled_from([0, 1, 30, 59, 60, 61, 600, 3600, 86_400, 30 * 86_400])


@always
@given(st.one_of(cases(plain=True), cases(), cases(surely="holds"), cases(surely="quotas")), st.data())
def test_until_then_no_plan_does_anything(case: Case, data: st.DataObject) -> None:
    found = replace(case.snapshot, due=())
    for idle in (found, replace(found, warm={}, warm_pools=(), budgets={})):
        if may_act(idle, case.pool, now=NOON):
            continue
        until = idle_until(idle, case.pool, (), now=NOON)
        for later in (NOON + timedelta(seconds=data.draw(SPANS)), until - timedelta(seconds=1)):
            if NOON <= later < until:
                assert not may_act(idle, case.pool, now=min(later, NOON + timedelta(days=400)))


SEEDS = (*range(3), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(3, 40)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_that_plans_and_looks_each_minute_decides_the_same(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    history, rules = _drawn(seed)
    found = replay(history, rules, label="when something may have changed")
    with monkeypatch.context() as patched:
        patched.setattr(idle_pool, "idle_until", lambda *_, now: now)
        patched.setattr(CheckpointTurns, "finds_nothing", lambda *_, **__: False)
        each_minute = replay(history, rules, label="each minute")
    assert found.attempts == each_minute.attempts
    assert found.warm == each_minute.warm
    assert found.passes == each_minute.passes


def _drawn(seed: int) -> tuple[History, Policy]:
    """Return a random history and policy; some with an account that refuses starts, or with fair share."""
    history, rules = drawn(seed)
    if seed % 3 == 0:
        history = replace(history, account=AccountBounds(instances={TYPES[0]: 3}, start_gap_s=1))
    if seed % 4 == 1:
        first, *others = rules.pools
        order = replace(first.order, fair_share=FairShare(weight=20))
        rules = replace(rules, pools=(replace(first, order=order), *others))
    return history, rules
