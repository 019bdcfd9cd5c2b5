"""When instances are expected to come free, in numbers that can be worked out by hand."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.expected_ends import ExpectedEnds, chances
from trainmaster.core.planning.snapshot import RunningJob

from tests.builders import NOON, B, minutes, of, running


def in_minutes(job: RunningJob) -> tuple[float, ...]:
    return tuple(round(one / 60, 6) for one in chances(job, now=NOON))


def wait(*live: RunningJob, needs: int = 1) -> float:
    return ExpectedEnds(running=live, now=NOON).wait(of(needs)) / minutes(1)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"predicted": minutes(50)}, (4, 20, 100), id="a fifth of what is left, that, and five times it"
        ),
        pytest.param({"predicted": minutes(20)}, (6, 30, 150), id="it outlasted that: as long again"),
        pytest.param({}, (42, 210, 1050), id="nothing is known: four hours in all"),
        pytest.param(
            {"training_since": None, "predicted": minutes(50)}, (10, 50, 250), id="it does not train yet"
        ),
        pytest.param(
            {"predicted": minutes(50), "ends_by": NOON + minutes(30)}, (4, 20, 30), id="its end is certain"
        ),
        pytest.param({"ends_by": NOON - minutes(1)}, (0, 0, 0), id="its end is overdue"),
    ],
)
def test_when_one_three_and_five_of_six_such_jobs_end(
    fields: dict[str, Any], expected: tuple[float, ...]
) -> None:
    assert in_minutes(running("r", **{"minutes_ago": 30} | fields)) == expected


def likely(name: str, left: float, n: int = 1, **fields: Any) -> RunningJob:
    return running(name, minutes_ago=0, predicted=minutes(left), n=n, **fields)


@pytest.mark.parametrize(
    ("live", "needs", "expected"),
    [
        pytest.param([likely("a", 100)], 1, 100, id="one job: its likely end"),
        pytest.param([likely("a", 100, n=3)], 1, 100, id="it gives all of its instances back at once"),
        pytest.param([likely("a", 100, n=3)], 3, 100, id="and as soon for all of them"),
        pytest.param([likely("a", 100), likely("b", 100)], 1, 20, id="one of two ends soon"),
        pytest.param([likely("a", 100), likely("b", 100)], 2, 500, id="both of two do not"),
        pytest.param([likely(f"r{n}", 100) for n in range(10)], 5, 100, id="half of ten in the likely time"),
        pytest.param([likely("a", 10), likely("b", 1000)], 1, 10, id="the shorter one"),
        pytest.param([likely("a", 100)], 4, 500, id="more than there are: until all have ended"),
        pytest.param([], 1, 0, id="nobody holds any"),
        pytest.param(
            [likely("a", 10, state=JobState.PREEMPTING), likely("b", 100)],
            1,
            100,
            id="who stops is not counted",
        ),
        pytest.param(
            [running("b", vector=of(1, B), minutes_ago=0, predicted=minutes(9))], 1, 0, id="another type"
        ),
    ],
)
def test_the_wait_until_as_likely_as_not_enough_is_free(
    live: list[RunningJob], needs: int, expected: float
) -> None:
    assert wait(*live, needs=needs) == expected


def test_what_those_ahead_take_comes_on_top() -> None:
    ends = ExpectedEnds(running=[likely("a", 10), likely("b", 100)], now=NOON)
    assert ends.wait(of()) == minutes(10)
    ends.goes_ahead(of())
    assert ends.wait(of()) == minutes(100)


def test_what_is_stopped_for_somebody_frees_nothing_for_others() -> None:
    live = [likely("a", 10), likely("b", 100), likely("c", 200)]
    ends, without = ExpectedEnds(running=live, now=NOON), ExpectedEnds(running=live[1:], now=NOON)
    ends.wait(of())
    ends.stopped(live[0])
    assert [ends.wait(of(n)) for n in (1, 2, 3)] == [without.wait(of(n)) for n in (1, 2, 3)]


def test_a_wait_is_the_longest_of_all_types_that_it_takes() -> None:
    live = [likely("a", 10), running("b", vector=of(1, B), minutes_ago=0, predicted=minutes(70))]
    assert ExpectedEnds(running=live, now=NOON).wait({**of(1), **of(1, B)}) == timedelta(minutes=70)
