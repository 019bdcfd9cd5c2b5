"""Growths beside waiting jobs: only with instances that are of no use to any of them, and delaying none.

The pool has six instances: two of the elastic job, two of another, two free. Whoever needs five or six has to
wait for the elastic job.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.run_time import END_SLACK
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.actions import Grow, Plan
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob, WaitingJob
from trainmaster.core.policy import PoolPolicy

from tests.builders import NOON, A, B, minutes, of, running, snapshot, waiting

HOUR = timedelta(hours=1)
TRAINED = minutes(60)


def ends_after(left: timedelta) -> ExpectedRun:
    """What is known of a job that has trained for an hour."""
    return ExpectedRun(at_most=TRAINED + left, ends_by=NOON + left + END_SLACK)


def elastic(left: timedelta = 40 * HOUR, **fields: Any) -> RunningJob:
    values: dict[str, Any] = {"n": 2, "minutes_ago": 60, "expected": ends_after(left)}
    return running("elastic", widths=Widths(counts=(2, 4)), **values | fields)


def decided(*waits: WaitingJob, job: RunningJob | None = None, **fields: Any) -> Plan:
    values: dict[str, Any] = {"capacity": {A: 6, B: 2}}
    other = running("other", n=2, minutes_ago=60, expected=ends_after(2 * HOUR))
    return plan(
        snapshot(job or elastic(), other, *waits), PoolPolicy(name="main", **values | fields), now=NOON
    )


def grows(outcome: Plan) -> bool:
    return any(isinstance(action, Grow) for action in outcome.actions)


@pytest.mark.parametrize("count", [5, 6])
def test_it_grows_beside_a_job_that_needs_its_instances(count: int) -> None:
    assert grows(decided(waiting("wide", n=count)))


def test_it_grows_beside_a_job_that_waits_for_another_type_too() -> None:
    wide = waiting("wide", vector={**of(6), **of(2, B)})
    assert grows(decided(wide, waiting("elsewhere", vector=of(3, B))))


COULD_USE_IT = {
    "it could start beside it": waiting("narrow", n=4),
    "one of its shapes could": waiting("alternative", shapes=(Shape(vector=of(6)), Shape(vector=of(4)))),
    "it may stop it": waiting("urgent", n=6, priority=9, has_checkpoint=True),
}


@pytest.mark.parametrize("case", COULD_USE_IT)
def test_it_does_not_grow_beside_a_job_where(case: str) -> None:
    outcome = decided(waiting("first", n=6, minutes_ago=9), COULD_USE_IT[case], job=_unstoppable())
    assert not grows(outcome)
    assert outcome.widths["elastic"].endswith(
        f"not while {COULD_USE_IT[case].name} waits, which could use what is free"
    )


def _unstoppable() -> RunningJob:
    """It has just begun, so that nobody stops it yet, whatever the priority."""
    return replace(elastic(), preemptible=False)


def test_a_waiting_job_of_another_team_is_not_named() -> None:
    outcome = decided(waiting("secret", n=4, team="vision"))
    assert "secret" not in outcome.widths["elastic"]
    assert "a job of team vision waits" in outcome.widths["elastic"]


def test_it_does_not_grow_where_the_calendar_makes_room_for_who_waits() -> None:
    assert not grows(decided(waiting("wide", n=6), base={A: 12}))


def test_it_does_not_grow_while_room_is_made_for_another() -> None:
    outcome = decided(waiting("urgent", n=3, priority=9), job=_unstoppable())
    assert not grows(outcome)
    assert "not while room is made for another job" in outcome.widths["elastic"]


@pytest.mark.parametrize(
    ("job", "keeps"),
    [
        (elastic(40 * HOUR), True),
        (elastic(2 * HOUR, last_checkpoint=NOON), True),
        (elastic(2 * HOUR), False),
        (replace(elastic(40 * HOUR), expected=ExpectedRun(at_most=41 * HOUR)), False),
    ],
    ids=["much is left", "a checkpoint keeps all", "it may train an hour again", "its end is not certain"],
)
def test_the_promise_to_the_first_job_is_kept(job: RunningJob, *, keeps: bool) -> None:
    """Its worth is no matter here: it is the longest that it may run which counts."""
    outcome = decided(waiting("wide", n=6), job=job)
    assert grows(outcome) is keeps
    if not keeps:
        assert "2 more ml.a.xlarge that are free and stay so" in outcome.widths["elastic"]
