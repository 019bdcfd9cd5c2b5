"""A HyperparameterTuner under install(): its trials are jobs of the queue, one of them is preempted."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from sagemaker.estimator import Estimator
from sagemaker.session import Session
from sagemaker.tuner import CategoricalParameter, HyperparameterTuner
from trainmaster_client.hook import install, uninstall

from tests.e2e.plane import IMAGE, INSTANCE_TYPE, Plane, eventually, pool, running_plane, tags
from tests.integration.client.sdk_world import TELEMETRY

pytestmark = pytest.mark.thorough

TRAIN = """
import argparse, os, time
options = argparse.ArgumentParser()
for name in ("--rate", "--depth", "--kind"):
    options.add_argument(name)
found = options.parse_args()
print("begun", flush=True)
while found.depth == "3" and not os.path.exists(os.environ["GO"]):
    time.sleep(0.05)
print(f"loss={(float(found.rate) - 0.1) ** 2 + (found.kind == 'b')};", flush=True)
"""
LOSS = [{"Name": "loss", "Regex": "loss=([0-9.e-]+);"}]


@pytest.fixture
def plane(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plane]:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with running_plane(tmp_path, "--speed", "60", policy=pool(2)) as running, patch(TELEMETRY):
        for name, value in running.twin.environment().items():
            monkeypatch.setenv(name, value)
        yield running
        uninstall()


def tuner(plane: Plane, folder: Path, ranges: dict[str, Any], **options: Any) -> HyperparameterTuner:
    (folder / "train.py").write_text(TRAIN)
    bucket = plane.twin.ready["bucket"]
    estimator = Estimator(
        image_uri=IMAGE,
        role=plane.twin.ready["role_arn"],
        instance_count=1,
        instance_type=INSTANCE_TYPE,
        output_path=f"s3://{bucket}/out",
        entry_point=str(folder / "train.py"),
        environment={"GO": str(folder / "go")},
        sagemaker_session=Session(boto3.Session(), default_bucket=bucket),
    )
    values: dict[str, Any] = {
        "objective_type": "Minimize",
        "metric_definitions": LOSS,
        "max_jobs": 4,
        "max_parallel_jobs": 2,
        "tags": tags(priority="1"),
    }
    return HyperparameterTuner(estimator, "loss", ranges, **values | options)


def preempt_one(plane: Plane, name: str, flag: Path) -> threading.Thread:
    """More urgent jobs take both instances while a trial waits for the flag; then it may end."""

    def act() -> None:
        trials = eventually(
            lambda: [one for one, state in plane.queue() if one.startswith(name) and state == "running"],
            lambda found: len(found) == 2,
        )
        for one in trials:
            plane.await_log(one, "begun")
        urgent = plane.request("urgent", ["true"], Tags=tags(priority="9"))
        plane.add(urgent | {"ResourceConfig": urgent["ResourceConfig"] | {"InstanceCount": 2}})
        eventually(lambda: [plane.job(one)["attempt"] for one in trials], lambda found: 1 in found)
        flag.touch()

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def created_by(plane: Plane) -> set[str]:
    return {one["principal"].rpartition("/")[2] for one in plane.calls("CreateTrainingJob")}


def test_a_grid_of_four_trials_is_tuned_through_the_queue_and_one_of_them_is_preempted(
    plane: Plane, tmp_path: Path
) -> None:
    install()
    ranges = {"kind": CategoricalParameter(["a", "b"]), "rate": CategoricalParameter([0.1, 0.4])}
    found = tuner(plane, tmp_path, ranges, strategy="Grid")
    found.estimator.set_hyperparameters(depth=3)
    other = preempt_one(plane, "grid", tmp_path / "go")
    found.fit(job_name="grid")
    other.join()

    described = found.describe()
    assert described["HyperParameterTuningJobStatus"] == "Completed"
    assert described["TrainingJobStatusCounters"]["Completed"] == 4
    assert described["ObjectiveStatusCounters"] == {"Succeeded": 4, "Pending": 0, "Failed": 0}
    frame = found.analytics().dataframe()
    assert sorted(round(value, 2) for value in frame["FinalObjectiveValue"]) == [0, 0.09, 1, 1.09]
    best = plane.job(found.best_training_job())
    assert best["state"] == "completed"
    assert (
        round(frame.set_index("TrainingJobName").loc[found.best_training_job()]["FinalObjectiveValue"], 2)
        == 0
    )
    assert max(plane.job(name)["attempt"] for name in frame["TrainingJobName"]) >= 1
    assert created_by(plane) == {"schedule"}

    attached = HyperparameterTuner.attach("grid", sagemaker_session=found.sagemaker_session)
    assert attached.best_training_job() == found.best_training_job()
    assert attached.best_estimator().model_data.endswith("/output/model.tar.gz")
