"""A job that asks for the cheapest shape starts where earlier runs of its program got most for a dollar."""

from pathlib import Path

import pytest

from tests.e2e.plane import INSTANCE_TYPE, Document, Plane, running_plane, tags

pytestmark = pytest.mark.thorough

LARGE, SMALL = INSTANCE_TYPE, "ml.m5.large"
POLICY = {
    "version": 1,
    "pools": [{"name": "main", "capacity": {LARGE: 1, SMALL: 2}}],
    "prices": {LARGE: 0.4, SMALL: 0.1},
}
METRIC = {"Name": "train:tok_s", "Regex": "tok_s=([0-9.]+)"}
TRAINED_SECONDS = 600


def request(plane: Plane, name: str, shapes: str, end: Path) -> Document:
    """One run of the program ``bert``, which prints how fast it is."""
    per_second = "100.0" if shapes.startswith(SMALL) else "250.0"
    script = f'echo tok_s={per_second}; while [ ! -e "$0" ]; do sleep 0.05; done'
    body = plane.request(
        name, ["sh", "-c", script, str(end)], Tags=tags(**{"trainmaster:alternatives": shapes})
    )
    body["AlgorithmSpecification"]["MetricDefinitions"] = [METRIC]
    return body


def train(plane: Plane, name: str, shape: str, folder: Path) -> None:
    end = folder / name
    plane.add(request(plane, name, shape, end))
    plane.clock(120)
    plane.await_status(name, "Training")
    plane.await_log(name, "tok_s=")
    plane.clock(TRAINED_SECONDS)
    end.touch()
    plane.await_status(name, "Uploading", "Completed")
    plane.clock(120)
    plane.await_state(name, "completed")


def test_a_third_job_starts_in_the_shape_with_more_work_per_dollar(tmp_path: Path) -> None:
    with running_plane(tmp_path, "--clock", "manual", "--speed", "60", policy=POLICY) as plane:
        refused = plane.call("POST", "/add-job", request(plane, "bert-0", "cheapest", tmp_path / "x"))
        assert (refused.status, refused.document["errors"][0]["field"]) == (400, "Tags[0].Value")
        for number in (1, 2):
            train(plane, f"bert-{number}", f"{LARGE}=1", tmp_path)
            train(plane, f"bert-1{number}", f"{SMALL}=1", tmp_path)
        end = tmp_path / "end"
        plane.add(request(plane, "bert-3", "cheapest", end))
        plane.clock(120)
        job = plane.await_state("bert-3", "running")
        assert job["instances"] == {SMALL: 1}
        because = f"1 x {SMALL}: 1.60x the tokens per USD of 1 x {LARGE}, measured on 4 runs"
        assert job["shapes_because"] == because
        (start,) = [line for line in job["history"] if line["to"] == "starting"]
        assert start["reason"] == {"code": "cheapest", "message": because}
        end.touch()
