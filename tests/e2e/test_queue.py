"""The queue over the API: the four-job example, and DELETE in every state that is not final."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.plane import Document, Plane, eventually, pool, running_plane, tags, until_exists
from tests.e2e.process_tree import environment_of, tree_of

pytestmark = pytest.mark.thorough

TRIES = 5
"""Of catching a job between claim and start: the SDK waits a random time below a second there."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    with running_plane(tmp_path_factory.mktemp("queue"), policy=pool(2)) as running:
        yield running


def test_the_four_jobs_of_the_example_take_their_turns(plane, tmp_path):
    """job4 stops job1, which comes back before job3; each ends when this test says so."""

    def submit(name: str, priority: int) -> None:
        command = until_exists(tmp_path / name)
        plane.add(plane.request(name, command, Tags=tags(priority=str(priority))))

    def queue(*expected: tuple[str, str]) -> None:
        eventually(plane.queue, lambda seen: seen == list(expected))

    submit("job1", 1)
    submit("job2", 2)
    queue(("job2", "running"), ("job1", "running"))
    submit("job3", 1)
    queue(("job2", "running"), ("job1", "running"), ("job3", "pending"))
    eventually(lambda: plane.job("job3")["waiting"]["code"], lambda code: code == "capacity")
    assert plane.job("job3")["position"] == 1
    submit("job4", 3)
    queue(("job4", "running"), ("job2", "running"), ("job1", "preempted"), ("job3", "pending"))
    assert [plane.job(name)["position"] for name in ("job1", "job3")] == [1, 2]
    assert plane.job("job1")["preemptions"] == 1
    (tmp_path / "job2").touch()
    queue(("job4", "running"), ("job1", "running"), ("job3", "pending"))
    (tmp_path / "job4").touch()
    queue(("job1", "running"), ("job3", "running"))
    for name in ("job1", "job3"):
        (tmp_path / name).touch()
    queue()
    states = [line["to"] for line in plane.job("job1")["history"]]
    assert states == [
        *("pending", "starting", "running", "preempting", "preempted"),
        *("starting", "running", "completed"),
    ]
    assert [one["status"] for one in plane.job("job1")["attempts"]] == ["Stopped", "Completed"]
    assert {plane.job(f"job{number}")["state"] for number in (1, 2, 3, 4)} == {"completed"}


def test_delete_of_a_running_job_stops_its_training_job(plane, tmp_path):
    plane.add(plane.request("stop-running", until_exists(tmp_path / "never")))
    plane.await_state("stop-running", "running")
    plane.await_status("stop-running", "Training")
    assert delete(plane, "stop-running")["state"] == "stopping"
    assert delete(plane, "stop-running")["state"] == "stopping", "again is no error while it lasts"
    stopped = plane.await_state("stop-running", "stopped")
    assert stopped["reason"]["code"] == "stopped-by-user"
    assert plane.described("stop-running")["TrainingJobStatus"] == "Stopped"
    assert plane.call("DELETE", "/jobs/stop-running").status == 409


def test_delete_of_a_waiting_job_takes_it_out_of_the_queue_at_once(plane, tmp_path):
    with full_pool(plane, tmp_path / "end"):
        plane.add(plane.request("stop-waiting", ["true"]))
        stopped = delete(plane, "stop-waiting")
        assert (stopped["state"], stopped["reason"]["code"]) == ("stopped", "stopped-by-user")
        assert "stop-waiting" not in dict(plane.queue())
    assert not [one for one in plane.calls("CreateTrainingJob") if named(one, "stop-waiting")]


def test_delete_of_a_starting_job_stops_what_was_started(plane, tmp_path):
    """The start takes its time; the scheduler stands still while the job is cancelled."""
    for number in range(TRIES):
        name = f"stop-starting-{number}"
        with standing_still(plane, name, until_exists(tmp_path / name)):
            if plane.job(name)["state"] != "starting":
                (tmp_path / name).touch()
                continue
            assert delete(plane, name)["state"] == "stopping"
        stopped = plane.await_state(name, "stopped")
        assert stopped["reason"]["code"] == "stopped-by-user"
        assert [line["to"] for line in stopped["history"]] == ["pending", "starting", "stopping", "stopped"]
        assert plane.described(name)["TrainingJobStatus"] == "Stopped"
        assert [one for one in plane.calls("StopTrainingJob") if named(one, name)]
        return
    pytest.fail(f"never caught a job in starting in {TRIES} tries")


@contextmanager
def standing_still(plane: Plane, name: str, command: list[str]) -> Iterator[None]:
    """Submit a job and stop the clockwork of the scheduler while SageMaker takes its time for the start."""
    answers_within(plane, seconds=3)
    plane.add(plane.request(name, command))
    eventually(lambda: plane.job(name)["state"], lambda state: state != "pending")
    processes = schedulers(plane)
    signal_all(processes, signal.SIGSTOP)
    answers_within(plane, seconds=0)
    try:
        yield
    finally:
        signal_all(processes, signal.SIGCONT)


def answers_within(plane: Plane, *, seconds: float) -> None:
    plane.control("/world", {"set": {"latency_seconds": {"p50": seconds, "p99": seconds}}})


@contextmanager
def full_pool(plane: Plane, file: Path) -> Iterator[None]:
    names = [f"full-{number}" for number in (1, 2)]
    for name in names:
        plane.add(plane.request(name, until_exists(file)))
    for name in names:
        plane.await_state(name, "running")
    yield
    file.touch()
    for name in names:
        plane.await_state(name, "completed")


def delete(plane: Plane, name: str) -> Document:
    answer = plane.call("DELETE", f"/jobs/{name}")
    assert answer.status == 202, answer.body
    view: Document = answer.document
    return view


def named(call: Document, training_job: str) -> bool:
    return bool(call["params"]["TrainingJobName"] == training_job)


def schedulers(plane: Plane) -> list[int]:
    tree = tree_of(plane.twin.ready["pid"])
    group = "AWS_LAMBDA_LOG_GROUP_NAME"
    return [pid for pid in tree if environment_of(pid).get(group, "").endswith("-schedule")]


def signal_all(pids: list[int], number: signal.Signals) -> None:
    assert pids
    for pid in pids:
        os.kill(pid, number)
