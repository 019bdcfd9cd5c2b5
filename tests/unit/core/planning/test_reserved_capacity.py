"""Instances that are one team's alone: who starts on them, who is stopped for them, who is told what."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Drain, Preempt, ReleaseWarm, Start
from trainmaster.core.planning.free_capacity import FreeCapacity
from trainmaster.core.planning.planner import plan, starts_in_empty_pool
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy, Preemption, Quota
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.reservation import Reservation, reserved_at

from tests.builders import NOON, A, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import starts, told, warm

VISION, OTHERS = "vision", "others"


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


def reservation(count: int = 1, *, begin: float = -1, end: float = 8, **fields: Any) -> Reservation:
    values: dict[str, Any] = {"name": "demo-day", "team": VISION, "instances": {A: count}}
    return Reservation(from_=NOON + hours(begin), to=NOON + hours(end), **values | fields)


def reserved(rules: PoolPolicy, *reservations: Reservation) -> PoolPolicy:
    """The pool as the edge makes it: what is reserved now, and the changes to come."""
    instants = sorted(
        {instant for each in reservations for instant in (each.from_, each.to) if instant > NOON}
    )
    return replace(
        rules,
        reservations=reservations,
        reserved=reserved_at(reservations, NOON),
        ahead=tuple(
            CapacityFrom(at=at, capacity=rules.capacity, reserved=reserved_at(reservations, at))
            for at in instants
        ),
    )


def of_team(name: str, team: str, **fields: Any) -> WaitingJob:
    return waiting(name, team=team, **fields)


def runs(name: str, team: str, **fields: Any) -> RunningJob:
    return running(name, team=team, **fields)


def drains(world: Snapshot, rules: PoolPolicy) -> list[str]:
    return [action.job.name for action in plan(world, rules, now=NOON).actions if isinstance(action, Drain)]


def preempted(world: Snapshot, rules: PoolPolicy) -> dict[str, list[str]]:
    actions = plan(world, rules, now=NOON).actions
    return {
        action.job.name: sorted(victim.name for victim in action.victims)
        for action in actions
        if isinstance(action, Preempt)
    }


# ---- while it holds


def test_what_is_reserved_is_free_for_the_team_alone() -> None:
    world = snapshot(*(of_team(f"o{number}", OTHERS) for number in range(3)), of_team("v", VISION))
    rules = reserved(pool(3), reservation(2))
    assert sorted(starts(world, rules)) == ["o0", "v"]
    code, message = told(world, rules, "o1")
    assert code == "window"
    assert message == (
        "needs ml.a.xlarge=1, free ml.a.xlarge=0: reservation demo-day keeps ml.a.xlarge=2 for team vision"
        " until 2026-11-02 20:00 UTC"
    )


def test_what_the_team_uses_counts_towards_its_reservation_first() -> None:
    rules = reserved(pool(4), reservation(2))
    assert list(starts(snapshot(runs("v", VISION, n=2), of_team("o", OTHERS, n=2)), rules)) == ["o"]
    assert list(starts(snapshot(runs("v", VISION, n=1), of_team("o", OTHERS, n=2)), rules)) == ["o"]
    assert list(starts(snapshot(runs("v", VISION, n=1), of_team("o", OTHERS, n=3)), rules)) == []
    more = snapshot(runs("v", VISION, n=3), of_team("o", OTHERS))
    assert list(starts(more, rules)) == ["o"], "the team uses more than it reserved"


def test_in_one_plan_the_teams_start_frees_nothing_that_others_had() -> None:
    world = snapshot(of_team("v", VISION, minutes_ago=5), *(of_team(f"o{n}", OTHERS) for n in range(3)))
    assert sorted(starts(world, reserved(pool(3), reservation(1)))) == ["o0", "o1", "v"]
    behind = snapshot(*(of_team(f"o{n}", OTHERS, minutes_ago=9) for n in range(3)), of_team("v", VISION))
    assert sorted(starts(behind, reserved(pool(3), reservation(1)))) == ["o0", "o1", "v"]


def test_a_job_that_the_reservation_leaves_too_little_for_is_told_until_when() -> None:
    world = snapshot(of_team("wide", OTHERS, n=3), of_team("a", OTHERS), of_team("v", VISION, n=3))
    rules = reserved(pool(4), reservation(2))
    assert sorted(starts(world, rules)) == ["a", "v"], "it delays nobody"
    code, message = told(world, rules, "wide")
    assert code == "window"
    assert message.startswith("needs ml.a.xlarge=3, free ml.a.xlarge=2: reservation demo-day keeps")
    assert starts_in_empty_pool(of_team("whole", OTHERS, n=4), snapshot(), rules, now=NOON), "later it does"


def test_a_claim_is_made_only_where_the_reserved_part_stays_free() -> None:
    rules = reserved(pool(4), reservation(2))
    found = starts(snapshot(of_team("o", OTHERS), of_team("v", VISION)), rules)
    capacity = Capacity(A)
    assert found["o"].most_used[capacity] == 1, "of four, one is its own and two are kept"
    assert found["v"].most_used[capacity] == 3


def test_a_job_at_the_head_of_the_queue_does_not_keep_the_team_from_its_own() -> None:
    rules = reserved(pool(4), reservation(2))
    world = snapshot(
        runs("o", OTHERS, n=1, ends_by=NOON + hours(1)),
        of_team("head", OTHERS, n=2, minutes_ago=50),
        of_team("v", VISION, n=2, runs_at_most=hours(30)),
        of_team("passes", OTHERS, n=1, runs_at_most=hours(30)),
    )
    found = starts(world, rules)
    assert sorted(found) == ["v"], "one more of the others would delay the head"


def test_the_teams_own_queue_is_kept_on_what_is_reserved() -> None:
    rules = reserved(pool(4), reservation(2))
    world = snapshot(
        runs("o", OTHERS, n=2),
        runs("v0", VISION, n=1, ends_by=NOON + hours(1)),
        of_team("other-head", OTHERS, n=1, minutes_ago=99),
        of_team("wide", VISION, n=2, minutes_ago=50),
        of_team("long", VISION, n=1, runs_at_most=hours(30)),
    )
    assert list(starts(world, rules)) == [], "the wide one of the team comes first"
    short = replace(world, waiting=(*world.waiting[:2], of_team("short", VISION, runs_at_most=minutes(5))))
    assert list(starts(short, rules)) == ["short"]


def test_the_head_of_others_does_not_count_on_ends_that_the_team_keeps() -> None:
    rules = reserved(pool(3), reservation(1))
    world = snapshot(
        runs("v", VISION, ends_by=NOON + hours(1)),
        runs("o", OTHERS, ends_by=NOON + hours(9)),
        of_team("head", OTHERS, n=2, minutes_ago=50),
        of_team("between", OTHERS, n=1, runs_at_most=hours(3)),
    )
    assert list(starts(world, rules)) == ["between"], "the head starts in nine hours, not in one"


def test_what_is_held_for_a_job_of_the_team_is_part_of_its_reservation() -> None:
    rules, hold = reserved(pool(2), reservation(1)), PreemptionReservation(preemptor="urgent", vector=of(1))
    world = snapshot(of_team("urgent", VISION), of_team("o", OTHERS), holds=(hold,))
    capacity = FreeCapacity.of(world, rules, holds=(hold,), now=NOON)
    assert capacity.free.of(OTHERS) == of(1), "one is held, and no more is reserved"


def test_what_no_job_of_others_can_have_the_teams_job_takes_from_its_own() -> None:
    rules = replace(reserved(pool(2), reservation(1)), preemption=Preemption(min_runtime=timedelta()))
    full = snapshot(
        runs("v", VISION),
        runs("o", OTHERS, priority=950),
        of_team("first", OTHERS, priority=900, minutes_ago=99),
        of_team("urgent", VISION, priority=900),
    )
    assert preempted(full, rules) == {"urgent": ["v"]}


def test_no_other_team_stops_a_job_on_what_is_reserved_for_it() -> None:
    rules = replace(reserved(pool(3), reservation(1)), preemption=Preemption(min_runtime=timedelta()))
    low = [runs("v", VISION, priority=0), runs("o1", OTHERS, priority=3), runs("o2", OTHERS, priority=3)]
    urgent = of_team("urgent", OTHERS, priority=900)
    assert preempted(snapshot(*low, urgent), rules)["urgent"] in (["o1"], ["o2"])
    assert preempted(snapshot(*low, replace(urgent, team=VISION)), rules) == {"urgent": ["v"]}
    both = snapshot(
        runs("v", VISION, priority=9), runs("v2", VISION, priority=0), runs("o", OTHERS, priority=5), urgent
    )
    assert preempted(both, rules) == {"urgent": ["v2"]}, "one of the team's two is beyond its reservation"


def test_a_hold_of_the_team_is_within_its_reservation() -> None:
    rules = replace(reserved(pool(2), reservation(1)), preemption=Preemption(min_runtime=timedelta()))
    world = snapshot(runs("v", VISION), of_team("urgent", VISION, priority=900), of_team("o", OTHERS))
    found = plan(world, rules, now=NOON).actions
    assert [action.job.name for action in found if isinstance(action, Start)] == ["urgent"]
    full = snapshot(
        runs("v", VISION), runs("o1", OTHERS, priority=950), of_team("urgent", VISION, priority=900)
    )
    assert preempted(full, rules) == {"urgent": ["v"]}


def test_quotas_hold_for_the_team_too() -> None:
    quotas = {VISION: Quota(nominal={A: 1}, borrowing_limit={A: 0}), OTHERS: Quota(nominal={A: 1})}
    rules = replace(reserved(pool(4), reservation(3)), quotas=quotas)
    world = snapshot(runs("v0", VISION), of_team("v1", VISION))
    assert list(starts(world, rules)) == []
    assert told(world, rules, "v1")[0] == "quota"


def test_a_quota_does_not_reclaim_what_is_reserved() -> None:
    quotas = {VISION: Quota(nominal={}), OTHERS: Quota(nominal={A: 2})}
    rules = replace(
        reserved(pool(2), reservation(1)), quotas=quotas, preemption=Preemption(min_runtime=timedelta())
    )
    world = snapshot(runs("v", VISION), runs("o0", OTHERS), of_team("o1", OTHERS, priority=0))
    assert preempted(world, rules) == {}
    assert preempted(world, replace(rules, reserved={}, reservations=())) == {"o1": ["v"]}


def test_spot_and_other_types_are_not_reserved() -> None:
    rules = replace(reserved(pool(1, b=1), reservation(1)), spot_capacity={A: 1})
    world = snapshot(of_team("b", OTHERS, shapes=_on(B)), of_team("spot", OTHERS, shapes=_on(A, spot=True)))
    assert sorted(starts(world, rules)) == ["b", "spot"]


def _on(instance_type: str, *, spot: bool = False) -> tuple[Shape, ...]:
    return (Shape(vector=of(1, instance_type, spot=spot)),)


# ---- at its beginning


def test_what_others_hold_is_stopped_cheapest_first_and_never_the_teams_own() -> None:
    world = snapshot(
        runs("o-high", OTHERS, priority=5),
        runs("o-old", OTHERS, minutes_ago=90),
        runs("o-young", OTHERS, minutes_ago=10),
        runs("v", VISION, minutes_ago=1),
    )
    assert drains(world, reserved(pool(4), reservation(1))) == []
    assert drains(world, reserved(pool(4), reservation(2))) == ["o-young"]
    assert drains(world, reserved(pool(4), reservation(4))) == ["o-young", "o-old", "o-high"]
    assert drains(world, reserved(pool(5), reservation(2))) == []
    (action,) = [
        action
        for action in plan(world, reserved(pool(4), reservation(2)), now=NOON).actions
        if isinstance(action, Drain)
    ]
    assert action.why == "reservation demo-day keeps ml.a.xlarge=2 for team vision until 2026-11-02 20:00 UTC"


def test_two_reservations_take_from_the_rest_and_not_from_each_other() -> None:
    language = reservation(2, name="exam", team="language")
    world = snapshot(runs("o", OTHERS, n=1), runs("v", VISION, n=3), runs("l", "language", n=1))
    assert drains(world, reserved(pool(5), reservation(2), language)) == ["o"]
    assert drains(world, reserved(pool(6), reservation(2), language)) == []
    wide = snapshot(runs("v", VISION, n=3), runs("l", "language", n=1))
    assert drains(wide, reserved(pool(4), reservation(2), language)) == ["v"], "it holds one of language's"


def test_warm_pools_of_others_go_first_and_the_teams_stay() -> None:
    rules = reserved(pool(2), reservation(1))
    kept = warm("w")
    theirs = snapshot(runs("o", OTHERS), warm_pools=(replace(kept, team=OTHERS),), warm=of(1))
    actions = plan(theirs, rules, now=NOON).actions
    assert [action.because for action in actions if isinstance(action, ReleaseWarm)] == [
        "reservation demo-day keeps ml.a.xlarge=1 for team vision until 2026-11-02 20:00 UTC"
    ]
    own = snapshot(runs("o", OTHERS), warm_pools=(replace(kept, team=VISION),), warm=of(1))
    assert drains(own, rules) == []
    released = [action for action in plan(own, rules, now=NOON).actions if isinstance(action, ReleaseWarm)]
    assert not any("reservation" in action.because for action in released), (
        "whether it is kept is another rule's"
    )


def test_who_runs_above_a_lowering_that_waits_is_stopped_only_for_the_team() -> None:
    lowered = reserved(replace(pool(2), base={A: 4}), reservation(1))
    assert drains(snapshot(runs("o", OTHERS, n=3), runs("v", VISION)), lowered) == [], "the team has its own"
    three = [runs(f"o{number}", OTHERS, minutes_ago=10 * (number + 1)) for number in range(3)]
    assert drains(snapshot(*three), lowered) == ["o0", "o1"]


def test_nobody_is_stopped_who_must_not_be_or_leaves_already() -> None:
    world = snapshot(
        runs("fixed", OTHERS, preemptible=False),
        runs("starting", OTHERS, state=JobState.STARTING),
        runs("leaves", OTHERS, state=JobState.PREEMPTING, stop_sent=True),
    )
    assert drains(world, reserved(pool(3), reservation(3))) == []


# ---- before its beginning


def test_others_start_before_it_only_if_they_end_in_time_or_save() -> None:
    rules = reserved(pool(2), reservation(2, begin=6, end=12))
    short, long = (
        of_team("short", OTHERS, runs_at_most=hours(5)),
        of_team("long", OTHERS, runs_at_most=hours(6)),
    )
    assert list(starts(snapshot(short, long), rules)) == ["short"]
    code, message = told(snapshot(long), rules, "long")
    assert code == "window"
    assert message == (
        "needs ml.a.xlarge=1 and may run until 2026-11-02 18:40 UTC; from 2026-11-02 18:00 UTC on reservation"
        " demo-day keeps ml.a.xlarge=2 for team vision until 2026-11-03 00:00 UTC: before that it starts only"
        " with checkpoints or a shorter MaxRuntimeInSeconds"
    )
    saves = replace(long, has_checkpoint=True)
    assert list(starts(snapshot(saves), rules)) == ["long"]
    assert starts(snapshot(replace(saves, preemptible=False)), rules) == {}
    assert list(starts(snapshot(replace(long, team=VISION)), rules)) == ["long"], "it is the team's own"


def test_beside_what_is_reserved_later_others_start_as_ever() -> None:
    rules = reserved(pool(3), reservation(2, begin=6, end=12))
    jobs = [of_team(name, OTHERS, runs_at_most=hours(9), minutes_ago=9 - n) for n, name in enumerate("ab")]
    assert list(starts(snapshot(*jobs), rules)) == ["a"], "one of three is left then"
    teams = snapshot(runs("v", VISION, has_checkpoint=False, n=1), *jobs)
    assert list(starts(teams, rules)) == ["a"], "the team's job is on one of those that it has reserved"


def test_a_type_that_is_not_lowered_is_not_judged_by_what_is_reserved_of_it() -> None:
    kept = reservation(1, instances={B: 1}, end=99)
    rules = reserved(pool(2, b=2), kept)
    lowering = CapacityFrom(at=NOON + hours(6), capacity={A: 0, B: 2}, reserved=reserved_at([kept], NOON))
    rules = replace(rules, ahead=(lowering, *rules.ahead))
    long = of_team("o", OTHERS, shapes=_on(B), runs_at_most=hours(9))
    assert list(starts(snapshot(long), rules)) == ["o"]


def test_a_reservation_that_goes_on_is_no_lowering() -> None:
    rules = reserved(pool(2), reservation(1, end=6), reservation(1, begin=6, end=12, name="again"))
    assert list(starts(snapshot(of_team("o", OTHERS, runs_at_most=hours(9))), rules)) == ["o"]


# ---- whatever is reserved


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_reserved_starts_leave_each_team_its_own(seed: int) -> None:
    """By the definition: each team counts with what it holds or has reserved, whichever is more."""
    chance = Random(seed)
    count = 6
    kept = [
        reservation(chance.randint(1, 2), team=team, name=f"r{number}", begin=chance.choice([-1, 1, 3]))
        for number, team in enumerate((VISION, "language", VISION))
    ]
    rules = reserved(pool(count), *kept)
    live = [
        runs(
            f"r{number}",
            chance.choice([VISION, OTHERS, "language"]),
            has_checkpoint=False,
            ends_by=_end(chance),
        )
        for number in range(chance.randint(0, 3))
    ]
    queue = [
        of_team(
            f"w{number}",
            chance.choice([VISION, OTHERS, "language"]),
            n=chance.randint(1, 2),
            runs_at_most=hours(chance.choice([0.5, 2, 20])),
            has_checkpoint=chance.random() < 0.5,
            minutes_ago=chance.randint(0, 90),
            priority=chance.randint(0, 3),
        )
        for number in range(9)
    ]
    found = list(starts(snapshot(*live, *queue), rules).values())
    for instant in (NOON, *(change.at for change in rules.ahead)):
        holding = reserved_at(kept, instant)
        before = _counted(_held(live, [], instant), holding)
        after = _counted(_held(live, found, instant), holding)
        assert after <= max(before, count), (seed, instant, after)


def _counted(held: Mapping[str, int], holding: Mapping[str, Mapping[str, int]]) -> int:
    return sum(max(held.get(team, 0), holding.get(team, {}).get(A, 0)) for team in {*held, *holding})


def _held(live: list[RunningJob], started: list[Start], instant: datetime) -> dict[str, int]:
    """Instances by team of those that are not certain to have ended, and cannot be stopped without loss."""
    held: dict[str, int] = {}
    for job in live:
        if job.expected.ends_by is None or job.expected.ends_by > instant:
            held[job.team] = held.get(job.team, 0) + 1
    for action in started:
        ends_by = NOON + minutes(30) + action.job.runs_at_most + minutes(10)
        if instant == NOON or (ends_by > instant and not action.job.has_checkpoint):
            held[action.job.team] = held.get(action.job.team, 0) + sum(action.shape.vector.values())
    return held


def _end(chance: Random) -> datetime | None:
    return chance.choice([None, NOON + hours(1.5), NOON + hours(5)])
