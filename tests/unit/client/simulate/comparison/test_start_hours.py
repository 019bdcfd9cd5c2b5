import math
from datetime import timedelta

from trainmaster_client.simulate.comparison.start_hours import start_hours

from tests.unit.client.simulate.hand_made import BEGINS


def test_waits_are_grouped_by_the_hour_of_the_week_and_those_without_end_are_counted() -> None:
    week = timedelta(days=7)
    answers = [
        (BEGINS, timedelta(minutes=5)),
        (BEGINS + week, timedelta(minutes=9)),
        (BEGINS + timedelta(hours=25), None),
    ]
    found = start_hours(answers, label="p")
    assert (found.asked, found.never, found.p50_s, found.p90_s) == (3, 1, 540.0, math.inf)
    assert (found.by_hour[0], found.by_hour[1], found.by_hour[25]) == (540.0, None, math.inf)
    assert list(found.waits) == [300.0, 540.0, None]
    assert found.longest_s == 540.0
