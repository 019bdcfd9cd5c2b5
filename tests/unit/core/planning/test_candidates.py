"""Whom a pass looks at, and that no number of lanes or depth of a queue hides anybody for long."""

from collections import Counter
from datetime import datetime

import pytest
from trainmaster.core.jobs.instances import Choice, Shape
from trainmaster.core.planning.candidates import (
    HEADS,
    MANY_TEAMS,
    MAX_LANES,
    MAX_SHORT,
    LaneRead,
    lane,
    lanes_to_read,
    order_to_read,
    teams_to_read,
)
from trainmaster.core.planning.snapshot import LaneRow, WaitingJob

from tests.builders import NOON, A, minutes, of, waiting


def lanes(count: int, team: str = "red") -> list[LaneRow]:
    """The later their number the later their heads."""
    return [LaneRow(team=team, text=f"lane-{number:04d}", head=f"{number:017d}#x") for number in range(count)]


def entries(count: int, team: str = "red", *, width: int = 1) -> list[WaitingJob]:
    return [
        waiting(f"{team}-{width}-{number:03d}", team=team, vector=of(width), score=number)
        for number in range(count)
    ]


def its_lane(one: WaitingJob) -> LaneRow:
    return LaneRow(team=one.team, text=lane(one.shapes, one.choice))


@pytest.mark.parametrize(
    ("queued", "read"),
    [
        pytest.param({"red": 900, "blue": 900}, ("blue",), id="of whom too few are among the first"),
        pytest.param({"red": 900, "blue": 3}, (), id="all of whom are among the first"),
        pytest.param({"red": 900, "blue": 4}, ("blue",), id="one of whom is not"),
        pytest.param({"red": 61, "blue": 3, "green": 1}, ("green",), id="of whom nobody is"),
    ],
)
def test_a_teams_own_first_are_read(queued: dict[str, int], read: tuple[str, ...]) -> None:
    first = [*entries(61), *entries(3, "blue")]
    assert teams_to_read(first, queued) == read


@pytest.mark.parametrize(
    ("teams", "each", "rows"),
    [
        pytest.param(MANY_TEAMS, 1, HEADS * MANY_TEAMS, id="a few jobs of each of many teams"),
        pytest.param(MANY_TEAMS, HEADS, HEADS * MANY_TEAMS, id="as many as their heads"),
        pytest.param(MANY_TEAMS, HEADS + 1, 0, id="more wait than their heads are"),
        pytest.param(MANY_TEAMS - 1, 1, 0, id="few teams"),
    ],
)
def test_the_order_is_read_on_where_that_takes_no_more_rows_than_the_teams_own(
    teams: int, each: int, rows: int
) -> None:
    queued = {f"team-{number:03d}": each for number in range(teams)}
    assert order_to_read(tuple(queued), queued) == rows


def test_jobs_of_teams_that_are_known_count_against_it() -> None:
    unknown = {f"team-{number:03d}": 1 for number in range(MANY_TEAMS)}
    assert order_to_read(tuple(unknown), unknown | {"deep": HEADS * MANY_TEAMS}) == 0


def test_a_lane_that_an_entry_speaks_for_is_not_read_again() -> None:
    seen = entries(HEADS)
    assert lanes_to_read([its_lane(seen[0])], seen, now=NOON) == ()


def test_a_lane_of_which_only_a_few_were_seen_is_read_on_behind_them() -> None:
    seen = entries(3)
    known = its_lane(seen[0])
    (read,) = lanes_to_read([known], seen, now=NOON)
    assert read == LaneRead(lane=known, after=seen[2].rank, most=HEADS - 3)


def test_of_many_such_lanes_a_few_take_turns() -> None:
    seen = [entries(1, f"team-{number}")[0] for number in range(40)]
    known = [its_lane(one) for one in seen]
    read = Counter[str]()
    for minute in range(60):
        found = lanes_to_read(known, seen, now=NOON + minutes(minute))
        assert len(found) == MAX_SHORT
        read.update(one.lane.team for one in found)
    assert len(read) == 40


def test_half_of_the_lanes_are_those_with_the_first_heads() -> None:
    known = lanes(1500)
    for minute in range(5):
        found = lanes_to_read(reversed(known), (), now=NOON + minutes(minute))
        assert [one.lane for one in found[: MAX_LANES // 2]] == known[: MAX_LANES // 2]
        assert (len(found), len({one.lane for one in found})) == (MAX_LANES, MAX_LANES)
        assert {(one.after, one.most) for one in found} == {(None, HEADS)}


@pytest.mark.parametrize("count", [96, 200, 500])
def test_each_lane_is_read_within_three_rounds_at_most(count: int) -> None:
    known = lanes(count)
    turns = 3 * (count // (MAX_LANES // 2))
    for start in (0, 1000, 77_777):
        read = {
            one.lane
            for minute in range(start, start + turns)
            for one in lanes_to_read(known, (), now=NOON + minutes(minute))
        }
        assert read == set(known)


def test_nobody_can_choose_names_that_push_another_lane_out_of_its_turn() -> None:
    mine = LaneRow(team="blue", text="mine", head="9" * 17)
    crowd = lanes(400)
    read = [mine in [one.lane for one in lanes_to_read([*crowd, mine], (), now=at)] for at in of_an_hour()]
    assert sum(read) >= 2


def of_an_hour() -> list[datetime]:
    return [NOON + minutes(number) for number in range(60)]


def test_a_lane_text_that_is_too_long_for_keys_is_hashed() -> None:
    groups = [Shape(vector=of(number), subnet=f"subnet-{number:017d}") for number in range(1, 20)]
    assert len(lane(groups, Choice.FIRST_FIT)) == 32
    assert lane(groups, Choice.FIRST_FIT) != lane(groups[::-1], Choice.FIRST_FIT)
    assert lane(groups[:1], Choice.FIRST_FIT) == f"{A}=1@subnet-00000000000000001"
