"""How long a job stops nobody after preemptions that did not help."""

from datetime import timedelta

from trainmaster.core.jobs.futile_preemptions import FutilePreemptions, after_another
from trainmaster.core.jobs.instances import Choice

from tests.builders import NOON, minutes, of


def test_the_wait_doubles_from_a_quarter_of_an_hour_to_four_hours() -> None:
    waits: list[timedelta] = []
    known: FutilePreemptions | None = None
    for _ in range(7):
        known = after_another(
            known, vector=of(4), choice=Choice.FIRST_FIT, ended_at=NOON, now=NOON + minutes(1)
        )
        waits.append(known.until - (NOON + minutes(1)))
    assert waits == [minutes(count) for count in (15, 30, 60, 120, 240, 240, 240)]
    assert known is not None
    assert (known.count, known.since) == (7, NOON)
