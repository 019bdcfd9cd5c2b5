"""The tip at submission: a limit that is far too long, or that nobody chose, keeps a job from backfilling."""

from dataclasses import replace
from datetime import timedelta

import pytest
from trainmaster.core.planning.wait_reasons import QueuePosition
from trainmaster.core.policy import Order
from trainmaster.core.submission.run_time_tip import run_time_tip

from tests.builders import job, minutes, pool

DAY = timedelta(days=1)
BEHIND = QueuePosition.behind(3)


@pytest.mark.parametrize(
    ("limit", "predicted", "says"),
    [
        pytest.param(
            DAY, minutes(7), "it may run for 1d, and jobs like it train for about 7m", id="far longer"
        ),
        pytest.param(DAY, None, "it may run for 1d, the default", id="nobody chose it"),
        pytest.param(minutes(90), minutes(7), "it may run for 90m, and jobs like it", id="chosen, too long"),
        pytest.param(DAY, timedelta(hours=20), None, id="as long as jobs like it"),
        pytest.param(minutes(30), minutes(2), None, id="little to gain"),
        pytest.param(timedelta(hours=2), None, None, id="chosen, and nothing is known"),
    ],
)
def test_who_may_run_for_too_long_is_told_what_a_shorter_limit_is_worth(
    limit: timedelta, predicted: timedelta | None, says: str | None
) -> None:
    spec = replace(job("a").spec, max_runtime=limit, predicted=predicted)
    tip = run_time_tip(spec, pool(), BEHIND)
    assert (tip.message.startswith(says) if tip and says else tip) is (True if says else None)


def test_a_tip_is_worth_nothing_where_nobody_is_ahead_or_nothing_is_backfilled() -> None:
    spec = replace(job("a").spec, max_runtime=DAY, predicted=minutes(7))
    assert run_time_tip(spec, pool(), QueuePosition.behind(0)) is None
    assert run_time_tip(spec, replace(pool(), order=Order(backfill=False)), BEHIND) is None
