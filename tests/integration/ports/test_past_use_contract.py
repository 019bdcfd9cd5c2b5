"""What teams have used is kept with the end that ends it, and moves whole teams in what is read."""

from dataclasses import replace
from datetime import timedelta

import pytest
from trainmaster.core.errors import LostRaceError
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.past_use import HALF_LIFE, hours_of
from trainmaster.core.policy import parse_policy

from tests.builders import NOON, claimed, minutes, of
from tests.integration.ports.plane import Plane, ended

HOUR = timedelta(hours=1)


def used(plane: Plane, *, team: str = "default", half_life: timedelta = HALF_LIFE) -> float:
    state = plane.reader.pool_state("main").teams[team]
    return hours_of(state.past_use, half_life, now=NOON)


def ends(
    plane: Plane, name: str, *, ago: timedelta = HOUR, half_life: timedelta | None = None, n: int = 1
) -> Change:
    """Claimed so long ago, and over now."""
    one = plane.running(name, vector=of(n))
    live = one.live_attempt
    claim = replace(live.claim, at=NOON - ago, half_life=half_life)
    return ended(plane.change(one, replace(one, live=replace(live, claim=claim))), "Failed")


def test_an_end_adds_what_its_attempt_has_held(plane: Plane) -> None:
    plane.store.commit([ends(plane, "a")], at=NOON)
    assert used(plane) == pytest.approx(1, rel=0.01)
    plane.store.commit([ends(plane, "b", n=3)], at=NOON)
    assert used(plane) == pytest.approx(4, rel=0.01)


def test_an_end_that_comes_twice_counts_once(plane: Plane) -> None:
    end = ends(plane, "a")
    plane.store.commit([end], at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.commit([end], at=NOON)
    assert used(plane) == pytest.approx(1, rel=0.01)


def test_two_ends_of_a_team_in_one_commit(plane: Plane) -> None:
    plane.store.commit([ends(plane, "a"), ends(plane, "b")], at=NOON)
    assert used(plane) == pytest.approx(2, rel=0.01)


def test_a_job_that_goes_on_adds_nothing(plane: Plane) -> None:
    one = plane.running("a")
    plane.change(one, replace(one, ver=one.ver))
    assert used(plane) == 0


def test_the_half_life_of_the_claim_is_that_of_the_sum(plane: Plane) -> None:
    plane.store.commit([ends(plane, "a", half_life=HOUR)], at=NOON)
    (period,) = plane.reader.pool_state("main").teams["default"].past_use
    assert period.half_life == HOUR


def test_numbers_of_a_whole_period_are_kept_exactly(plane: Plane) -> None:
    """Near its end they have more digits than a float."""
    plane.store.commit([ends(plane, "a", half_life=HOUR, n=2)], at=NOON + 20 * HOUR)
    before = plane.reader.pool_state("main").teams["default"].past_use
    plane.store.commit([ends(plane, "b", half_life=HOUR, n=2)], at=NOON + 20 * HOUR)
    after = plane.reader.pool_state("main").teams["default"].past_use
    assert {one: 2 * count for one, count in before.items()} == after


def test_a_snapshot_has_past_use_only_where_it_decides(plane: Plane) -> None:
    plane.store.commit([ends(plane, "a")], at=NOON)
    assert plane.snapshot().past_use is None
    document = {**plane.policy.document}
    (main,) = document["pools"]
    policy = parse_policy({**document, "pools": [main | {"order": {"fair_share": {"weight": 10}}}]})
    for read in (plane.reader.snapshot, plane.reader.overview):
        found = read(policy.pools[0], policy=policy, paused=False, now=NOON).past_use
        assert found == {"default": plane.reader.pool_state("main").teams["default"].past_use}


def test_a_list_follows_the_shifts_of_teams_across_pages(plane: Plane) -> None:
    for number in range(12):
        plane.submitted(f"a{number:02d}", team="atlas", score=number)
        plane.submitted(f"v{number:02d}", team="vision", score=number)
    shifts = {"atlas": 100, "vision": -100}
    listed: list[str] = []
    after = None
    while page := plane.reader.waiting("main", after=after, limit=5, shifts=shifts):
        listed += [one.name for one in page]
        after = page[-1].rank
    assert listed == [f"v{n:02d}" for n in range(12)] + [f"a{n:02d}" for n in range(12)]
    small = plane.reader.waiting("main", after=None, limit=4, shifts={"atlas": 3, "vision": 0})
    assert [one.name for one in small] == ["v00", "v01", "v02", "a00"]


def test_a_shift_of_all_priorities_there_are_sorts_too(plane: Plane) -> None:
    """Without ageing a point is 100 years, and three times the greatest weight are 3,000 points."""
    most = 3000 * 100 * 366 * 86_400_000
    plane.submitted("a", team="atlas", score=1)
    plane.submitted("v", team="vision", score=2)
    for shifts, expected in (
        ({"atlas": most, "vision": -most}, ["v", "a"]),
        ({"atlas": -most, "vision": most}, ["a", "v"]),
    ):
        (first,) = plane.reader.waiting("main", after=None, limit=1, shifts=shifts)
        (rest,) = plane.reader.waiting("main", after=first.rank, limit=1, shifts=shifts)
        assert [first.name, rest.name] == expected


def test_who_waits_for_the_turn_is_counted_apart_from_who_is_parked(plane: Plane) -> None:
    plane.submitted("a")
    two = plane.submitted("b")
    plane.change(two, replace(two, not_before=NOON + minutes(5)))
    plane.change(plane.submitted("c"), claimed(plane.job("c")))
    state = plane.reader.pool_state("main")
    assert (state.teams["default"].waiting, state.teams["default"].queued) == (2, 1)
    assert [one.name for one in state.running] == ["c"]
