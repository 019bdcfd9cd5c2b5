"""Speed-ups by earlier runs, whatever those runs showed: bounded, consistent, and exact where measured."""

from math import isclose, log2
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.durations.work_speeds import MeasuredWidths
from trainmaster.core.planning.width_worth import PER_DOUBLING, measured_speed_up

WIDTHS = st.integers(min_value=1, max_value=2000)
SPEEDS = st.integers(min_value=1, max_value=10**15)
SLACK = 1e-9


@st.composite
def measures(draw: Any) -> MeasuredWidths:
    counts = sorted(draw(st.sets(WIDTHS, min_size=2, max_size=6)))
    speeds = draw(st.lists(SPEEDS, min_size=len(counts), max_size=len(counts)))
    return MeasuredWidths(counts=tuple(counts), per_1000_s=tuple(speeds), runs=len(counts))


@given(measures(), WIDTHS, WIDTHS)
def test_more_instances_are_never_slower_and_never_above_linear(
    measured: MeasuredWidths, one: int, other: int
) -> None:
    narrow, wide = sorted((one, other))
    speed_up = measured_speed_up(measured, narrow, wide)
    assert 1 - SLACK <= speed_up <= wide / narrow * (1 + SLACK)
    assert isclose(measured_speed_up(measured, wide, narrow), 1 / speed_up)


@given(measures(), WIDTHS, WIDTHS, WIDTHS)
def test_two_steps_make_the_speed_up_of_one(
    measured: MeasuredWidths, first: int, second: int, third: int
) -> None:
    steps = measured_speed_up(measured, first, second) * measured_speed_up(measured, second, third)
    assert isclose(steps, measured_speed_up(measured, first, third), rel_tol=1e-6)


@given(measures())
def test_between_measured_widths_it_is_the_measured_ratio_within_its_bounds(measured: MeasuredWidths) -> None:
    pairs = zip(measured.counts, measured.per_1000_s, strict=True)
    (width, before), (to, after), *_ = pairs
    bounded = min(max(after / before, 1.0), to / width)
    assert isclose(measured_speed_up(measured, width, to), bounded, rel_tol=1e-6)


@given(measures(), st.integers(min_value=1, max_value=10))
def test_beyond_the_measured_widths_it_is_never_above_the_usual(
    measured: MeasuredWidths, factor: int
) -> None:
    widest = measured.counts[-1]
    usual = PER_DOUBLING ** log2(factor)
    assert measured_speed_up(measured, widest, widest * factor) <= usual * (1 + SLACK)
