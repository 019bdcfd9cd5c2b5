"""Which lanes a pass looks at when there are more than it can."""

from datetime import datetime

import pytest
from trainmaster.core.jobs.instances import Vector
from trainmaster.core.planning.candidates import MAX_LANES, Lane, chosen_lanes

from tests.builders import NOON, A, minutes, of


def lanes(count: int, text: str = f"{A}=1") -> list[Lane]:
    """One of each team."""
    return [Lane(team=f"{text}-{number:03d}", text=text, waiting=1) for number in range(count)]


def seen(all_lanes: list[Lane], free: Vector, *, passes: int) -> set[Lane]:
    """What passes a minute apart look at."""
    found: set[Lane] = set()
    for minute in range(passes):
        chosen = chosen_lanes(all_lanes, free=free, now=NOON + minutes(minute))
        assert len(chosen) <= MAX_LANES
        assert len(set(chosen)) == len(chosen)
        found |= set(chosen)
    return found


def test_a_pass_looks_at_every_lane_as_long_as_there_are_few() -> None:
    few = lanes(64)
    assert chosen_lanes(reversed(few), free={}, now=NOON) == tuple(few)


def test_lanes_with_something_free_go_first() -> None:
    full, roomy = lanes(70, f"{A}=2"), lanes(10, f"{A}=1")
    chosen = chosen_lanes([*full, *roomy], free=of(1), now=NOON)
    assert set(roomy) < set(chosen)
    assert len(chosen) == 64


@pytest.mark.parametrize(
    ("text", "promising"),
    [
        pytest.param(f"{A}=1", True, id="as much is free"),
        pytest.param(f"{A}=2", False, id="more than is free"),
        pytest.param(f"{A}:spot=1", False, id="spot is counted apart"),
        pytest.param(f"{A}=2>{A}=1", True, id="one of its alternatives fits"),
        pytest.param(f"{A}=2|{A}=1", True, id="one of its preferences fits"),
        pytest.param(f"{A}=1@subnet-1", True, id="bound to a subnet"),
        pytest.param("0f0e0d0c0b0a09080706050403020100", True, id="a digest might"),
    ],
)
def test_what_is_promising(text: str, *, promising: bool) -> None:
    lane = Lane(team="x", text=text, waiting=1)
    crowd = [*lanes(60, f"{A}=1"), *lanes(900, f"{A}=3")]
    hits = sum(lane in chosen_lanes([*crowd, lane], free=of(1), now=at) for at in minute_by_minute(5))
    assert (hits == 5) is promising


def minute_by_minute(count: int) -> list[datetime]:
    return [NOON + minutes(number) for number in range(count)]


@pytest.mark.parametrize(
    ("roomy", "full", "passes"),
    [
        pytest.param(200, 0, 4, id="more promising ones than a pass takes"),
        pytest.param(0, 200, 4, id="more of the others"),
        pytest.param(60, 30, 8, id="a few of the others beside many promising ones"),
    ],
)
def test_each_lane_gets_its_look(roomy: int, full: int, passes: int) -> None:
    everything = [*lanes(roomy, f"{A}=1"), *lanes(full, f"{A}=2")]
    assert seen(everything, of(1), passes=passes) == set(everything)
