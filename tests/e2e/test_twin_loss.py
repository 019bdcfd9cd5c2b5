"""From a line in a job's log to a stopped job, by the rule on the loss: all through the deployed stack."""

from collections.abc import Iterator

import pytest

from tests.e2e.plane import INSTANCE_TYPE, Plane, python, running_plane

pytestmark = pytest.mark.thorough

POLICY = {
    "version": 1,
    "pools": [{"name": "cpu", "capacity": {INSTANCE_TYPE: 2}}],
    "loss": {"metric": "train:loss", "non_finite": "stop", "warn_first": "10m"},
}
BAD, GOOD = "nan", "0.5"
A_LOOK, WARN_FIRST = 6 * 60, 10 * 60
"""Seconds in which each job's log is read once, and from the notice to the stop."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("loss")
    with running_plane(folder, "--clock", "manual", policy=POLICY) as running:
        yield running


def submit(plane: Plane, name: str, loss: str) -> None:
    prints = f"[print(f'step={{step}} loss={loss}', flush=True) for step in range(9)]"
    request = plane.request(
        name,
        python(f"import time; {prints}; time.sleep(600)"),
        StoppingCondition={"MaxRuntimeInSeconds": 86400},
    )
    request["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": "train:loss", "Regex": "loss=([0-9.]+)"}
    ]
    plane.add(request)


def test_a_job_whose_loss_is_nan_is_warned_then_stopped_and_a_healthy_one_is_not(plane):
    submit(plane, "diverged", BAD)
    submit(plane, "healthy", GOOD)
    plane.clock(60)
    for name, loss in (("diverged", BAD), ("healthy", GOOD)):
        plane.await_log(name, f"step=8 loss={loss}")
    plane.clock(A_LOOK)
    assert plane.job("diverged")["state"] == "running", "it is warned first"
    plane.clock(WARN_FIRST + A_LOOK)
    diverged = plane.job("diverged")
    assert (diverged["state"], diverged["reason"]["code"]) == ("stopped", "loss-not-finite")
    assert "train:loss is nan at step 6" in diverged["reason"]["message"]
    assert plane.job("healthy")["state"] == "running"
    stops = [
        (call["principal"].rpartition("/")[2], call["params"]["TrainingJobName"])
        for call in plane.calls("StopTrainingJob")
    ]
    assert stops == [("schedule", "diverged")]
