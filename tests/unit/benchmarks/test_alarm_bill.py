"""What the alarms of running jobs cost: docs/guides/cost.md shows it of the alarms that are made."""

from decimal import ROUND_HALF_UP, Decimal

import pytest
from trainmaster.core.monitoring.alarms import Alarm, alarms_of, wanted_of
from trainmaster.core.policy.governance import Idle, Utilization, Watch

from benchmarks.control_plane_bill import alarms_usd
from tests.builders import of
from tests.markdown import table, text_of

ONE_KIND = Watch(idle=Idle())
BOTH = Watch(idle=Idle(), utilization=Utilization())
DAYS_OF_A_MONTH = Decimal(730) / 24
ROWS = table(
    text_of("docs/guides/cost.md"),
    "hosts of a job",
    "alarms, one kind",
    "USD a month, one kind",
    "USD a month, both",
    "USD a day, both",
)


def made(hosts: int, watch: Watch) -> tuple[Alarm, ...]:
    return alarms_of("job1", wanted_of(of(hosts, "ml.p5.48xlarge"), watch), watch, stack="prod")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} hosts")
def test_the_guide_shows_what_the_alarms_cost_that_are_really_made(row: list[str]) -> None:
    hosts, count = int(row[0]), int(row[1])
    one, both, day = map(Decimal, row[2:])
    assert len(made(hosts, ONE_KIND)) == count
    assert (alarms_usd(made(hosts, ONE_KIND)), alarms_usd(made(hosts, BOTH))) == (one, both)
    assert day == (both / DAYS_OF_A_MONTH).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)


def test_an_alarm_is_billed_for_each_metric_that_it_reads_and_a_composite_beside_its_parts() -> None:
    metrics = Alarm(name="a", description="", acts=True, hosts=("h1", "h2", "h3"))
    composite = Alarm(name="b", description="", acts=True, rule='ALARM("a")')
    assert alarms_usd([metrics, composite]) == Decimal("0.80")
    assert alarms_usd([]) == 0
