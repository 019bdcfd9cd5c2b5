"""What a refusal of the account teaches, about a type and about the job, and for how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.planning.account_limits import is_due, limit_after, refused_again
from trainmaster.core.planning.refusal_records import AccountLimit

from tests.builders import NOON, A, minutes, of, waiting


def known(refusals: int, limit: int = 7) -> AccountLimit:
    return AccountLimit(limit=limit, until=NOON, refusals=refusals)


@pytest.mark.parametrize(
    ("refusals", "most"),
    [
        pytest.param(1, 0.5, id="half a minute after the second job"),
        pytest.param(2, 1, id="a minute after the third"),
        pytest.param(3, 2, id="two"),
        pytest.param(5, 8, id="eight"),
        pytest.param(6, 15, id="fifteen at most"),
        pytest.param(400, 15, id="and no longer, however many are refused"),
    ],
)
def test_each_further_job_that_is_refused_doubles_the_wait_of_the_next(refusals: int, most: float) -> None:
    waits = []
    for number in range(50):
        learned = limit_after(known(refusals), refused=8, last_end=None, at=NOON, seed=f"job{number}")
        assert (learned.limit, learned.refusals) == (7, refusals + 1)
        waits.append((learned.until - NOON) / minutes(most))
    assert 0.5 <= min(waits) < 0.6, "jitter: from a half"
    assert 0.9 < max(waits) <= 1, "to the whole"


def test_after_the_first_refusal_another_job_may_tell_at_once_whether_it_was_the_type() -> None:
    learned = limit_after(None, refused=8, last_end=None, at=NOON, seed="job")
    assert learned == AccountLimit(limit=7, until=NOON, refusals=1)


@pytest.mark.parametrize(
    ("refused", "limit"),
    [
        pytest.param(5, 4, id="a smaller sum that was refused counts"),
        pytest.param(8, 7, id="the same one does"),
        pytest.param(20, 7, id="a larger one says nothing new"),
        pytest.param(0, 0, id="never below nothing"),
    ],
)
def test_the_smallest_sum_that_was_refused_is_the_limit(refused: int, limit: int) -> None:
    assert limit_after(known(1), refused=refused, last_end=None, at=NOON, seed="job").limit == limit


@pytest.mark.parametrize(
    ("ended", "soon"),
    [
        pytest.param(0, True, id="just now"),
        pytest.param(2.9, True, id="within three minutes"),
        pytest.param(3, False, id="three minutes ago"),
    ],
)
def test_a_lower_limit_right_after_an_end_says_little(ended: float, *, soon: bool) -> None:
    learned = limit_after(known(3), refused=4, last_end=NOON - minutes(ended), at=NOON, seed="job")
    expected = AccountLimit(limit=3, until=NOON + minutes(0.5), refusals=3)
    assert (learned == expected) is soon


@given(st.text(), st.integers(0, 20))
def test_the_jitter_can_be_repeated(seed: str, refusals: int) -> None:
    once, again = (
        limit_after(known(refusals), refused=1, last_end=None, at=NOON, seed=seed) for _ in range(2)
    )
    assert once == again


@pytest.mark.parametrize(("count", "most"), [(0, 1), (1, 2), (2, 4), (3, 8), (4, 15), (400, 15)])
def test_the_refused_job_waits_twice_as_long_each_time(count: int, most: float) -> None:
    waits = []
    for number in range(50):
        before = AccountRefusals(count=count) if count else None
        after = refused_again(before, held=of(3), soon=False, at=NOON, seed=f"job{number}")
        assert after.count == count + 1
        assert after.again_at is not None
        waits.append((after.again_at - NOON) / minutes(most))
    assert 0.5 <= min(waits) < 0.6
    assert 0.9 < max(waits) <= 1


def test_only_the_first_refusal_soon_after_an_end_is_short() -> None:
    first = refused_again(None, held=of(3), soon=True, at=NOON, seed="job")
    assert first.again_at == NOON + minutes(0.5)
    second = refused_again(first, held=of(5), soon=True, at=NOON, seed="job")
    assert second.again_at is not None
    assert second.again_at >= NOON + minutes(1)
    assert second.held == of(3), "the fewest it was refused at"


@pytest.mark.parametrize(
    ("held", "limit", "due"),
    [
        pytest.param(3, None, False, id="as much is held as when it was refused"),
        pytest.param(2, None, True, id="less is held: it is tried again at once"),
        pytest.param(2, 2, False, id="and yet it would go above what others were refused at"),
        pytest.param(2, 3, True, id="and not above that either"),
    ],
)
def test_a_refused_job_is_due_as_soon_as_less_is_held(held: int, limit: int | None, *, due: bool) -> None:
    refused = AccountRefusals(count=1, held=of(3), again_at=NOON + minutes(9))
    job = waiting("a", not_before=NOON + minutes(9), refused=refused)
    limits = {} if limit is None else {Capacity(A): known(1, limit)}
    assert is_due(job, held=of(held), limits=limits, now=NOON) is due
    assert is_due(job, held=of(3), limits=limits, now=NOON + minutes(9)), "at the latest after the back-off"


def test_a_job_that_backs_off_for_another_reason_waits_for_its_time() -> None:
    job = waiting("a", not_before=NOON + minutes(1))
    assert not is_due(job, held={}, limits={}, now=NOON)
