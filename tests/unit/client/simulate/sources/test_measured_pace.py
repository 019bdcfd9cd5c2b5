"""How long SageMaker took, measured from exported attempts; and what a replay makes of it."""

from datetime import timedelta
from pathlib import Path

from trainmaster.core.policy import parse_policy
from trainmaster_client.simulate.engine import replay
from trainmaster_client.simulate.past_jobs import Pace

from tests.unit.client.simulate.sources.test_exported_lines import at, attempt, history, line

POLICY = parse_policy({"version": 1, "pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 1}}]})
MINUTE = timedelta(minutes=1)


def test_without_any_attempt_the_simulators_own_numbers_stay(tmp_path: Path) -> None:
    assert history(tmp_path, line("a", end=None)).pace == Pace()


def test_start_up_restore_and_stops_are_medians_of_what_the_history_shows(tmp_path: Path) -> None:
    found = history(
        tmp_path,
        line(
            "a",
            attempt(0, 6, 36, "preemption", trained_seconds=27 * 60),
            attempt(50, 58, 90, "completed"),
            saves_checkpoints=True,
        ),
        line("b", attempt(100, 104, 110, "completed"), priority=9, submitted_at=at(30)),
        line("c", attempt(110, 110.5, 120, "completed", warm_start=True), submitted_at=at(40)),
    ).pace
    assert (found.cold_start, found.warm_start) == (6 * MINUTE, MINUTE / 2)
    assert (found.restore, found.stop) == (2 * MINUTE, 3 * MINUTE)


def test_a_stop_before_training_lasted_since_the_submission_of_who_started_then(tmp_path: Path) -> None:
    found = history(
        tmp_path,
        line("a", attempt(9, None, 10.5, "preemption"), attempt(60, 61, 70, "completed")),
        line("b", attempt(10.5, 12, 20, "completed"), priority=9, submitted_at=at(10)),
        line("c", attempt(200, 204, 210, "completed"), submitted_at=at(9.5)),
    ).pace
    assert found.early_stop == MINUTE / 2
    assert found.stop == Pace().stop, "it says nothing of stops while training"


def test_an_attempt_starts_stops_and_loses_as_the_same_one_did(tmp_path: Path) -> None:
    was = history(
        tmp_path,
        line(
            "low",
            attempt(0, 7, 32, "preemption", trained_seconds=23 * 60, lost_seconds=120),
            attempt(62, 64, 73, "completed"),
            saves_checkpoints=True,
            priority=1,
        ),
        line("high", attempt(32, 42, 62, "completed"), priority=9, submitted_at=at(30)),
    )
    found = replay(was, POLICY, label="the same")
    rows = {(one.job, one.attempt): one for one in found.attempts}
    assert rows["low", 0].train_s == 7 * 60
    assert (rows["low", 0].end_s, rows["low", 0].lost_s) == (32 * 60, 120)
    assert (rows["high", 0].start_s, rows["high", 0].train_s) == (32 * 60, 42 * 60)
    assert (rows["low", 1].start_s, rows["low", 1].train_s, rows["low", 1].end_s) == (3720, 3840, 73 * 60)


def test_a_job_that_waits_to_resume_when_the_history_is_read_needs_as_much_again(tmp_path: Path) -> None:
    (job,) = history(tmp_path, line("a", attempt(0, 4, 14, "preemption"), end=None)).jobs
    assert (job.end, job.trains_for) == ("completed", 20 * MINUTE)


def test_an_attempt_lost_no_more_than_was_trained_again_after_it(tmp_path: Path) -> None:
    was = history(
        tmp_path,
        line(
            "a",
            attempt(0, 1, 26, "service", trained_seconds=25 * 60, lost_seconds=900),
            attempt(27, 28, 38, "completed"),
            saves_checkpoints=True,
        ),
    )
    (job,) = was.jobs
    assert (job.attempts[0].lost, job.trains_for) == (10 * MINUTE, 25 * MINUTE)
    found = replay(was, POLICY, label="the same")
    assert [(one.attempt, one.end) for one in found.attempts] == [(0, "failed"), (1, "completed")]
