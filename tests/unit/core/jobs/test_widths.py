"""Widths as people write them, and run time by width."""

from datetime import timedelta

import pytest
from trainmaster.core.jobs.elastic_state import (
    LONGEST_RUN,
    RunTimeLimits,
    TrainingProgress,
    at_largest,
    reported_progress,
    run_time_at,
)
from trainmaster.core.jobs.widths import MOST_WIDTHS, BadWidthsError, Widths, read_widths

from tests.builders import NOON

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "counts"),
    [("2-4", (2, 3, 4)), ("2-8:2", (2, 4, 6, 8)), ("2 4 8", (2, 4, 8)), ("1-64", tuple(range(1, 65)))],
)
def test_ranges_steps_and_lists_are_read(text: str, counts: tuple[int, ...]) -> None:
    widths = read_widths(text)
    assert (widths.counts, widths.least, widths.largest) == (counts, counts[0], counts[-1])


@pytest.mark.parametrize(
    "text",
    ["", "8-2", "0-4", "0 2", "2", "2-2", "2 2 4", "4 2", "2,4,8", "2-8:0", "2-9:2", " 2-8", "2-8 ", "-4",
     "a-b", "2..8", "1-1000000", f"1-{MOST_WIDTHS + 1}", "\u0662-8", "2-8:-1", "2  4"],
)  # fmt: skip
def test_a_text_that_names_no_widths_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadWidthsError) as caught:
        read_widths(text)
    assert any(character.isdigit() for character in caught.value.hint) or "step" in caught.value.hint


def test_run_time_at_a_width_is_what_is_left_in_instance_seconds() -> None:
    widths = Widths(counts=(1, 2, 4))
    left = [run_time_at(width, 10 * HOUR, widths) for width in widths.counts]
    assert left == [40 * HOUR, 20 * HOUR, 10 * HOUR]


def test_run_time_at_a_width_is_at_most_what_sagemaker_takes() -> None:
    assert run_time_at(1, timedelta(days=10), Widths(counts=(1, 4))) == LONGEST_RUN


def test_a_refused_run_time_leaves_only_shorter_ones() -> None:
    limits = RunTimeLimits().after_refusal(20 * HOUR)
    widths = Widths(counts=(1, 2, 3, 4))
    left = [run_time_at(width, 12 * HOUR, widths, limits) for width in widths.counts]
    assert left == [None, None, 16 * HOUR, 12 * HOUR]


def test_a_refused_run_time_is_cut_to_the_longest_that_was_granted() -> None:
    limits = RunTimeLimits().after_refusal(20 * HOUR).after_grant(16 * HOUR).after_grant(HOUR)
    assert run_time_at(1, 12 * HOUR, Widths(counts=(1, 4)), limits) == 16 * HOUR


def test_a_grant_as_long_as_the_refusal_ends_it() -> None:
    assert RunTimeLimits().after_refusal(HOUR).after_grant(HOUR) == RunTimeLimits(granted=HOUR)


def test_training_counts_as_if_at_the_largest_width() -> None:
    assert at_largest(2 * HOUR, 1, 4) == HOUR / 2


LINES = (
    "loading data",
    "metric step=10 steps=1000 width=4 loss=2.1 step_ms=90.0",
    "metric loss=2.0 width=4 step_ms=110.0 steps=1000 step=20",
    "metric step=x steps=1000",
    "metrics step=30",
)


def test_progress_and_speed_are_read_from_the_newest_lines() -> None:
    progress = reported_progress(LINES, None, width=4, at=NOON)
    assert progress == TrainingProgress(at=NOON, step=20, steps=1000, speeds={"4": 10_000})
    assert progress.speed_at(4) == 10
    assert progress.speed_at(2) is None
    assert progress.share_left == 0.98


def test_speeds_at_other_widths_stay_and_new_ones_are_mixed_in() -> None:
    known = TrainingProgress(at=NOON, step=20, steps=1000, speeds={"2": 5000, "4": 8000})
    line = "progress step=30 step_ms=100 width=4"
    progress = reported_progress([line], known, width=4, at=NOON)
    assert progress == TrainingProgress(at=NOON, step=30, steps=1000, speeds={"2": 5000, "4": 9000})


@pytest.mark.parametrize("lines", [(), ("hello",), ("metric loss=1",), ("metric step=" + "9" * 99,)])
def test_lines_that_say_nothing_change_nothing(lines: tuple[str, ...]) -> None:
    known = TrainingProgress(at=NOON, step=1)
    assert reported_progress(lines, known, width=4, at=NOON) == known
    assert reported_progress(lines, None, width=4, at=NOON) is None


@pytest.mark.parametrize(
    ("step", "steps", "done"), [(9, 10, False), (10, 10, True), (None, 10, False), (9, None, False)]
)
def test_a_job_is_done_with_its_last_step(step: int | None, steps: int | None, done: bool) -> None:  # noqa: FBT001
    assert TrainingProgress(at=NOON, step=step, steps=steps).is_done is done
