"""A manual clock and the control API: time, errors, lost events, failures, spot interruptions on demand."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from tests.e2e.plane import Plane, pool, running_plane, tags, until_exists
from tests.e2e.signing import Call, send

pytestmark = pytest.mark.thorough

LONG_SECONDS = 60.0
"""More than all the twin's own waits together at the default speed, and less than a reconciler's period."""
PERIOD_SECONDS = 60.0
"""Of the reconciler."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("clock")
    with running_plane(folder, "--clock", "manual", policy=pool(1)) as running:
        yield running


def test_nothing_moves_until_the_clock_does(plane):
    plane.client("sagemaker").create_training_job(**plane.request("still", ["true"]))
    before = plane.described("still")
    for _ in range(20):
        assert plane.described("still") | {"ResponseMetadata": 0} == before | {"ResponseMetadata": 0}
    assert before["SecondaryStatus"] == "Starting"
    plane.clock(0.4)
    assert plane.described("still")["SecondaryStatus"] == "Pending"
    plane.clock(LONG_SECONDS)
    assert plane.described("still")["TrainingJobStatus"] == "Completed"


def test_the_clock_answers_after_everything_due_by_then_has_run(plane):
    """Through the whole plane: the event of the end, its handler, the pass after it, the next job's start."""
    first = plane.add(plane.request("chain-1", ["true"]))
    plane.add(plane.request("chain-2", ["true"]))
    plane.clock(0)
    assert plane.queue() == [("chain-1", "running"), ("chain-2", "pending")]
    plane.clock(LONG_SECONDS)
    assert plane.queue() == []
    ended, submitted = plane.job("chain-1")["ended_at"], first["submitted_at"]
    lasted = datetime.fromisoformat(ended) - datetime.fromisoformat(submitted)
    assert 0 < lasted.total_seconds() < PERIOD_SECONDS, "times in the plane are the twin's"


def test_a_refused_start_is_tried_again_and_the_next_one_starts(plane, tmp_path):
    with busy_pool(plane, tmp_path):
        plane.add(plane.request("refused", ["true"], Tags=tags(priority="2")))
        plane.add(plane.request("behind-it", ["true"]))
        error = {"operation": "CreateTrainingJob", "error_code": "ValidationException", "times": 1}
        plane.control("/errors", error)
    plane.clock(LONG_SECONDS)
    assert plane.job("behind-it")["state"] == "completed"
    for _ in range(3):
        plane.clock(LONG_SECONDS)
    assert plane.job("refused")["state"] == "completed"
    notes = [line["reason"] for line in plane.job("refused")["history"] if line["reason"]]
    assert "refused" in [note["code"] for note in notes]
    assert any("ValidationException" in note["message"] for note in notes)


def test_O4_starts_that_are_denied_for_three_minutes_cost_no_job(plane, tmp_path):
    """As a service control policy denies them: every start, whoever asks."""
    names = [f"denied-{number}" for number in range(4)]
    with busy_pool(plane, tmp_path):
        for name in names:
            plane.add(plane.request(name, ["true"]))
        plane.control("/deny", {"operation": "CreateTrainingJob", "seconds": 180})
    plane.clock(120)
    assert {plane.job(name)["state"] for name in names} == {"pending"}
    assert {plane.job(name)["waiting"]["code"] for name in names} == {"refused"}
    for _ in range(10):
        plane.clock(LONG_SECONDS)
    assert {plane.job(name)["state"] for name in names} == {"completed"}


def test_a_limit_of_the_account_puts_the_job_back_without_charge(plane, tmp_path):
    await_reconciler(plane)
    with busy_pool(plane, tmp_path):
        plane.add(plane.request("limited", ["true"]))
        error = {"operation": "CreateTrainingJob", "error_code": "ResourceLimitExceeded", "times": 1}
        plane.control("/errors", error)
    waiting = plane.job("limited")
    assert (waiting["state"], waiting["waiting"]["code"]) == ("pending", "account-limit")
    assert (waiting["attempt"], waiting["retries"]) == (0, 0)
    plane.clock(2 * PERIOD_SECONDS)
    assert plane.job("limited")["state"] == "completed"
    statuses = [
        one["error_code"]
        for one in plane.calls("CreateTrainingJob")
        if one["params"]["TrainingJobName"] == "limited"
    ]
    assert statuses == ["ResourceLimitExceeded", None]


def test_a_lost_event_costs_at_most_two_periods_of_the_reconciler(plane):
    await_reconciler(plane)
    plane.control("/events", {"drop": 1.0})
    plane.add(plane.request("unheard", ["true"]))
    plane.clock(LONG_SECONDS / 2)
    assert plane.described("unheard")["TrainingJobStatus"] == "Completed"
    assert plane.job("unheard")["state"] == "running", "nobody told the plane"
    plane.clock(2 * PERIOD_SECONDS)
    assert plane.job("unheard")["state"] == "completed"
    plane.control("/events", {"drop": 0})


def test_doubled_and_reordered_events_change_nothing(plane):
    plane.control("/events", {"duplicate": 1.0, "reorder": 0.5, "seed": 3})
    plane.add(plane.request("doubled", ["true"]))
    plane.clock(2 * PERIOD_SECONDS)
    plane.control("/events", {})
    done = plane.job("doubled")
    assert done["state"] == "completed"
    assert [line["to"] for line in done["history"]] == ["pending", "starting", "running", "completed"]


def test_a_failure_on_demand_has_the_reason_that_was_asked_for(plane, tmp_path):
    plane.add(plane.request("broken", until_exists(tmp_path / "never")))
    plane.clock(LONG_SECONDS)
    plane.control("/fail", {"training_job": "broken", "reason": "AlgorithmError: on demand", "exit_code": 7})
    plane.clock(LONG_SECONDS)
    assert plane.described("broken")["FailureReason"] == "AlgorithmError: on demand"
    failed = plane.job("broken")
    assert failed["state"] == "failed"
    assert "on demand" in failed["reason"]["message"]
    assert [one["event"] for one in plane.processes("broken")][-1] == "exit"


def test_a_spot_interruption_restarts_the_same_training_job(plane, tmp_path):
    stopping = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}
    file = tmp_path / "spot-may-end"
    request = plane.request(
        "on-spot", until_exists(file), EnableManagedSpotTraining=True, StoppingCondition=stopping
    )
    assert plane.add(request)["capacity_type"] == "spot"
    plane.clock(LONG_SECONDS)
    plane.control("/spot", {"training_job": "on-spot", "action": "interrupt"})
    plane.clock(LONG_SECONDS)
    statuses = [one["Status"] for one in plane.described("on-spot")["SecondaryStatusTransitions"]]
    assert statuses.count("Training") == 2
    assert "Interrupted" in statuses
    assert [one["event"] for one in plane.processes("on-spot")].count("start") == 2
    assert (plane.job("on-spot")["state"], plane.job("on-spot")["attempt"]) == ("running", 0)
    end(plane, "on-spot", file)
    assert plane.job("on-spot")["state"] == "completed"


def test_the_control_api_lists_the_training_jobs_with_their_processes(plane, tmp_path):
    plane.add(plane.request("listed", until_exists(tmp_path / "file")))
    plane.clock(LONG_SECONDS)
    jobs = send(Call(method="GET", url=f"{plane.twin.ready['control_url']}/training-jobs")).document
    (listed,) = [one for one in jobs["training_jobs"] if "listed" in one.values()]
    started = plane.processes("listed")[0]
    assert str(started["pid"]) in str(listed)
    end(plane, "listed", tmp_path / "file")


@contextmanager
def busy_pool(plane: Plane, folder: Path) -> Iterator[None]:
    """Keeps the one slot of the pool taken; after the block it is free again and everything has settled."""
    name, file = f"blocker-{uuid.uuid4()}", folder / "blocker-may-end"
    plane.add(plane.request(name, until_exists(file), Tags=tags(priority="9")))
    plane.clock(LONG_SECONDS / 2)
    assert plane.job(name)["state"] == "running"
    yield
    end(plane, name, file)


def await_reconciler(plane: Plane) -> None:
    """Move the clock to just after a run of the reconciler: most of a period is left until the next."""
    before = plane.twin.records()[-1]["seq"]
    while not any(one["principal"].endswith("/reconcile") for one in plane.calls("Query", after=before)):
        plane.clock(PERIOD_SECONDS / 12)


def end(plane: Plane, name: str, file: Path) -> None:
    """Let a container end, which takes real time, and everything that follows from it happen."""
    file.touch()
    plane.await_status(name, "Uploading", "Completed")
    plane.clock(1)
