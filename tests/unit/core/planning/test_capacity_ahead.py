"""A capacity that the calendar lowers: who starts before it, who is stopped at it, who is told what."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Drain, ReleaseWarm, Start
from trainmaster.core.planning.planner import plan, starts_in_empty_pool
from trainmaster.core.planning.snapshot import RunningJob, Snapshot
from trainmaster.core.policy import PoolPolicy, Preemption, parse_policy
from trainmaster.core.policy.calendar import CapacityFrom

from tests.builders import NOON, A, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import starts, told, warm

STOPS = frozenset({A})
"""Lowered with ``when_lowered: preempt``."""
WAITS = frozenset[str]()
"""Lowered with ``when_lowered: wait``."""


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


def until_then(now: int, *ahead: tuple[float, int], stops: frozenset[str] = STOPS) -> PoolPolicy:
    """A pool of so many instances now, and of others from so many hours after noon on."""
    changes = tuple(
        CapacityFrom(at=NOON + hours(after), capacity={A: count}, stops=stops) for after, count in ahead
    )
    return replace(pool(now), ahead=changes)


def lowered(count: int, *, stops: frozenset[str] = STOPS) -> PoolPolicy:
    return replace(pool(count), base={A: 4}, stops=stops)


def drains(world: Snapshot, rules: PoolPolicy) -> list[str]:
    return [action.job.name for action in plan(world, rules, now=NOON).actions if isinstance(action, Drain)]


def test_a_job_starts_before_a_lowering_if_it_has_ended_by_then() -> None:
    world = snapshot(waiting("short", runs_at_most=hours(5)), waiting("long", runs_at_most=hours(6)))
    rules = until_then(2, (6, 0))
    assert list(starts(world, rules)) == ["short"]
    code, message = told(world, rules, "long")
    assert code == "window"
    assert "from 2026-11-02 18:00 UTC on the calendar leaves 0 ml.a.xlarge" in message
    assert message.endswith("only with checkpoints or a shorter MaxRuntimeInSeconds")


def test_one_that_saves_starts_as_it_can_be_stopped_then() -> None:
    saves = waiting("saves", runs_at_most=hours(6), has_checkpoint=True)
    assert list(starts(snapshot(saves), until_then(2, (6, 0)))) == ["saves"]
    assert starts(snapshot(saves), until_then(2, (6, 0), stops=WAITS)) == {}, "nobody is stopped"
    fixed = replace(saves, preemptible=False)
    assert starts(snapshot(fixed), until_then(2, (6, 0))) == {}, "its owner does not allow it"


def test_what_stays_beyond_the_lowering_has_to_fit_into_what_is_left() -> None:
    rules = until_then(4, (6, 2))
    stays = running("stays", has_checkpoint=False)
    ends = running("ends", has_checkpoint=False, ends_by=NOON + hours(5))
    stops = running("stops", n=1)
    jobs = [waiting(name, runs_at_most=hours(9), minutes_ago=9 - number) for number, name in enumerate("ab")]
    assert list(starts(snapshot(stays, *jobs), rules)) == ["a"], "one of two instances is left then"
    assert list(starts(snapshot(ends, *jobs), rules)) == ["a", "b"]
    assert list(starts(snapshot(stops, *jobs), rules)) == ["a", "b"]


def test_a_later_and_lower_step_counts_only_for_who_runs_until_then() -> None:
    rules = until_then(3, (4, 2), (8, 0))
    world = snapshot(waiting("a", runs_at_most=hours(7)), waiting("b", runs_at_most=hours(8)))
    assert list(starts(world, rules)) == ["a"]
    raised = until_then(1, (4, 3))
    assert list(starts(snapshot(waiting("a", runs_at_most=hours(9))), raised)) == ["a"]


def test_a_job_that_the_calendar_is_too_small_for_now_is_told_until_when() -> None:
    world = snapshot(waiting("wide", n=3), waiting("a"))
    rules = until_then(1, (2, 4))
    assert list(starts(world, rules)) == ["a"], "it delays nobody"
    assert told(world, rules, "wide") == (
        "window",
        "needs ml.a.xlarge=3, the calendar leaves ml.a.xlarge=1 until 2026-11-02 14:00 UTC",
    )
    assert told(world, until_then(1, (2, 2)), "wide")[0] == "capacity", "it never will be large enough"


def test_a_job_that_fits_at_some_time_of_the_calendar_is_not_one_that_never_starts() -> None:
    entry = {"every": "Mon 08:00-18:00", "capacity": {A: 3}}
    (written,) = parse_policy({"pools": [{"name": "main", "capacity": {A: 1}, "calendar": [entry]}]}).pools
    assert starts_in_empty_pool(waiting("wide", n=3), snapshot(), written, now=NOON)
    assert not starts_in_empty_pool(waiting("wide", n=4), snapshot(), written, now=NOON)


# ---- at the lowering


def test_what_is_above_the_capacity_is_stopped_cheapest_first() -> None:
    world = snapshot(
        running("high", priority=5),
        running("lossy", has_checkpoint=False),
        running("old", minutes_ago=90),
        running("young", minutes_ago=10),
    )
    assert drains(world, lowered(4)) == []
    assert drains(world, lowered(3)) == ["young"]
    assert drains(world, lowered(1)) == ["young", "old", "lossy"]
    assert drains(world, lowered(0)) == ["young", "old", "lossy", "high"]
    assert drains(world, lowered(0, stops=WAITS)) == []


def test_nobody_is_stopped_who_must_not_be_or_does_not_train_or_is_stopping() -> None:
    world = snapshot(
        running("fixed", preemptible=False),
        running("starting", state=JobState.STARTING),
        running("leaves", state=JobState.PREEMPTING, stop_sent=True),
    )
    assert drains(world, lowered(0)) == []
    both = snapshot(running("leaves", state=JobState.STOPPING, stop_sent=True), running("stays"))
    assert drains(both, lowered(1)) == [], "the other is going already"


def test_warm_pools_go_before_jobs_do() -> None:
    kept = warm("w")
    world = snapshot(running("a"), warm_pools=(kept,), warm=of(1))
    actions = plan(world, lowered(1), now=NOON).actions
    assert [type(action) for action in actions] == [ReleaseWarm]
    assert drains(world, lowered(0)) == ["a"]
    leaving = replace(kept, releasing=True)
    assert drains(snapshot(running("a"), warm_pools=(leaving,), warm=of(1)), lowered(1)) == []


def test_a_job_on_several_types_is_stopped_for_any_of_them() -> None:
    both = {Capacity(A, CapacityType.ON_DEMAND): 1, Capacity(B, CapacityType.ON_DEMAND): 2}
    rules = replace(pool(0, b=2), stops=STOPS)
    assert drains(snapshot(running("both", vector=both), running("b", vector=of(2, B))), rules) == ["both"]


def test_spot_instances_are_none_of_the_calendar() -> None:
    world = snapshot(running("spot", vector=of(1, spot=True)))
    assert drains(world, lowered(0)) == []


def test_a_paused_pool_stops_what_is_above_the_capacity_too() -> None:
    assert drains(snapshot(running("a"), paused=True), lowered(0)) == ["a"]


def test_who_is_stopped_for_the_calendar_is_no_victim_of_the_same_plan() -> None:
    world = snapshot(running("a"), running("b"), waiting("urgent", priority=9))
    rules = replace(lowered(1), preemption=Preemption(enabled=True))
    actions = plan(world, rules, now=NOON).actions
    assert [action.job.name for action in actions if isinstance(action, Drain)] == ["a"]
    victims = [victim.name for action in actions for victim in getattr(action, "victims", ())]
    assert "a" not in victims


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_calendar_what_stays_fits_at_each_instant(seed: int) -> None:
    """Starts never put more that cannot be stopped beyond an instant than there is then."""
    chance = Random(seed)
    ahead = sorted((chance.choice([1, 2, 4, 8, 16]), chance.randint(0, 6)) for _ in range(3))
    steps = tuple(dict(ahead).items())
    rules = until_then(6, *steps, stops=chance.choice([STOPS, WAITS]))
    live = [
        running(f"r{number}", has_checkpoint=chance.random() < 0.5, ends_by=_some_end(chance))
        for number in range(chance.randint(0, 3))
    ]
    queue = [
        waiting(
            f"w{number}",
            n=chance.randint(1, 3),
            runs_at_most=hours(chance.choice([0.5, 1, 3, 7, 20])),
            has_checkpoint=chance.random() < 0.5,
            preemptible=chance.choice([None, True, False]),
        )
        for number in range(8)
    ]
    before = _stays(live, rules, started=[])
    started = list(starts(snapshot(*live, *queue), rules).values())
    after = _stays(live, rules, started=started)
    for change, was, held in zip(rules.ahead, before, after, strict=True):
        assert held <= max(change.capacity[A], was), (seed, change, held)


def _some_end(chance: Random) -> datetime | None:
    return chance.choice([None, NOON + hours(1.5), NOON + hours(5)])


def _stays(live: list[RunningJob], rules: PoolPolicy, *, started: list[Start]) -> list[int]:
    """Instances held beyond each change by jobs that are not stopped without loss, by the definition."""
    held: list[int] = []
    for change in rules.ahead:
        stay = 0
        for job in live:
            ends_by = job.expected.ends_by
            if ends_by is None or ends_by > change.at:
                stay += 0 if A in change.stops and job.preemptible and job.has_checkpoint else 1
        for action in started:
            entry = action.job
            ends_by = NOON + rules.capacity_wait + entry.runs_at_most + minutes(10)
            stopped = A in change.stops and entry.preemptible is not False and entry.has_checkpoint
            if ends_by > change.at and not stopped:
                stay += sum(action.shape.vector.values())
        held.append(stay)
    return held
