"""What earlier runs of a program tell of the widths of an elastic job."""

from datetime import timedelta

import pytest
from trainmaster.core.durations.work_speeds import MeasuredRun, MeasuredWidths, WorkSpeed
from trainmaster.core.jobs.measured_runs import measured_widths

from tests.builders import NOON, A, B

OWN = "0a1b"


def run(
    width: int,
    per_second: float,
    shape: str = A,
    *,
    settings: str = OWN,
    unit: str = "tokens",
    days: float = 1,
) -> MeasuredRun:
    return MeasuredRun(
        shape=f"{shape}={width}",
        speed=WorkSpeed(unit=unit, per_1000_s=round(1000 * per_second)),
        ended_at=NOON - timedelta(days=days),
        settings=settings,
    )


def measured(*runs: MeasuredRun) -> MeasuredWidths | None:
    return measured_widths(runs, A, settings=OWN, now=NOON)


def test_each_width_has_the_usual_speed_of_its_runs_on_spot_or_not() -> None:
    found = measured(run(4, 30.0), run(2, 10.0), run(2, 12.0, f"{A}:spot"))
    assert found == MeasuredWidths(counts=(2, 4), per_1000_s=(11_000, 30_000), runs=3)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(run(2, 10.0), id="the same width"),
        pytest.param(run(4, 10.0, B), id="another type"),
        pytest.param(run(4, 10.0, unit="samples"), id="another unit"),
        pytest.param(run(4, 10.0, settings="ffff"), id="other hyperparameters"),
        pytest.param(run(4, 10.0, days=91), id="too long ago"),
    ],
)
def test_a_second_run_that_cannot_be_compared_is_no_second_width(other: MeasuredRun) -> None:
    assert measured(run(2, 9.0), other) is None
    assert measured() is None


def test_runs_of_other_hyperparameters_count_among_themselves_where_there_are_no_own() -> None:
    large = [run(1, 1.0, settings="ffff"), run(2, 1.5, settings="ffff"), run(4, 2.0, settings="ffff")]
    found = measured(run(1, 10.0), *large)
    assert found == MeasuredWidths(
        counts=(1, 2, 4), per_1000_s=(1000, 1500, 2000), runs=3, other_settings=True
    )
    found = measured(run(1, 10.0), run(8, 40.0), *large)
    assert found == MeasuredWidths(counts=(1, 8), per_1000_s=(10_000, 40_000), runs=2)
