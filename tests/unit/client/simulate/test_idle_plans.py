"""What tells that a plan has nothing to do, without making it."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot
from trainmaster.core.policy import PoolPolicy, Quota
from trainmaster_client.simulate.engine.idle_plans import may_act

from tests.builders import NOON, A, minutes, of, pool, running, snapshot, waiting

FULL = (running("a", vector=of(2), priority=5, training_since=NOON - minutes(50)),)
STOPPING = (replace(FULL[0], state=JobState.PREEMPTING, stop_sent=True, preempted_for="p"),)
ELASTIC = (replace(FULL[0], widths=Widths(counts=(2, 4))),)
HELD = PreemptionReservation(preemptor="p", vector=of(2))


def world(*queue: str, live: tuple[RunningJob, ...] = FULL, priority: int = 5, **other: Any) -> Snapshot:
    found = snapshot(*(waiting(name, priority=priority) for name in queue), *live)
    return replace(found, **other)


def shared(team: str) -> PoolPolicy:
    return replace(pool(2), quotas={team: Quota(nominal={A: 1})})


@pytest.mark.parametrize(
    ("found", "rules", "expected"),
    [
        pytest.param(world(), pool(2), False, id="nobody waits"),
        pytest.param(world("b"), pool(2), False, id="it fits nowhere and outranks nobody"),
        pytest.param(world("b"), pool(3), True, id="it fits"),
        pytest.param(world("b", priority=6), pool(2), True, id="it outranks who runs"),
        pytest.param(
            world("b", live=(replace(FULL[0], preemptible=False),), priority=6),
            pool(2),
            False,
            id="who runs may not be stopped",
        ),
        pytest.param(world("b", due=(waiting("c"),)), pool(2), True, id="a back-off is over"),
        pytest.param(
            world(live=(replace(STOPPING[0], stop_sent=False),)), pool(2), True, id="a stop is to be sent"
        ),
        pytest.param(
            world("p", live=STOPPING, holds=(HELD,), priority=9), pool(2), False, id="its victim is stopping"
        ),
        pytest.param(world("p", holds=(HELD,)), pool(2), True, id="nobody is stopping for it any more"),
        pytest.param(
            world("p", live=STOPPING, holds=(replace(HELD, until=NOON),)),
            pool(2),
            True,
            id="its time is over",
        ),
        pytest.param(
            world("p", live=STOPPING, holds=(HELD,), gone_preemptors=frozenset({"p"})),
            pool(2),
            True,
            id="its owner is gone",
        ),
        pytest.param(
            world("b", live=(replace(FULL[0], team="guest"),)),
            shared(waiting("b").team),
            True,
            id="it may take back its quota",
        ),
        pytest.param(world("b"), shared("another"), False, id="both borrow"),
        pytest.param(world(live=ELASTIC), pool(4), True, id="an elastic job may grow"),
        pytest.param(world(live=ELASTIC), pool(3), False, id="too little is free for its next width"),
    ],
)
def test_a_plan_may_act(found: Snapshot, rules: PoolPolicy, *, expected: bool) -> None:
    assert may_act(found, rules, now=NOON) is expected
    assert expected or plan(found, rules, now=NOON).actions == ()
