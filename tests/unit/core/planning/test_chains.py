"""Passes in a row over one pool."""

from datetime import datetime, timedelta

import pytest
from trainmaster.core.planning.chains import GOES_ON_FOR, MOST_HOPS, Next, goes_on, what_next

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
    assert what_next(hops, until=until, unfinished=unfinished, failed=failed) is expected
