"""Training jobs started with plain boto3, through the deployed stack and its rights, seen from outside."""

from collections.abc import Iterator

import pytest

from tests.e2e.plane import Document, Plane, eventually, pool, running_plane, tags, until_exists

pytestmark = pytest.mark.long
RULES = {"required_tags": {"mode": "enforce", "tags": {"model_name": {}}}}
GOOD = tags(model_name="llama")


@pytest.fixture
def plane(tmp_path) -> Iterator[Plane]:
    with running_plane(tmp_path, policy=policy("adopt")) as running:
        yield running


def policy(then: str) -> Document:
    return pool(2, rules=RULES, unmanaged_jobs={"then": then})


def start(plane: Plane, name: str, command: list[str], **changes: object) -> None:
    plane.client("sagemaker").create_training_job(**plane.request(name, command, **changes))


def outcome(plane: Plane, name: str) -> str | None:
    records = plane.call("GET", "/violations").document["violations"]
    return next((one["outcome"] for one in records if one["training_job_name"] == name), None)


def stops(plane: Plane, name: str) -> list[Document]:
    return [one for one in plane.calls("StopTrainingJob") if one["params"]["TrainingJobName"] == name]


def test_what_is_started_without_the_queue_is_adopted_or_stopped_as_the_policy_says(plane, tmp_path):
    start(plane, "good", until_exists(tmp_path / "good"), Tags=GOOD)
    eventually(plane.queue, lambda queue: queue == [("good", "running")])
    view = plane.job("good")
    assert (view["pool"], view["attempt"], view["instances"]) == ("main", 0, {"ml.m5.xlarge": 1})
    start(plane, "bad", until_exists(tmp_path / "bad"))
    plane.await_status("bad", "Stopped")
    assert (outcome(plane, "good"), outcome(plane, "bad")) == ("adopted", "stopped")
    (tmp_path / "good").touch()
    plane.await_state("good", "completed")

    assert plane.call("PUT", "/policy", policy("stop")).status == 200
    start(plane, "late", until_exists(tmp_path / "late"), Tags=GOOD)
    plane.await_status("late", "Stopped")
    assert outcome(plane, "late") == "stopped"
    (call,) = stops(plane, "late")
    assert call["principal"].endswith("/schedule")


def test_a_stack_without_the_right_to_stop_says_so_and_tries_once(tmp_path):
    options = ("--parameter", "StopUnmanagedJobs=false")
    with running_plane(tmp_path, *options, policy=policy("stop")) as plane:
        start(plane, "stray", until_exists(tmp_path / "done"), Tags=GOOD)
        eventually(lambda: outcome(plane, "stray"), lambda found: found == "not-stopped")
        (tmp_path / "done").touch()
        plane.await_status("stray", "Completed")
        (call,) = stops(plane, "stray")
        assert call["error_code"] in {"AccessDenied", "AccessDeniedException"}


def test_one_whose_events_are_all_lost_is_found_by_the_sweep(tmp_path):
    options = ("--clock", "manual")
    with running_plane(tmp_path, *options, policy=policy("stop")) as plane:
        plane.control("/events", {"drop": 1.0})
        start(plane, "stray", until_exists(tmp_path / "done"), Tags=GOOD)
        plane.clock(6 * 60)
        eventually(lambda: stops(plane, "stray"), bool)
        assert outcome(plane, "stray") == "stopped"
        plane.clock(5 * 60)
        plane.await_status("stray", "Stopped")
