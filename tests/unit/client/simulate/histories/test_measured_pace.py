"""How long SageMaker took, measured from exported attempts; and what a replay makes of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from trainmaster.core.policy import parse_policy
from trainmaster_client.simulate.engine.past_jobs import Pace
from trainmaster_client.simulate.io.replaying import replay

from tests.unit.client.simulate.sources.test_exported_lines import at, attempt, history, line

POLICY = parse_policy(
    {
        "version": 1,
        "pools": [
            {"name": "p5", "capacity": {"ml.p5.48xlarge": 1}, "warm_pool": {"keep_alive": "0s"}},
        ],
    }
)
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


@pytest.mark.parametrize("end", ["shrink", "grow"])
def test_a_stop_for_another_width_tells_how_long_stops_take(tmp_path: Path, end: str) -> None:
    wide = line(
        "a",
        attempt(0, 6, 36, end, trained_seconds=28 * 60, instances=4),
        attempt(36, 40, 90, "completed", instances=2),
        instances={"ml.p5.48xlarge": 4},
        elastic={"widths": [2, 4], "speeds": {}},
        saves_checkpoints=True,
    )
    assert history(tmp_path, wide).pace.stop == 2 * MINUTE


def test_an_hour_at_a_narrow_width_is_less_training_than_an_hour_at_the_largest(tmp_path: Path) -> None:
    def trains(width: int) -> timedelta:
        ran = attempt(0, 0, 60, "completed", instances=width)
        elastic = {"widths": [1, 2, 4], "speeds": {"1": 250, "4": 1000}}
        given = line("a", ran, instances={"ml.p5.48xlarge": 4}, elastic=elastic)
        (job,) = history(tmp_path, given).jobs
        return job.trains_for

    assert (trains(4), trains(1)) == (60 * MINUTE, 15 * MINUTE)


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


def test_an_upload_is_the_time_from_the_end_of_training_to_the_end(tmp_path: Path) -> None:
    found = history(
        tmp_path,
        line("a", attempt(0, 6, 36, "completed", trained_seconds=29.5 * 60)),
        line("b", attempt(40, 44, 50, "completed"), submitted_at=at(30)),
    )
    assert found.pace.upload == MINUTE / 2


@pytest.mark.parametrize(
    ("uploads_s", "starts_s"),
    [
        pytest.param(15, 28 * 60 + 55, id="when the other begins to upload"),
        pytest.param(0, 29 * 60, id="at the full minute"),
    ],
)
def test_the_upload_of_one_job_wakes_the_pass_that_starts_another(
    tmp_path: Path, uploads_s: int, starts_s: int
) -> None:
    trained_s = 28 * 60 + 55 + 15 - uploads_s - 4 * 60
    was = history(
        tmp_path,
        line("long", attempt(0, 4, 29 + 1 / 6, "completed", trained_seconds=trained_s)),
        line(
            "retried",
            attempt(20, 24, 28, "service", trained_seconds=4 * 60),
            attempt(29, 33, 40, "completed", trained_seconds=7 * 60 - uploads_s),
            submitted_at=at(20),
            entry_id="01M44SBGK022G96TAQQMEDN0RA",  # its first back-off is 51.1 s
        ),
    )
    two = parse_policy({"version": 1, "pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}]})
    starts = {(one.job, one.attempt): one.start_s for one in replay(was, two, label="as it was").attempts}
    assert starts["retried", 1] == starts_s


def preempted(name: str, trained: float, lost: float, **fields: Any) -> dict[str, Any]:
    """A job that was stopped after so many minutes and trained for ten more."""
    return line(
        name,
        attempt(0, 4, 5 + trained, "preemption", trained_seconds=trained * 60, lost_seconds=lost * 60),
        attempt(200, 204, 214, "completed", trained_seconds=600),
        saves_checkpoints=True,
        **fields,
    )


def test_programs_of_a_team_save_alike_and_lose_what_they_trained_since(tmp_path: Path) -> None:
    """Checkpoints are looked at every five minutes: a loss is too large, or 0 where none was seen."""
    found = history(
        tmp_path,
        preempted("a", 9, 4),
        preempted("b", 26, 1),
        preempted("none-was-seen", 7, 0),
        preempted("a-newer-one-was-there", 14, 9),
    )
    assert [job.saves_every for job in found.jobs] == [5 * MINUTE] * 4
    lost = {job.name: job.attempts[0].lost / MINUTE for job in found.jobs}
    assert lost == {"a": 4, "b": 1, "none-was-seen": 2, "a-newer-one-was-there": 4}


def test_programs_that_save_at_any_time_lose_what_is_exported(tmp_path: Path) -> None:
    found = history(tmp_path, preempted("a", 9.7, 4), preempted("b", 26, 1.3), preempted("c", 40, 3.1))
    assert [job.attempts[0].lost / MINUTE for job in found.jobs] == [4, 1.3, 3.1]


def test_a_spot_attempt_gets_other_instances_as_fast_as_it_did(tmp_path: Path) -> None:
    """Of 20 minutes from Training to the end it trained 15, and nothing says that it uploaded."""
    ran = attempt(0, 3, 23, "completed", trained_seconds=15 * 60, interruptions=1)
    was = history(tmp_path, line("a", ran, capacity_type="spot", saves_checkpoints=True))
    assert was.jobs[0].attempts[0].interrupted_for == 5 * MINUTE
    assert was.pace.replaced == 2 * MINUTE, "its start-up of 3 minutes comes on top"
    spot = {"name": "p5", "capacity": {}, "spot_capacity": {"ml.p5.48xlarge": 1}}
    (found,) = replay(was, parse_policy({"version": 1, "pools": [spot]}), label="as it was").attempts
    assert found.end == "completed"
    assert abs(found.end_s - 23 * 60) <= 60, "but for what it trained again after its last checkpoint"


def test_an_attempt_breaks_off_after_as_much_training_as_the_same_one(tmp_path: Path) -> None:
    """The one before it was stopped after 5 minutes then, and is not stopped without the other job."""
    was = history(
        tmp_path,
        line("a", attempt(0, 4, 15, "service", trained_seconds=11 * 60), attempt(16, 20, 30, "completed")),
    )
    first, _ = replay(was, POLICY, label="as it was").attempts
    assert (first.end, first.end_s) == ("failed", 15 * 60)


def test_news_of_a_start_up_wakes_passes(tmp_path: Path) -> None:
    """A preemption that becomes possible between two minutes is decided at the next of them."""
    rules = {"preemption": {"min_runtime": "2m", "min_priority_gap": 1}}
    pool = {"name": "p5", "capacity": {"ml.p5.48xlarge": 2}} | rules
    was = history(
        tmp_path,
        line("victim", attempt(0, 4.25, 60, "completed")),
        line("beside", attempt(5.75, 7, 60, "completed"), priority=9, submitted_at=at(5.75)),
        line("urgent", attempt(7, 9, 20, "completed"), priority=9, submitted_at=at(5.8)),
    )
    assert was.pace.startup_news
    found = replay(was, parse_policy({"version": 1, "pools": [pool]}), label="as it was").attempts
    (stopped,) = [one for one in found if one.end == "preempted"]
    asked_s = stopped.end_s - stopped.stopping_s
    assert 6 * 60 < asked_s < 7 * 60, "after two minutes of training, before the next minute is full"
