"""What a growth is worth by the speeds of earlier runs of a program."""

from datetime import timedelta
from math import log2
from typing import Any

import pytest
from trainmaster.core.durations.work_speeds import MeasuredWidths
from trainmaster.core.jobs.elastic_state import TrainingProgress
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob
from trainmaster.core.planning.width_worth import PER_DOUBLING, speed_up, width_worth

from tests.builders import NOON, of, running

MEASURED = MeasuredWidths(counts=(2, 4), per_1000_s=(10_000, 12_000), runs=5)
COUNTS = (2, 4, 8)


def elastic(measured: MeasuredWidths | None, **fields: Any) -> RunningJob:
    """A job that has trained at 2 instances for no time, and has 8 hours left there."""
    values: dict[str, Any] = {
        "vector": of(2),
        "widths": Widths(counts=COUNTS, measured=measured),
        "expected": ExpectedRun(predicted=timedelta(hours=2)),
        "training_since": NOON,
        "minutes_ago": 5,
    }
    return running("wide", **values | fields)


def test_without_measures_each_doubling_is_as_usual() -> None:
    assert speed_up(None, 2, 8) == pytest.approx(PER_DOUBLING**2)
    assert width_worth(elastic(None), 4, now=NOON).learned_from is None


def test_measured_widths_decide_instead_of_the_usual_speed_up() -> None:
    usual, learned = (width_worth(elastic(known), 4, now=NOON) for known in (None, MEASURED))
    assert usual.saved - learned.saved == pytest.approx(
        timedelta(hours=8) * (1 / 1.2 - 1 / PER_DOUBLING), abs=timedelta(seconds=1)
    )


def test_the_words_name_the_runs_that_decide() -> None:
    assert width_worth(elastic(MEASURED), 4, now=NOON).text == (
        "2 of 8 instances; growing to 4 would save 1 h 12 min of 8 h,"
        " by the speeds of 5 runs of its program with 2 to 4 instances"
    )
    other = MeasuredWidths(counts=(2, 4), per_1000_s=(1, 2), runs=3, other_settings=True)
    assert "3 runs of its program with other hyperparameters" in width_worth(elastic(other), 4, now=NOON).text


def test_its_own_speeds_at_both_widths_come_first() -> None:
    own = TrainingProgress(at=NOON, speeds={"2": 100, "4": 190})
    worth = width_worth(elastic(MEASURED, progress=own), 4, now=NOON)
    assert (speed_up(own, 2, 4, MEASURED), worth.learned_from) == (1.9, None)
    assert speed_up(own, 2, 8, MEASURED) == speed_up(None, 2, 8, MEASURED)


def test_beyond_the_measured_widths_the_lesser_of_both_holds() -> None:
    assert speed_up(None, 4, 8, MEASURED) == pytest.approx(1.2)
    steep = MeasuredWidths(counts=(2, 4), per_1000_s=(10_000, 20_000), runs=2)
    assert speed_up(None, 4, 8, steep) == pytest.approx(PER_DOUBLING)
    assert speed_up(None, 2, 3, steep) == pytest.approx(2 ** log2(3 / 2))


@pytest.mark.parametrize("speeds", [(), (5,), (0, 0), (0, 7)], ids=str)
def test_stored_speeds_that_make_no_sense_are_as_none(speeds: tuple[int, ...]) -> None:
    broken = MeasuredWidths(counts=(2, 4), per_1000_s=speeds, runs=2)
    assert speed_up(None, 2, 4, broken) == pytest.approx(PER_DOUBLING)
