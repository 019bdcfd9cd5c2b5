"""How long idle instances are kept for a job that may come: what that saves against what it costs."""

from datetime import datetime, timedelta

import pytest
from trainmaster.core.planning.actions import KeepWarm, ReleaseWarm
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.planning.warm_history import (
    ASSUMED_WARM_SHARE,
    LATEST_STARTS,
    Gap,
    KeyStart,
    WarmHistory,
    WarmLesson,
)
from trainmaster.core.planning.warm_pools import Upkeep
from trainmaster.core.planning.warm_worth import HALF_LIFE, NOT_KNOWN, worth_of
from trainmaster.core.policy import WarmPool as WarmRules

from tests.builders import NOON, minutes, of

COLD = minutes(4) * ASSUMED_WARM_SHARE / (ASSUMED_WARM_SHARE - 1)
"""Start-up of which a warm start saves four minutes."""
HORIZON = minutes(30)


def ago(count: float) -> datetime:
    return NOON - minutes(count)


def history(*gaps: float | None, cold: timedelta | None = COLD, every: float = 60) -> WarmHistory:
    """Make the record of ends in turn, each with the minutes to the next job; None: none came."""
    ends = [ago(every * number) for number in range(len(gaps), 0, -1)]
    comings = [end + minutes(gap) for end, gap in zip(ends, gaps, strict=True) if gap is not None]
    return WarmHistory(
        starts=tuple(KeyStart(at=at, ready=at) for at in reversed(comings)),
        ends=tuple(reversed(ends)),
        cold=() if cold is None else (cold,),
    )


def keep_minutes(record: WarmHistory | None, *, idle: float = 0) -> float:
    return worth_of(record, idle=minutes(idle), horizon=HORIZON, now=NOON).keep_for / minutes(1)


# ---- what follows from the formula, by hand


@pytest.mark.parametrize(
    ("record", "idle", "kept"),
    [
        pytest.param(None, 0, 0, id="nothing is known of the key"),
        pytest.param(WarmHistory(), 0, 0, id="an empty record"),
        pytest.param(history(1, 1, 1, cold=None), 0, 0, id="no start-up is known, so nothing is saved"),
        pytest.param(history(1, 1, 1, cold=minutes(1)), 0, 0, id="a cold start is as quick as the job comes"),
        # gain(1) = 3 * (4 - 1) - 1 of doubt
        pytest.param(history(1, 1, 1), 0, 1, id="a job came within a minute each time"),
        # gain(3) = 3 * (4 - 3) - 3 = 0
        pytest.param(history(3, 3, 3), 0, 0, id="three minutes each save less than they cost"),
        pytest.param(history(3, 3, 3, 3), 0, 3, id="a fourth time makes up for the doubt"),
        pytest.param(history(5, 5, 5, 5, 5, 5), 0, 0, id="the wait costs more than a cold start"),
        # gain(1) = (4 - 1) - 2 - 1 = 0
        pytest.param(history(1, None, None), 0, 0, id="one in three"),
        # gain(1) = 2 * 3 - 2 * 1 - 1 = 3, gain(2) = 2 * 3 + 2 - 2 - 2 = 4
        pytest.param(history(1, 1, 2, None), 0, 2, id="the third job is worth waiting for as well"),
        # of the two that are left gain = 2 * (4 - 1) - 1
        pytest.param(history(1, 1, 6, 6), 5, 1, id="idle for longer than the first two waits"),
        pytest.param(history(1, 1, 1, 1), 2, 0, id="idle for longer than it ever took"),
        pytest.param(history(31, 31, 31, 31), 29, 0, id="later than instances are kept at all"),
    ],
)
def test_it_is_kept_for_as_long_as_gains_most(record: WarmHistory | None, idle: float, kept: float) -> None:
    assert keep_minutes(record, idle=idle) == kept


def test_old_gaps_count_less() -> None:
    recent = history(1, 1, *[None] * 5)
    assert keep_minutes(recent) == 0
    apart = HALF_LIFE / minutes(1)
    assert keep_minutes(history(*[None] * 5, 1, 1, every=apart)) == 1


def test_instances_that_cost_more_to_start_are_kept_for_longer() -> None:
    assert keep_minutes(history(10, 10, 10, 10, 10)) == 0
    assert keep_minutes(history(10, 10, 10, 10, 10, cold=minutes(40))) == 10


def test_without_a_record_it_says_so() -> None:
    assert NOT_KNOWN.text == "no job is known to come that can use it"


def test_one_that_has_been_idle_for_longer_than_it_ever_took_says_so() -> None:
    worth = worth_of(history(1, 1, 1), idle=minutes(2), horizon=HORIZON, now=NOON)
    assert worth.text == "after none of the last 3 ends did a job come so late"


def test_it_says_in_numbers_why_it_is_kept() -> None:
    worth = worth_of(history(1, 1, 2, None), idle=minutes(0), horizon=HORIZON, now=NOON)
    assert worth.text == (
        "after 3 of the last 4 ends that left such instances idle this long, a job came within 2m00s; "
        "a warm start saves 4m00s"
    )


def test_it_says_in_numbers_why_it_is_not_kept() -> None:
    worth = worth_of(history(9, 9, 2, None), idle=minutes(0), horizon=HORIZON, now=NOON)
    assert worth.text == (
        "after 1 of the last 4 ends that left such instances idle this long, a job came within 4m00s; "
        "a warm start saves 4m00s"
    )


# ---- which end a start belongs to


def gaps_of(ends: list[float], starts: list[tuple[float, float | None]]) -> list[tuple[float, bool]]:
    """Return minutes and whether a job came; ends and starts are in minutes ago, as ``(at, ready)``."""
    record = WarmHistory(
        starts=tuple(
            KeyStart(at=ago(at), ready=None if ready is None else ago(ready))
            for at, ready in reversed(starts)
        ),
        ends=tuple(ago(end) for end in reversed(ends)),
    )
    found = record.gaps(horizon=HORIZON, now=NOON)
    return [(gap.length / minutes(1), gap.is_over) for gap in found]


@pytest.mark.parametrize(
    ("ends", "starts", "expected"),
    [
        pytest.param([20], [(15, 15)], [(5, True)], id="the next job"),
        pytest.param([20], [(25, 25)], [(20, False)], id="a job before it is another's"),
        pytest.param([20], [(15, 16)], [(4, True)], id="it counts when the job came, not when it started"),
        pytest.param([20], [(20, 40)], [], id="a job that waited already: no question"),
        pytest.param([20], [(15, None)], [], id="a job that came back is no arrival"),
        pytest.param([20, 18], [(15, 15)], [(5, True), (18, False)], id="one job takes one pool, the older"),
        pytest.param([20, 18], [(15, 15), (14, 14)], [(5, True), (4, True)], id="two jobs take both in turn"),
        pytest.param([50], [(15, 15)], [(30, False)], id="too late: it would have been given up"),
        pytest.param([50, 20], [(15, 15)], [(30, False), (5, True)], id="that job is left for the next end"),
        pytest.param([3], [], [(3, False)], id="it is waited for still"),
        pytest.param([90], [], [(30, False)], id="nobody came in all the time that is looked at"),
    ],
)
def test_each_end_has_the_next_start_that_no_earlier_one_took(
    ends: list[float], starts: list[tuple[float, float | None]], expected: list[tuple[float, bool]]
) -> None:
    assert gaps_of(ends, starts) == expected


def test_an_end_whose_start_may_be_forgotten_tells_nothing() -> None:
    starts = [KeyStart(at=ago(number), ready=ago(number)) for number in range(1, LATEST_STARTS + 1)]
    record = WarmHistory(starts=tuple(starts), ends=(ago(8.5), ago(LATEST_STARTS + 5)))
    (gap,) = record.gaps(horizon=HORIZON, now=NOON)
    assert gap == Gap(ended_at=ago(8.5), length=minutes(0.5), is_over=True)


# ---- what a record keeps


def test_a_record_keeps_the_newest() -> None:
    record = WarmHistory()
    for number in range(40, 0, -1):
        record = record.after(WarmLesson(key="k", start=KeyStart(at=ago(number))))
        record = record.after(WarmLesson(key="k", ended_at=ago(number), startup=minutes(number)))
        record = record.after(WarmLesson(key="k", startup=minutes(1), is_warm=True))
    assert [start.at for start in record.starts] == [ago(number) for number in range(1, LATEST_STARTS + 1)]
    assert record.ends == tuple(ago(number) for number in range(1, LATEST_STARTS + 1))
    assert record.cold_startup == minutes(3), "the median of the last five"
    assert record.saved_by_start == minutes(2)


# ---- what becomes of a pool


POOL = WarmPool(
    training_job_name="left",
    team="default",
    vector=of(1),
    warm_key="k",
    since=ago(0),
    expires_at=NOON + minutes(10),
)
BY_WORTH = WarmRules(keep_alive=minutes(10), retain=None, max_idle=HORIZON)


def decided(
    record: WarmHistory | None, *, rules: WarmRules = BY_WORTH, pool: WarmPool = POOL, limited: bool = False
) -> object:
    upkeep = Upkeep(
        rules=rules,
        reused=frozenset(),
        released=frozenset(),
        wanted=frozenset(),
        limited=frozenset(pool.vector) if limited else frozenset(),
        histories={} if record is None else {"k": record},
        now=NOON,
    )
    actions = upkeep.actions([pool])
    return actions[0] if actions else None


def test_without_a_record_it_is_given_up_at_once() -> None:
    because = "no waiting job can use it: no job is known to come that can use it"
    assert decided(None) == ReleaseWarm(warm_pool=POOL, because=because)


def test_one_that_is_worth_it_stays() -> None:
    assert decided(history(1, 1, 1)) is None


def test_one_that_is_not_worth_it_any_more_is_given_up_with_the_numbers() -> None:
    action = decided(history(9, 9, 9))
    assert isinstance(action, ReleaseWarm)
    assert action.because.startswith("no waiting job can use it: after 0 of the last 3 ends")


def test_it_is_kept_for_longer_than_its_keep_alive_if_that_is_worth_it() -> None:
    ending = POOL.__class__(
        training_job_name="left",
        team="default",
        vector=of(1),
        warm_key="k",
        since=ago(9),
        expires_at=NOON + minutes(1),
    )
    action = decided(history(12, 12, 12, 12, cold=minutes(60)), pool=ending)
    assert action == KeepWarm(warm_pool=ending, until=NOON + minutes(3))


@pytest.mark.parametrize("record", [None, history(9, 9, 9)])
def test_what_the_policy_promises_is_kept_whatever_it_is_worth(record: WarmHistory | None) -> None:
    promised = WarmRules(keep_alive=minutes(10), retain=minutes(10), max_idle=HORIZON)
    assert decided(record, rules=promised) is None


def test_what_the_policy_bounds_is_given_up_whatever_it_is_worth() -> None:
    bounded = WarmRules(keep_alive=minutes(10), retain=minutes(0), max_idle=HORIZON)
    assert decided(history(1, 1, 1), rules=bounded) == ReleaseWarm(
        warm_pool=POOL, because="no waiting job can use it"
    )


def test_of_a_type_that_the_account_refuses_none_is_kept_for_nobody() -> None:
    assert isinstance(decided(history(1, 1, 1), limited=True), ReleaseWarm)
