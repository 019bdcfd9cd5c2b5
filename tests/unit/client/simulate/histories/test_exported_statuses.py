"""What the secondary statuses of exported attempts, their checkpoints and their histograms make of jobs."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.errors import MalformedHistoryError
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.recorded import recorded

from tests.unit.client.simulate.sources.test_exported_lines import at, attempt, history, line, minutes, only


def seen(*statuses: tuple[str, float]) -> dict[str, Any]:
    """By minutes after noon."""
    return {"statuses": [{"status": status, "at": at(when)} for status, when in statuses]}


INTERRUPTED = seen(
    ("Starting", 0),
    ("Downloading", 3),
    ("Training", 4),
    ("Interrupted", 33),
    ("Restarting", 36),
    ("Training", 40),
    ("Uploading", 50),
    ("Completed", 51),
)


def test_the_last_upload_is_part_of_how_long_an_interrupted_job_trains(tmp_path: Path) -> None:
    tried = attempt(0, 4, 51, "completed", interruptions=1, trained_seconds=2400, **INTERRUPTED)
    job = only(tmp_path, line("a", tried, capacity_type="spot", saves_checkpoints=True))
    assert job.breaks[0].after == minutes(29)
    assert job.attempts[0].trains_again(0) == minutes(7)
    assert (job.trains_for, job.breaks[0].lost) == (minutes(29), minutes(11)), "not more than came after it"


def test_the_time_of_training_is_exact_where_statuses_tell_it(tmp_path: Path) -> None:
    told = seen(("Starting", 0), ("Training", 4), ("Stopping", 9.0125), ("Stopped", 10))
    tried = attempt(0, 4, 10, "stopped-by-user", trained_seconds=300, **told)
    job = only(tmp_path, line("a", tried, end="stopped-by-user", ended_at=at(10)))
    assert job.trains_for == timedelta(minutes=5, milliseconds=750)
    assert job.attempts[0].stopped_in == timedelta(seconds=59, milliseconds=250)


def test_who_is_asked_to_stop_while_it_uploads_was_not_stopped(tmp_path: Path) -> None:
    told = seen(("Starting", 0), ("Training", 4), ("Uploading", 9), ("Stopping", 9.5), ("Completed", 10))
    job = only(tmp_path, line("a", attempt(0, 4, 10, "completed", trained_seconds=300, **told)))
    assert job.trains_for == minutes(6)
    assert job.attempts[0].began("Stopping") is None


def test_a_user_who_stops_an_attempt_that_starts_up_asked_before_it_ended(tmp_path: Path) -> None:
    told = seen(("Starting", 2), ("Stopping", 3), ("Stopped", 4))
    tried = attempt(2, None, 4, "stopped-by-user", **told)
    job = only(tmp_path, line("a", tried, end="stopped-by-user", ended_at=at(4)))
    assert job.withdrawn_after == minutes(3)


@pytest.mark.parametrize(
    "later",
    [
        pytest.param((), id="while it waits to resume"),
        pytest.param((attempt(50, 54, 60, "stopped-by-user"),), id="in a later attempt"),
    ],
)
def test_a_user_stops_a_job_that_came_back_after_as_long(
    tmp_path: Path, later: tuple[dict[str, Any], ...]
) -> None:
    tried = attempt(0, 4, 34, "preemption", lost_seconds=600)
    job = only(tmp_path, line("a", tried, *later, end="stopped-by-user", ended_at=at(60)))
    assert (job.withdrawn_after, job.trains_for) == (minutes(60), minutes(0))


def test_checkpoints_that_were_seen_tell_how_often_a_team_saves_in_round_numbers(tmp_path: Path) -> None:
    lines = [
        line(name, attempt(0, 4, 90, "completed", checkpoint_at=at(seen_at)), saves_checkpoints=True)
        for name, seen_at in (("a", 4 + 19.99), ("b", 4 + 39.98), ("c", 4 + 29.99))
    ]
    assert {job.saves_every for job in history(tmp_path, *lines).jobs} == {minutes(10)}


def test_a_loss_is_that_since_the_last_save_where_the_team_tells_how_often_it_saves(tmp_path: Path) -> None:
    told = seen(("Starting", 0), ("Training", 4), ("Stopping", 28.55), ("Stopped", 29))
    stopped = attempt(0, 4, 29, "preemption", lost_seconds=272, checkpoint_at=at(24), **told)
    again = attempt(30, 34, 90, "completed")
    others = [
        line(name, attempt(0, 4, 90, "completed", checkpoint_at=at(4 + saved)), saves_checkpoints=True)
        for name, saved in (("b", 40), ("c", 30))
    ]
    jobs = history(tmp_path, line("a", stopped, again, saves_checkpoints=True), *others).jobs
    assert jobs[0].attempts[0].lost == timedelta(minutes=4, seconds=33), "272 s are cut off"


def test_what_a_job_counts_in_and_can_reuse_is_taken_as_exported(tmp_path: Path) -> None:
    more = {"learned_in": ["p0a1", "t3fc"], "warm_key": "8223f31b", "max_wait_seconds": 7200}
    job = only(tmp_path, line("a", attempt(0, 4, 34, "completed"), **more))
    assert (job.learned_in, job.warm_key, job.max_wait) == (("p0a1", "t3fc"), "8223f31b", minutes(120))


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        pytest.param({"learned_in": "p0a1"}, "learned_in", id="no list"),
        pytest.param({"learned_in": [1]}, "learned_in", id="a number"),
        pytest.param({"warm_key": 1}, "warm_key", id="no text"),
        pytest.param({"after": [{"when": "aftr", "entry_id": "e"}]}, "after[0].when", id="no condition"),
        pytest.param({"after": [{"when": "afterok"}]}, "after[0].entry_id", id="a condition on nobody"),
    ],
)
def test_a_wrong_one_is_refused_by_name(tmp_path: Path, wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(MalformedHistoryError) as refused:
        only(tmp_path, line("a", attempt(0, 4, 34, "completed"), **wrong))
    assert field in str(refused.value)


def test_a_job_that_is_not_over_needs_more_than_what_it_lost_had_come_to(tmp_path: Path) -> None:
    lost = attempt(0, 4, 154, "preemption", lost_seconds=9000, trained_seconds=9000)
    again = attempt(160, 161, 162, "preemption", lost_seconds=60, trained_seconds=60)
    job = only(tmp_path, line("a", lost, again, end=None, ended_at=None, max_runtime_seconds=86400))
    assert job.trains_for == minutes(150 + 1)


def test_a_job_that_came_back_after_a_window_went_on_as_after_a_preemption(tmp_path: Path) -> None:
    tried = attempt(0, 4, 34, "window", lost_seconds=600, plan="spring")
    job = only(tmp_path, line("a", tried, end="stopped-by-user", ended_at=at(60), capacity_type="plan"))
    assert (job.withdrawn_after, job.trains_for) == (minutes(60), minutes(0))
    (row,) = recorded(History(source="a test", begins=job.submitted_at, jobs=(job,))).attempts
    assert (job.capacity_type, row.capacity_type, row.end) == ("plan", "plan/spring", "preempted")


def test_stops_at_the_end_of_a_window_tell_how_long_a_stop_takes(tmp_path: Path) -> None:
    again = attempt(60, 64, 70, "completed")
    tried = attempt(0, 6, 36, "window", trained_seconds=27 * 60)
    assert history(tmp_path, line("a", tried, again, saves_checkpoints=True)).pace.stop == minutes(3)
