"""How long the check waits for events: none at all is a verdict only after the longest wait of one."""

import pytest
from trainmaster_client.account_check.event_sink import is_awaited


@pytest.mark.parametrize(
    ("told", "waited", "awaited"),
    [
        pytest.param(set(), 11.0, True, id="none has come: the first may be as late as any"),
        pytest.param(set(), 359.0, True, id="none has come after nearly six minutes"),
        pytest.param(set(), 360.0, False, id="none has come after six minutes"),
        pytest.param({"x"}, 9.0, True, id="one has come: the other is given the pace's seconds"),
        pytest.param({"x"}, 10.0, False, id="one has come, the other is later than the pace allows"),
        pytest.param({"x", "y"}, 0.0, False, id="all have come"),
        pytest.param({"probe"}, 11.0, True, id="only one that is no trial has come"),
    ],
)
def test_the_first_end_is_waited_for_longer_than_the_others(
    told: set[str], waited: float, *, awaited: bool
) -> None:
    assert is_awaited({"x", "y"}, told, waited=waited, pace=10.0) is awaited


def test_nothing_is_awaited_where_no_job_has_ended() -> None:
    assert not is_awaited(set(), set(), waited=0.0, pace=10.0)
