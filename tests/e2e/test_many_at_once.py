"""Twenty submissions at the same moment into a pool with three instances."""

import multiprocessing
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.plane import Document, Plane, eventually, pool, python, running_plane
from tests.e2e.signing import send, signed

pytestmark = pytest.mark.thorough

JOBS = 20
CAPACITY = 3
NAMES = [f"many-{number:02d}" for number in range(JOBS)]
TRAINING_SECONDS = 0.7
"""Long enough for three to overlap whatever the machine does meanwhile."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    """The twin's own waits are short, so that the run is about the plane."""
    folder = tmp_path_factory.mktemp("many")
    with running_plane(folder, "--speed", "600", policy=pool(CAPACITY)) as running:
        yield running


@pytest.fixture(scope="module")
def journal(plane: Plane) -> list[Document]:
    """What happened from the submissions until every job was over."""
    assert submit_all_at_once(plane) == [201] * JOBS
    eventually(plane.queue, lambda queue: queue == [])
    assert {name: plane.job(name)["state"] for name in NAMES} == dict.fromkeys(NAMES, "completed")
    return plane.twin.records()


def submit_all_at_once(plane: Plane) -> list[int]:
    """One process a job; each has its request signed and ready before any of them sends."""
    context = multiprocessing.get_context("fork")
    together, answers = context.Barrier(JOBS), context.SimpleQueue()

    def submit(name: str) -> None:
        request = plane.request(name, python(f"import time;time.sleep({TRAINING_SECONDS})"))
        call = signed(plane.unsigned("POST", "/add-job", request), plane.keys, plane.scope)
        together.wait()
        answers.put(send(call).status)

    submitters = [context.Process(target=submit, args=(name,)) for name in NAMES]
    for one in submitters:
        one.start()
    for one in submitters:
        one.join()
    return [answers.get() for _ in range(JOBS)]


def test_never_more_than_the_capacity_runs_and_at_some_time_all_of_it(journal):
    alive, most = 0, 0
    for record in journal:
        if record["kind"] == "process" and record["event"] in {"start", "exit"}:
            alive += 1 if record["event"] == "start" else -1
            most = max(most, alive)
    assert (most, alive) == (CAPACITY, 0)


def test_every_job_runs_in_one_process(journal):
    starts = Counter(
        one["training_job"] for one in journal if one["kind"] == "process" and one["event"] == "start"
    )
    assert starts == dict.fromkeys(NAMES, 1)


def test_every_name_has_one_accepted_create(journal):
    accepted = Counter(
        one["params"]["TrainingJobName"]
        for one in journal
        if one["kind"] == "call" and one["operation"] == "CreateTrainingJob" and one["status"] == 200
    )
    assert accepted == dict.fromkeys(NAMES, 1)


def test_every_submission_was_accepted_once(journal):
    answers = Counter(one["status"] for one in journal if one.get("operation") == "POST /add-job")
    assert answers == {201: JOBS}
