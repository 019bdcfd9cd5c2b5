"""Means over steps: exact, also where something began or ended within a step."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.history.past_records import TimeMeans, WaitCount, Window, waiting_at
from trainmaster.core.jobs.instances import Capacity

from tests.builders import NOON, A, B, minutes

TEN = Window(since=NOON, until=NOON + minutes(10))
SPANS = st.lists(st.tuples(st.integers(-300, 900), st.integers(0, 900), st.integers(1, 9)), max_size=9)


def means(*spans: tuple[float, float | None, float], step: float = 5, window: Window = TEN) -> list[float]:
    """Of (began, ended, count), in minutes."""
    sums = TimeMeans(window=window, step=minutes(step))
    for began, ended, count in spans:
        end = None if ended is None else NOON + minutes(ended)
        sums.add("x", count, began=NOON + minutes(began), ended=end)
    return sums.means("x")


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        pytest.param([], [0, 0], id="nothing"),
        pytest.param([(0, None, 3)], [3, 3], id="all of it"),
        pytest.param([(-9, 99, 3)], [3, 3], id="longer than the period"),
        pytest.param([(1, 2, 5)], [1, 0], id="within a step"),
        pytest.param([(4, 6, 5)], [1, 1], id="over an edge"),
        pytest.param([(5, 10, 2)], [0, 2], id="a whole step"),
        pytest.param([(0, 5, 1), (2.5, 7.5, 2)], [2, 1], id="two at once"),
        pytest.param([(10, 20, 1), (-5, 0, 1), (3, 3, 1)], [0, 0], id="beside it, or for no time"),
    ],
)
def test_a_step_has_the_mean_of_its_time(
    spans: list[tuple[float, float | None, float]], expected: list[float]
) -> None:
    assert means(*spans) == expected


def test_a_last_step_that_is_shorter_has_the_mean_of_its_own_time() -> None:
    assert means((0, None, 2), (9, 10, 1), step=4) == [2, 2, 2.5]


@given(spans=SPANS, step=st.integers(60, 400))
def test_means_times_lengths_are_the_time_that_was_spent(
    spans: list[tuple[int, int, int]], step: int
) -> None:
    sums = TimeMeans(window=TEN, step=timedelta(seconds=step))
    spent = 0
    for began, lasted, count in spans:
        start = NOON + timedelta(seconds=began)
        sums.add("x", count, began=start, ended=start + timedelta(seconds=lasted))
        spent += count * max(min(began + lasted, 600) - max(began, 0), 0)
    lengths = [min(step, 600 - number * step) for number in range(sums.steps)]
    found = sum(mean * length for mean, length in zip(sums.means("x"), lengths, strict=True))
    assert found == pytest.approx(spent)


def test_who_waited_is_counted_back_from_who_waits() -> None:
    counts = [
        WaitCount(minute=NOON + minutes(at), team="vision", capacity=Capacity(kind), count=count)
        for at, kind, count in ((-1, A, 9), (0, A, 2), (3, A, 1), (5, A, -2), (6, B, -4))
    ]
    assert waiting_at(NOON, {Capacity(A): 5}, counts) == {Capacity(A): 6, Capacity(B): 4}
