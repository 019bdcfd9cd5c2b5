"""For any record of a warm key, idle instances are kept exactly as long as that gains most."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.planning.warm_history import KeyStart, WarmHistory
from trainmaster.core.planning.warm_worth import DOUBT, HALF_LIFE, worth_of

from tests.builders import NOON

SECOND = timedelta(seconds=1)
HORIZON = timedelta(minutes=30)
EVERY = timedelta(hours=5)
"""Time between two ends: longer than a job is waited for, so that each end has its own start."""

gaps_of_ends = st.lists(st.none() | st.integers(1, 2400), max_size=15)
"""Seconds from each end to the next job, the newest first; None: no job came."""


def record(gaps: list[int | None], saves: int) -> WarmHistory:
    """Make the record of ends, the newest first, in which a warm start saves this many seconds."""
    ends = [NOON - (number + 1) * EVERY for number in range(len(gaps))]
    comings = [end + gap * SECOND for end, gap in zip(ends, gaps, strict=True) if gap is not None]
    return WarmHistory(
        starts=tuple(KeyStart(at=at, ready=at) for at in comings),
        ends=tuple(ends),
        cold=((saves + 20) * SECOND,),
        warm=(20 * SECOND,),
    )


def gain(gaps: list[int | None], saves: int, *, idle: int, until: int) -> float:
    """Return what it gains in instance-seconds to keep the instances until they have been idle this long."""
    gained = -DOUBT * (until - idle)
    for number, gap in enumerate(gaps):
        if gap is not None and gap <= idle:
            continue
        weight = 0.5 ** ((number + 1) * EVERY / HALF_LIFE)
        if gap is not None and gap <= until:
            gained += weight * (saves - (gap - idle))
        else:
            gained -= weight * (until - idle)
    return gained


@given(gaps=gaps_of_ends, saves=st.integers(0, 900), idle=st.integers(0, 1700))
def test_no_other_time_gains_more(gaps: list[int | None], saves: int, idle: int) -> None:
    worth = worth_of(record(gaps, saves), idle=idle * SECOND, horizon=HORIZON, now=NOON)
    kept_until = idle + worth.keep_for // SECOND
    gained = gain(gaps, saves, idle=idle, until=kept_until)
    ends = [gap for gap in gaps if gap is not None and idle < gap <= HORIZON // SECOND]
    best = max((gain(gaps, saves, idle=idle, until=until) for until in [idle, *ends, 1800]), default=0.0)
    assert abs(gained - best) < 1e-6
    assert gained > 0 or not worth.keep_for
    assert kept_until <= HORIZON // SECOND


@given(gaps=gaps_of_ends, idle=st.integers(0, 1700))
def test_nothing_is_kept_that_saves_nothing(gaps: list[int | None], idle: int) -> None:
    assert not worth_of(record(gaps, 0), idle=idle * SECOND, horizon=HORIZON, now=NOON).keep_for


@given(gaps=gaps_of_ends, saves=st.integers(0, 900))
def test_what_is_kept_goes_on_being_kept_until_then(gaps: list[int | None], saves: int) -> None:
    """What a pass decides the passes after it do not take back, as long as no job comes."""
    history = record(gaps, saves)
    kept = worth_of(history, idle=timedelta(), horizon=HORIZON, now=NOON).keep_for
    for share in (0.25, 0.5, 0.9):
        idle = kept * share // SECOND * SECOND
        if idle < kept:
            assert worth_of(history, idle=idle, horizon=HORIZON, now=NOON).keep_for >= kept - idle
