"""Passes in a row over one pool."""

from datetime import datetime, timedelta

import pytest
from trainmaster.core.planning.chains import GOES_ON_FOR, MOST_HOPS, Next, goes_on, hops_of_next, what_next

from tests.builders import NOON

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        pytest.param(None, False, id="nobody said so"),
        pytest.param(NOON + SECOND, True, id="until in a second"),
        pytest.param(NOON, False, id="until now"),
        pytest.param(NOON + GOES_ON_FOR, True, id="since now"),
        pytest.param(NOON + timedelta(days=1), False, id="for longer than anybody says"),
    ],
)
def test_a_pool_is_left_to_others_for_a_time(until: datetime | None, *, expected: bool) -> None:
    assert goes_on(until, now=NOON) is expected


@pytest.mark.parametrize(
    ("hops", "until", "unfinished", "failed", "expected"),
    [
        pytest.param(0, None, False, False, Next.NOTHING, id="a pass that finishes"),
        pytest.param(0, None, True, False, Next.ONE_MORE, id="a pass that does not"),
        pytest.param(0, NOON, False, False, Next.NOTHING, id="one behind a chain that never came to its end"),
        pytest.param(3, NOON, True, False, Next.ONE_MORE, id="a chain that goes on"),
        pytest.param(3, NOON, False, False, Next.LAST_LOOK, id="the end of a chain"),
        pytest.param(3, None, False, False, Next.NOTHING, id="the end of one that nobody left anything to"),
        pytest.param(3, NOON, True, True, Next.MINUTE, id="a failure in a chain"),
        pytest.param(0, None, True, True, Next.NOTHING, id="a failure, whose wake-up comes again"),
        pytest.param(MOST_HOPS - 1, NOON, True, False, Next.ONE_MORE, id="the fiftieth is asked for"),
        pytest.param(MOST_HOPS, NOON, True, False, Next.MINUTE, id="the fiftieth asks for none"),
        pytest.param(MOST_HOPS, None, True, False, Next.NOTHING, id="the fiftieth of the release before"),
    ],
)
def test_what_a_pass_leaves_behind(
    hops: int, until: datetime | None, *, unfinished: bool, failed: bool, expected: Next
) -> None:
    assert what_next(hops, until=until, unfinished=unfinished, failed=failed, did_something=False) is expected


def test_a_chain_that_does_something_never_comes_to_its_fiftieth_pass() -> None:
    hops = 1
    for _ in range(3 * MOST_HOPS):
        comes = what_next(hops, until=NOON, unfinished=True, failed=False, did_something=True)
        assert comes is Next.ONE_MORE
        hops = hops_of_next(hops, did_something=True)
    assert hops == 1


def test_whoever_did_something_once_has_fifty_passes_again() -> None:
    assert hops_of_next(MOST_HOPS, did_something=True) == 1
    assert (
        what_next(MOST_HOPS, until=NOON, unfinished=True, failed=False, did_something=True) is Next.ONE_MORE
    )
    assert hops_of_next(1, did_something=False) == 2
