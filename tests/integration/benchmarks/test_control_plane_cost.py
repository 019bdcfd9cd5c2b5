"""docs/guides/cost.md has the counts that its program finds, and money that follows from them."""

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks import control_plane_cost
from benchmarks.control_plane_bill import Unit, usd
from tests.markdown import table, text_of
from tests.template.stack import of_type, resources

PAGE = text_of("docs/guides/cost.md")
MINUTES_PER_MONTH = 43_800
WITHIN = 0.25
"""Of a count; a job sometimes ends a look earlier or later."""


def shown() -> dict[str, dict[str, Decimal]]:
    rows = table(PAGE, "of each", "idle minute", "busy minute", "job")
    columns = ("idle minute", "busy minute", "job")
    return {
        what: {row[0]: Decimal(row[number]) for row in rows} for number, what in enumerate(columns, start=1)
    }


def as_units(counts: Mapping[str, Decimal]) -> dict[Unit, Decimal]:
    return {Unit(name): count for name, count in counts.items()}


def test_the_money_follows_from_the_counts_and_prices() -> None:
    month, busy, million = (Decimal(row[1]) for row in table(PAGE, "", "USD"))
    counts = shown()
    assert month == round(usd(as_units(counts["idle minute"])) * MINUTES_PER_MONTH, 2)
    assert busy == round(usd(as_units(counts["busy minute"])) * MINUTES_PER_MONTH, 2)
    assert million == pytest.approx(usd(as_units(counts["job"])) * 1_000_000, abs=Decimal("0.1"))


def test_the_standing_costs_add_up() -> None:
    rows = table(PAGE, "", "count", "USD each", "USD a month")
    sums = {row[0]: Decimal(row[3].removeprefix("up to ")) for row in rows}
    assert next(iter(sums.values())) == Decimal(table(PAGE, "", "USD")[0][1])
    alarms = next(row for row in rows if row[0] == "alarms for the operator")
    assert int(alarms[1]) == len(of_type(resources(), "AWS::CloudWatch::Alarm"))
    for row in rows:
        if row[1]:
            assert Decimal(row[1]) * Decimal(row[2]) == sums[row[0]], row
    endpoint = next(count for name, count in sums.items() if "endpoint" in name)
    assert f"about {round(sum(sums.values()) - endpoint)} USD a month, and {round(endpoint)} more" in PAGE


@pytest.mark.long
def test_the_counts_are_those_that_the_program_finds(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert control_plane_cost.main(["--minutes", "15", "--jobs", "3", "--json", str(report)]) == 0
    found: Mapping[str, Mapping[str, Any]] = json.loads(report.read_text())["facts"]["counts"]
    for what, counts in shown().items():
        for unit, count in counts.items():
            assert found[what].get(unit, 0) == pytest.approx(float(count), rel=WITHIN, abs=0.5), (what, unit)
