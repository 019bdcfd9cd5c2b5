"""An array of 64 tasks, eight at a time, seen from outside: what was created, what ran, what arrived."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.plane import Document, Plane, eventually, pool, running_plane

AT_MOST, TASKS = 8, 64
FAILING = (7, 9)
CANCELLED = range(40, 48)
MOST_WAITING_JOBS = 32
VARIABLES = ("JOB", "INDEX", "COUNT", "MIN", "MAX")

pytestmark = pytest.mark.long


@dataclass(frozen=True, slots=True)
class Played:
    """What was seen of the array until its end, and of the rerun of its failed tasks."""

    plane: Plane
    folder: Path
    most_waiting: int
    view: Document
    rerun: Document


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    policy = pool(2 * AT_MOST)
    policy["pools"][0] |= {"warm_pool": {"keep_alive": "0s", "retain": "0s"}}
    folder = tmp_path_factory.mktemp("seen")
    with running_plane(tmp_path_factory.mktemp("throttled"), "--speed", "600", policy=policy) as plane:
        yield play(plane, folder)


def play(plane: Plane, folder: Path) -> Played:
    for index in FAILING:
        (folder / f"fail-{index}").touch()
    document = {
        "request": request(plane, folder),
        "tasks": f"0-{TASKS - 1}%{AT_MOST}",
        "values": [{"lr": f"{index}e-4"} for index in range(TASKS)],
        "stop_after_failures": 0,
    }
    assert plane.call("POST", "/add-array", document).status == 201
    range_text = f"{CANCELLED.start}-{CANCELLED.stop - 1}"
    assert plane.call("DELETE", f"/arrays/sw?tasks={range_text}").status == 202
    most_waiting = 0

    def ended() -> bool:
        nonlocal most_waiting
        most_waiting = max(most_waiting, waiting_jobs(plane))
        return plane.call("GET", "/arrays/sw").document["ended_at"] is not None

    eventually(ended, bool, patience=300)
    view = plane.call("GET", "/arrays/sw").document
    for index in FAILING:
        (folder / f"fail-{index}").unlink()
    answer = plane.call("POST", "/arrays/sw/rerun", {"tasks": "failed"})
    assert answer.status == 201, answer.body
    name = answer.document["array"]["name"]
    rerun = eventually(
        lambda: plane.call("GET", f"/arrays/{name}").document, lambda seen: seen["ended_at"] is not None
    )
    return Played(plane=plane, folder=folder, most_waiting=most_waiting, view=view, rerun=rerun)


def request(plane: Plane, folder: Path) -> Document:
    """A program that writes down its variables, and fails as long as a file says so."""
    variables = " ".join(f"$TRAINMASTER_ARRAY_{name}" for name in VARIABLES)
    index = "$TRAINMASTER_ARRAY_INDEX"
    code = f'echo {variables} >> "$0/saw-{index}"; sleep 0.2; test ! -e "$0/fail-{index}"'
    return plane.request(
        "sw",
        ["sh", "-c", code, str(folder)],
        HyperParameters={"lr": "0", "seed": "1"},
        CheckpointConfig={"S3Uri": f"s3://{plane.twin.ready['bucket']}/ck"},
    )


def waiting_jobs(plane: Plane) -> int:
    """Tasks of the array that one look at the queue shows as waiting jobs."""
    jobs = plane.call("GET", "/jobs?limit=1000").document["jobs"]
    return sum(job["name"].startswith("sw-") and job["state"] in {"pending", "preempted"} for job in jobs)


def created(played: Played, array: str) -> dict[int, Document]:
    """Requests of CreateTrainingJob that counted, by index; a second one of an index is an error."""
    calls = [record for record in played.plane.calls("CreateTrainingJob") if record["status"] == 200]
    requests = [dict(record["params"]) for record in calls]
    ours = [(name.rpartition("-"), body) for body in requests if (name := str(body["TrainingJobName"]))]
    made = [(int(index), body) for (stem, _, index), body in ours if stem == array]
    assert set(Counter(index for index, _ in made).values()) <= {1}
    return dict(made)


def started(played: Played) -> set[int]:
    return set(created(played, "sw"))


def test_each_index_is_one_create_and_none_of_the_cancelled_ones_after_the_cancel(played: Played) -> None:
    kept = set(range(TASKS)) - set(CANCELLED)
    assert kept <= started(played)
    assert started(played) - kept == set(), "the range was far from its turn when it was cancelled"


def test_the_throttle_is_used_and_never_exceeded(played: Played) -> None:
    live: set[str] = set()
    most = 0
    for record in played.plane.twin.records():
        if record.get("operation") == "CreateTrainingJob" and record["status"] == 200:
            live.add(record["params"]["TrainingJobName"])
        elif record["kind"] == "process" and record["event"] == "exit":
            live.discard(record["training_job"])
        most = max(most, len(live))
    assert most == AT_MOST


def test_values_variables_and_folders_arrive(played: Played) -> None:
    bucket = played.plane.twin.ready["bucket"]
    for index, body in created(played, "sw").items():
        assert body["HyperParameters"] == {"lr": f"{index}e-4", "seed": "1"}
        assert body["CheckpointConfig"]["S3Uri"] == f"s3://{bucket}/ck/{index}"
        first = (played.folder / f"saw-{index}").read_text().splitlines()[0]
        assert first == f"sw {index} {TASKS} 0 {TASKS - 1}"


def test_few_tasks_ever_wait_as_jobs(played: Played) -> None:
    assert 0 < played.most_waiting <= MOST_WAITING_JOBS


def test_the_array_says_what_became_of_its_tasks(played: Played) -> None:
    view = played.view
    assert view["state"] == "failed"
    assert view["tasks"] == {
        "total": TASKS,
        "waiting": 0,
        "held": 0,
        "running": 0,
        "completed": TASKS - len(FAILING) - len(CANCELLED),
        "failed": len(FAILING),
        "stopped": len(CANCELLED),
    }
    assert (view["failed"], view["stopped"]) == ("7,9", "40-47")


def test_the_failed_tasks_run_again_with_their_values_and_checkpoints(played: Played) -> None:
    assert (played.rerun["state"], played.rerun["rerun_of"]) == ("completed", "sw")
    again = created(played, played.rerun["name"])
    assert sorted(again) == sorted(FAILING)
    first = created(played, "sw")
    for index, body in again.items():
        assert body["HyperParameters"] == first[index]["HyperParameters"]
        assert body["CheckpointConfig"] == first[index]["CheckpointConfig"]
        saw = (played.folder / f"saw-{index}").read_text().splitlines()
        assert saw == [
            f"sw {index} {TASKS} 0 {TASKS - 1}",
            f"{played.rerun['name']} {index} {TASKS} 0 {TASKS - 1}",
        ]
