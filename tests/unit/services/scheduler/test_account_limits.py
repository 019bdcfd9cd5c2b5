"""What a refusal of the account teaches, and for how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.planning.snapshot import AccountLimit
from trainmaster.services.scheduler.start_protocol import after_refusal

from tests.builders import NOON, minutes


def known(refusals: int) -> AccountLimit:
    return AccountLimit(limit=7, until=NOON, refusals=refusals)


@pytest.mark.parametrize(
    ("refusals", "most"),
    [
        pytest.param(0, 1, id="a minute after the first"),
        pytest.param(1, 2, id="two after the second"),
        pytest.param(2, 4, id="four"),
        pytest.param(3, 8, id="eight"),
        pytest.param(4, 15, id="fifteen at most"),
        pytest.param(400, 15, id="and no longer, however often it refuses"),
    ],
)
def test_each_refusal_in_a_row_doubles_the_wait(refusals: int, most: float) -> None:
    waits = []
    for number in range(50):
        earlier = known(refusals) if refusals else None
        learned = after_refusal(earlier, held=3, last_end=None, at=NOON, seed=f"job{number}")
        assert (learned.limit, learned.refusals) == (3, refusals + 1)
        waits.append((learned.until - NOON) / minutes(most))
    assert 0.5 <= min(waits) < 0.6, "jitter: from a half"
    assert 0.9 < max(waits) <= 1, "to the whole"


@pytest.mark.parametrize(
    ("ended", "soon"),
    [
        pytest.param(0, True, id="just now"),
        pytest.param(2.9, True, id="within three minutes"),
        pytest.param(3, False, id="three minutes ago"),
    ],
)
def test_the_first_refusal_after_an_end_says_little(ended: float, *, soon: bool) -> None:
    learned = after_refusal(None, held=3, last_end=NOON - minutes(ended), at=NOON, seed="job")
    expected = AccountLimit(limit=3, until=NOON + minutes(0.5), refusals=0)
    assert (learned == expected) is soon


def test_the_second_refusal_after_an_end_counts() -> None:
    first = after_refusal(None, held=3, last_end=NOON, at=NOON, seed="job")
    second = after_refusal(first, held=3, last_end=NOON, at=first.until, seed="job")
    assert second.refusals == 1
    assert minutes(0.5) <= second.until - first.until <= minutes(1)


@given(st.text(), st.integers(0, 20))
def test_the_jitter_can_be_repeated(seed: str, refusals: int) -> None:
    once, again = (
        after_refusal(known(refusals), held=0, last_end=None, at=NOON, seed=seed) for _ in range(2)
    )
    assert once == again
