"""Exported lines: what is wrong with one, and the jobs that they become."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from trainmaster.core.arrays.tasks import array_entry_id, task_entry_id
from trainmaster.core.jobs.end_conditions import ConditionKind
from trainmaster.core.policy import UNMANAGED
from trainmaster_client.errors import InvalidArgumentError, MalformedHistoryError
from trainmaster_client.simulate.engine.past_jobs import AfterEnd, Break, History, PastArray, PastJob
from trainmaster_client.simulate.sources import history_from_file

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def at(minutes: float) -> str:
    return (NOON + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def attempt(
    began: float, trains: float | None, ended: float | None, end: str | None, **more: Any
) -> dict[str, Any]:
    """By minutes after noon."""
    return {
        "started_at": at(began),
        "training_since": None if trains is None else at(trains),
        "ended_at": None if ended is None else at(ended),
        "end": end,
        "lost_seconds": 0,
        "warm_start": False,
    } | more


def line(name: str = "a", *attempts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "team": "vision",
        "submitted_by": "ada",
        "pool": "p5",
        "instances": {"ml.p5.48xlarge": 1},
        "capacity_type": "on-demand",
        "priority": 5,
        "submitted_at": at(0),
        "max_runtime_seconds": 86_400,
        "saves_checkpoints": False,
        "attempts": list(attempts),
        "end": "completed",
    } | more


def written(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "history.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return path


def history(folder: Path, *lines: dict[str, Any], begins: datetime | None = None) -> History:
    return history_from_file(written(folder, *lines), begins=begins)


def only(folder: Path, one: dict[str, Any], **more: Any) -> PastJob:
    (job,) = history(folder, one, **more).jobs
    return job


def test_a_job_trains_for_what_counted_of_all_its_attempts(tmp_path: Path) -> None:
    job = only(
        tmp_path,
        line(
            "a",
            attempt(5, 9, 60, "preemption", lost_seconds=660),
            attempt(70, 72, 100, "completed", warm_start=True),
            saves_checkpoints=True,
        ),
    )
    assert job.trains_for == minutes(51 - 11 + 28)
    assert (job.cold_start, job.end, job.breaks) == (minutes(4), "completed", ())
    assert [one.started_at for one in job.attempts] == [NOON + minutes(5), NOON + minutes(70)]
    assert (job.pool, job.instances, job.priority, job.team) == ("p5", {"ml.p5.48xlarge": 1}, 5, "vision")


def test_the_time_in_stopping_is_no_training_where_it_is_exported(tmp_path: Path) -> None:
    stopped = attempt(0, 0, 62, "preemption", trained_seconds=3600, lost_seconds=600)
    job = only(tmp_path, line("a", stopped, attempt(70, 70, 80, "completed")))
    assert job.trains_for == minutes(60 - 10 + 10)


def test_failures_that_it_came_back_from_are_breaks_measured_from_the_one_before(tmp_path: Path) -> None:
    job = only(
        tmp_path,
        line(
            "a",
            attempt(0, 0, 10, "preemption"),
            attempt(10, 10, 30, "hardware", lost_seconds=300),
            attempt(40, 40, 45, "network"),
            attempt(50, 50, 60, "user-code"),
            end="user-code",
        ),
    )
    assert job.breaks == (Break(after=minutes(30), code="hardware"), Break(after=minutes(5), code="network"))
    assert job.trains_for == minutes(10 + 15 + 5 + 10)
    assert job.end == "failed"


def test_interruptions_of_spot_instances_are_taken_at_even_distances(tmp_path: Path) -> None:
    ran = attempt(0, 0, 100, "completed", interruptions=2, trained_seconds=5400)
    found = history(tmp_path, line("a", ran, capacity_type="spot"))
    assert found.jobs[0].breaks == (Break(after=minutes(30), code="interrupted"),) * 2
    assert found.jobs[0].trains_for == minutes(30), "without checkpoints each interruption lost all"
    assert any(one.startswith("When spot instances of 1 job were interrupted") for one in found.not_known)


@pytest.mark.parametrize(
    ("stops", "expected"),
    [
        pytest.param([(50, 5)], 9, id="45 minutes in five parts: nearest to twice the loss of five"),
        pytest.param([(50, 20)], 30, id="30 minutes: half would have lost less"),
        pytest.param([(35, 5), (70, 10), (40, 10)], 15, id="the one that explains all three"),
        pytest.param([(20, 20), (25, 25)], 50, id="all lost: twice the longest"),
        pytest.param([(60, 0)], 30, id="nothing lost: near the usual interval"),
    ],
)
def test_the_checkpoint_interval_is_the_one_that_explains_the_losses(
    tmp_path: Path, stops: list[tuple[int, int]], expected: float
) -> None:
    tried = [
        attempt(number * 100, number * 100, number * 100 + ran, "preemption", lost_seconds=lost * 60)
        for number, (ran, lost) in enumerate(stops)
    ]
    whole = line("a", *tried, attempt(900, 900, 910, "completed"), saves_checkpoints=True)
    assert only(tmp_path, whole).saves_every == minutes(expected)


def test_a_job_that_was_never_stopped_saves_as_often_as_its_team(tmp_path: Path) -> None:
    stopped = line("a", attempt(0, 0, 50, "preemption", lost_seconds=1200), attempt(60, 60, 61, "completed"))
    ran = attempt(0, 0, 50, "completed")
    found = history(
        tmp_path,
        stopped | {"saves_checkpoints": True},
        line("b", ran, saves_checkpoints=True),
        line("c", ran, saves_checkpoints=False),
    )
    assert [job.saves_every for job in found.jobs] == [minutes(30), minutes(30), None]
    estimated = [one for one in found.not_known if one.startswith("The checkpoint interval of")]
    assert ["1 of 3 jobs" in one for one in estimated] == [True, True]


def test_withdrawn_jobs_leave_after_the_same_wait(tmp_path: Path) -> None:
    withdrawn = line("a", end="stopped-by-user", ended_at=at(25))
    found = history(tmp_path, withdrawn, line("b", attempt(0, 1, 31, "completed")))
    assert (found.jobs[0].withdrawn_after, found.jobs[0].end) == (minutes(25), "stopped")
    assert found.jobs[0].trains_for == timedelta(), "it is not known how long it would have trained"
    assert any(one.startswith("1 job ended while waiting") for one in found.not_known)


def test_a_job_that_ended_without_an_attempt_at_no_known_instant_is_left_out(tmp_path: Path) -> None:
    found = history(tmp_path, line("a", end="stopped-by-user"), line("b", attempt(0, 1, 31, "completed")))
    assert [job.name for job in found.jobs] == ["b"]
    assert any(one.startswith("1 job ended without an attempt") for one in found.not_known)


def test_a_job_that_failed_before_it_trained_holds_its_instances_as_long(tmp_path: Path) -> None:
    job = only(tmp_path, line("a", attempt(5, None, 9, "data-access"), end="data-access"))
    assert (job.end, job.trains_for, job.cold_start) == ("failed", timedelta(), minutes(4))
    assert job.withdrawn_after is None


def test_what_is_not_over_is_estimated_and_counted(tmp_path: Path) -> None:
    found = history(
        tmp_path,
        line("done", attempt(0, 10, 60, "completed")),
        line("runs", attempt(10, 20, None, None), end=None),
        line("waits", end=None, submitted_at=at(50)),
    )
    assert [job.trains_for for job in found.jobs] == [minutes(50), minutes(2 * 40), minutes(50)]
    assert [job.end for job in found.jobs] == ["completed"] * 3
    said = " ".join(found.not_known)
    assert "1 job had not ended when the history was read" in said
    assert "1 job had not trained yet when the history was read" in said


def test_jobs_of_no_pool_are_left_out_and_a_later_line_of_the_same_job_counts(tmp_path: Path) -> None:
    found = history(
        tmp_path,
        line("a", attempt(0, 1, None, None), end=None),
        line("stray", attempt(0, 1, 2, "completed"), pool=UNMANAGED),
        line("a", attempt(0, 1, 31, "completed")),
    )
    assert [(job.name, job.trains_for) for job in found.jobs] == [("a", minutes(30))]
    assert any(one.startswith("1 job bypassed the queue") for one in found.not_known)


def test_a_name_that_was_used_twice_is_there_twice_under_two_names(tmp_path: Path) -> None:
    ran = attempt(0, 1, 31, "completed")
    again = attempt(100, 101, 131, "completed")
    found = history(tmp_path, line("a", ran), line("a", again, submitted_at=at(100)))
    assert [job.name for job in found.jobs] == ["a", "a~2"]


def test_what_was_there_when_the_period_began_enters_with_what_was_left(tmp_path: Path) -> None:
    found = history(
        tmp_path,
        line("ran", attempt(-100, -96, 30, "completed"), submitted_at=at(-120)),
        line("waited", attempt(30, 34, 50, "completed"), submitted_at=at(-90)),
        line("new", attempt(50, 54, 60, "completed"), submitted_at=at(10)),
        begins=NOON,
    )
    ran, waited, new = found.jobs
    assert found.begins == NOON
    assert (ran.name, ran.submitted_at, ran.trains_for) == ("ran", NOON, minutes(30 - 4))
    assert ran.attempts[0].started_at == NOON
    assert (waited.name, waited.submitted_at, waited.trains_for) == (
        "waited",
        NOON + timedelta(seconds=1),
        minutes(16),
    )
    assert (new.name, new.submitted_at) == ("new", NOON + minutes(10))
    said = " ".join(found.not_known)
    assert "1 job held instances when the period began" in said
    assert "1 job waited when the period began" in said


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"team": None}, "line 1, team: None is not a text; write it in quotes", id="null"),
        pytest.param({"priority": "7"}, "line 1, priority: '7' is not a valid number", id="text"),
        pytest.param(
            {"priority": -1},
            "line 1, priority: -1 is not a valid number; write one from 0 to 1000",
            id="below",
        ),
        pytest.param({"priority": True}, "line 1, priority: True is not a valid number", id="flag"),
        pytest.param({"max_runtime_seconds": 1e300}, "line 1, max_runtime_seconds: 1e+300 is not", id="huge"),
        pytest.param(
            {"max_runtime_seconds": float("nan")}, "line 1, max_runtime_seconds: nan is not", id="nan"
        ),
        pytest.param(
            {"submitted_at": "2026-11-02"},
            "line 1, submitted_at: '2026-11-02' is not a valid instant",
            id="no zone",
        ),
        pytest.param({"submitted_at": 5}, "line 1, submitted_at: 5 is not a valid instant", id="number"),
        pytest.param({"instances": {}}, "line 1, instances: {} is not instances by type", id="none"),
        pytest.param(
            {"instances": {"ml.x": 0}}, "line 1, instances.ml.x: 0 is not a valid number", id="no instance"
        ),
        pytest.param(
            {"capacity_type": "cheap"},
            "line 1, capacity_type: 'cheap' is not known; write on-demand, spot, plan",
            id="capacity",
        ),
        pytest.param({"attempts": "none"}, "line 1, attempts: 'none' is not a list", id="attempts"),
        pytest.param({"attempts": [7]}, "line 1, attempts[0]: 7 is not an object", id="attempt"),
        pytest.param({"attempts": [{}]}, "line 1, attempts[0].started_at: is missing", id="missing"),
        pytest.param(
            {"attempts": [attempt(10, 11, 5, "completed")]},
            "line 1, attempts[0].ended_at: is before it started",
            id="backwards",
        ),
    ],
)
def test_each_wrong_field_is_named_with_its_line(
    tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    with pytest.raises(MalformedHistoryError) as error:
        history(tmp_path, line() | change)
    (problem,) = error.value.problems
    assert str(problem).startswith(expected)
    assert problem.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{]\n", "line 1: is not JSON", id="no JSON"),
        pytest.param("7\n", "line 1: is 7; write one job as a JSON object", id="a number"),
        pytest.param("job_id,submit_s\n", "this is a trace: give it to --trace", id="a trace"),
        pytest.param("[\n", "without a list around them", id="a list"),
        pytest.param("[" * 100_000 + "\n", "line 1: is not JSON", id="deep"),
    ],
)
def test_what_is_no_history_is_refused_with_the_reason(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MalformedHistoryError) as error:
        history_from_file(path)
    assert expected in str(error.value)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_blank_lines_alone_are_no_jobs(tmp_path: Path, text: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match="no jobs to replay"):
        history_from_file(path)


def test_gzip_is_read(tmp_path: Path) -> None:
    plain = written(tmp_path, line("a", attempt(0, 1, 31, "completed")))
    packed = tmp_path / "history.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert history_from_file(packed).jobs == history_from_file(plain).jobs


def test_conditions_are_kept_by_submission_and_those_on_unknown_jobs_count_as_met(tmp_path: Path) -> None:
    done = attempt(0, 4, 34, "completed")
    lines = [
        line("a", done, entry_id="first", ended_at=at(34)),
        line("a", attempt(40, 44, 74, "completed"), entry_id="again", submitted_at=at(40)),
        line("b", done, entry_id="b", submitted_at=at(41), after=[condition("again"), condition("gone")]),
        line(
            "c",
            entry_id="c",
            submitted_at=at(42),
            after=[condition("b", "afternotok")],
            end="dependency",
            ended_at=at(35),
        ),
    ]
    was = history(tmp_path, *lines)
    after = {job.name: [(wait.kind.value, wait.job) for wait in job.after] for job in was.jobs}
    assert after == {"a": [], "a~2": [], "b": [("afterok", "a~2")], "c": [("afternotok", "b")]}
    (met,) = [text for text in was.not_known if "taken as ended in time" in text]
    assert was.jobs[-1].withdrawn_after is None
    assert met.startswith("1 job waited for jobs that are not in this history")


def task(index: int, **more: Any) -> dict[str, Any]:
    entry_id = task_entry_id(array_entry_id(f"{7:026d}"), index)
    throttle = {"array": "s", "array_at_most": 2, "array_stop_after": 0} | more
    return line(f"s-{index}", attempt(0, 4, 34, "completed"), entry_id=entry_id, **throttle)


def test_tasks_of_an_array_are_one_submission_in_the_order_of_their_indices(tmp_path: Path) -> None:
    key = array_entry_id(f"{7:026d}")
    child = line("after-all", entry_id="c", submitted_at=at(1), after=[condition(key)], end=None)
    done = attempt(0, 4, 34, "completed")
    others = [line(name, done) for name in ("r", "t")]
    was = history(tmp_path, *(task(index) for index in (10, 2, 0, 1)), child, *others)
    names = [job.name for job in was.jobs]
    assert names == ["r", "s-0", "s-1", "s-2", "s-10", "t", "after-all"]
    arrays = {job.array for job in was.jobs if job.name.startswith("s-")}
    assert arrays == {PastArray(key=key, at_most=2, stop_after_failures=0)}
    assert was.jobs[-1].after == (AfterEnd(kind=ConditionKind.AFTER_OK, job=key),)


def test_a_throttle_that_an_earlier_release_did_not_record_is_said_to_be_missing(tmp_path: Path) -> None:
    was = history(tmp_path, task(0, array_at_most=None, array_stop_after=None))
    assert was.jobs[0].array == PastArray(key=array_entry_id(f"{7:026d}"))
    assert any(text.startswith("The throttles of the arrays") for text in was.not_known)


@pytest.mark.parametrize("wrong", [{"array_at_most": 0}, {"array_stop_after": -1}, {"array": 3}])
def test_a_throttle_that_is_none_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(MalformedHistoryError, match=next(iter(wrong))):
        history(tmp_path, task(0, **wrong))


def condition(entry_id: str, when: str = "afterok") -> dict[str, Any]:
    return {"when": when, "job": "whatever it was called", "entry_id": entry_id}
