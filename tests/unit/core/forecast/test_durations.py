"""How long the jobs of a forecast train."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.durations.histogram import bucket
from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.forecast.durations import Durations, saved_by
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.widths import Widths

from tests.builders import NOON, A, minutes, of, running, waiting

DAY = timedelta(days=1)
SHORT = RunTimes(
    last=minutes(10), previous=minutes(10), since=NOON, counts={bucket(DAY): {bucket(minutes(10)): 4}}
)
KNOWN = {("default", f"{A}=1"): SHORT}
NEW = waiting("new", runs_at_most=DAY)


def test_jobs_that_still_run_are_evidence_that_jobs_are_long() -> None:
    """Nothing but ten-minute jobs has ended, and twenty have trained for hours."""
    old = [running(f"old-{number}", minutes_ago=300, runs_at_most=DAY) for number in range(20)]
    assert Durations.of(KNOWN, (), (), now=NOON).of_waiting(NEW, NEW.shapes[0], 0.5) < minutes(13)
    assert Durations.of(KNOWN, old, (), now=NOON).of_waiting(NEW, NEW.shapes[0], 0.5) > minutes(300)


def test_stopped_jobs_that_wait_are_evidence_too() -> None:
    stopped = [waiting(f"old-{number}", runs_at_most=DAY, trained=minutes(300)) for number in range(20)]
    assert Durations.of(KNOWN, (), stopped, now=NOON).of_waiting(NEW, NEW.shapes[0], 0.5) > minutes(300)


def test_another_team_is_taken_to_be_like_the_rest_of_the_pool() -> None:
    stranger = waiting("new", team="vision", runs_at_most=DAY)
    assert (
        minutes(8)
        < Durations.of(KNOWN, (), (), now=NOON).of_waiting(stranger, stranger.shapes[0], 0.5)
        < minutes(13)
    )


def test_no_job_trains_longer_than_it_may() -> None:
    job = waiting("new", runs_at_most=minutes(5))
    assert Durations.of(KNOWN, (), (), now=NOON).of_waiting(job, job.shapes[0], 0.5) == minutes(5)


def test_a_job_that_has_outlived_all_others_may_go_on_up_to_its_limit() -> None:
    job = running("old", minutes_ago=600, runs_at_most=minutes(1000))
    durations = Durations.of(KNOWN, (), (), now=NOON)
    assert durations.of_running(job, 0.5, now=NOON) == minutes(800)


def test_what_its_own_program_took_counts_as_much_as_what_the_team_s_jobs_took() -> None:
    like_it = LikelyLengths(lengths=(minutes(90),) * 10)
    durations = Durations.of(KNOWN, (), (), now=NOON)
    own, others = replace(NEW, likely=like_it), NEW
    assert durations.of_waiting(own, own.shapes[0], 0.25) < minutes(13)
    assert minutes(60) < durations.of_waiting(own, own.shapes[0], 0.75) < minutes(100)
    assert durations.of_waiting(others, others.shapes[0], 0.75) < minutes(13)
    runs = running("own", minutes_ago=30, runs_at_most=DAY, likely=like_it)
    assert minutes(60) < durations.of_running(runs, 0.1, now=NOON) < minutes(100)


def test_an_elastic_job_is_like_those_of_its_widths_whatever_is_left_of_them() -> None:
    """Ten-minute jobs at the largest width have ended; others of the pool took hours."""
    widths = Widths(counts=(1, 2, 4))
    lane = f"{A}=4>{A}=2>{A}=1"
    hours = replace(SHORT, counts={bucket(DAY): {bucket(minutes(600)): 4}})
    known = {("default", lane): replace(SHORT, counts={bucket(DAY): {bucket(minutes(10)): 400}})}
    durations = Durations.of(known | {("vision", f"{A}=1"): hours}, (), (), now=NOON)
    narrowed = waiting("new", runs_at_most=DAY, shapes=(Shape(vector=of(2)), Shape(vector=of(1))))
    elastic = replace(narrowed, widths=widths)
    at_four, at_one = (durations.of_waiting(elastic, Shape(vector=of(width)), 0.5) for width in (4, 1))
    assert minutes(8) < at_four < minutes(13)
    assert at_one == 4 * at_four
    half = running("runs", minutes_ago=2, vector=of(2), widths=widths, runs_at_most=2 * DAY)
    assert minutes(16) < durations.of_running(half, 0.5, now=NOON) < minutes(26)


def test_where_no_job_has_ended_in_its_shape_those_of_its_kind_say_how_long() -> None:
    own = replace(NEW, likely=LikelyLengths(lengths=(minutes(90),) * 10))
    assert minutes(60) < Durations.of({}, (), (), now=NOON).of_waiting(own, own.shapes[0], 0.5) < minutes(100)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"has_checkpoint": False}, 0, id="no checkpoints: nothing"),
        pytest.param({"last_checkpoint": NOON - minutes(5)}, 55, id="up to the one somebody saw"),
        pytest.param({}, 45, id="none seen: all but half the usual time between two"),
        pytest.param({"training_since": None}, 0, id="not yet training"),
    ],
)
def test_a_stop_leaves_what_is_in_checkpoints(fields: dict[str, Any], expected: float) -> None:
    assert saved_by(running("one", minutes_ago=60, **fields), stopped=NOON) == minutes(expected)
