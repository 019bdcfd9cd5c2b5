"""A HyperparameterTuner under install(): its trials are jobs of the queue, one of them is preempted."""

import json
import subprocess
import sys
import tarfile
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
from tests.unit.client.tuning.requests import choices, numbers, request

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
with open(os.environ["SM_MODEL_DIR"] + "/weights", "w") as weights:
    weights.write(found.rate)
print(f"loss={(float(found.rate) - 0.1) ** 2 + (found.kind == 'b')};", flush=True)
"""
LOSS = [{"Name": "loss", "Regex": "loss=([0-9.e-]+);"}]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("tuning")
    with running_plane(folder, "--speed", "60", policy=pool(2)) as found, patch(TELEMETRY):
        yield found


@pytest.fixture
def plane(running: Plane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plane]:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
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
    attached.deploy(1, INSTANCE_TYPE, endpoint_name="tuned", wait=False)
    served = boto3.client("sagemaker").describe_endpoint(EndpointName="tuned")
    assert served["EndpointStatus"] in {"Creating", "InService"}


PROGRAM = """
import json, sys, time, boto3
request = json.loads(sys.argv[1])
boto3.client("sagemaker").create_hyper_parameter_tuning_job(**request)
time.sleep(600)
"""


def by_hand(plane: Plane, folder: Path, name: str) -> dict[str, Any]:
    """The request of a caller of boto3, with its script as the SDK would send it."""
    (folder / "train.py").write_text(TRAIN)
    with tarfile.open(folder / "source.tar.gz", "w:gz") as archive:
        archive.add(folder / "train.py", "train.py")
    ready = plane.twin.ready
    boto3.client("s3").upload_file(str(folder / "source.tar.gz"), ready["bucket"], f"{name}/source.tar.gz")
    ranges = numbers(rate=("0.001", "1", "Logarithmic")) | choices(kind=["a", "b"])
    found = request(name, "Bayesian", ParameterRanges=ranges)
    found["TrainingJobDefinition"] |= {
        "StaticHyperParameters": {
            "depth": "1",
            "sagemaker_program": '"train.py"',
            "sagemaker_submit_directory": f'"s3://{ready["bucket"]}/{name}/source.tar.gz"',
        },
        "AlgorithmSpecification": {
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "MetricDefinitions": LOSS,
        },
        "RoleArn": ready["role_arn"],
        "OutputDataConfig": {"S3OutputPath": f"s3://{ready['bucket']}/out"},
        "Environment": {"GO": str(folder / "go")},
    }
    return found


def trainmaster(*arguments: str) -> subprocess.CompletedProcess[str]:
    main = "from trainmaster_client.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", main, *arguments], capture_output=True, text=True, check=False
    )


def test_a_study_whose_process_was_killed_is_attached_to_and_no_trial_starts_twice(
    plane: Plane, tmp_path: Path
) -> None:
    asked = json.dumps(by_hand(plane, tmp_path, "killed"))
    run = "from trainmaster_client.cli import main; main()"
    command = [sys.executable, "-c", run, "run", "--", sys.executable, "-c", PROGRAM, asked]
    with subprocess.Popen(command) as program:
        eventually(lambda: [name for name, _ in plane.queue() if name.startswith("killed-")], bool)
        program.kill()
    shown = trainmaster("tune", "show", "killed", "--json")
    assert json.loads(shown.stdout)["ending"] is None, shown.stderr
    attached = trainmaster("tune", "attach", "killed")
    assert attached.returncode == 0, attached.stderr
    assert "killed: Completed, 4 of 4 trials ended, 0 wait or run; best loss " in attached.stdout
    names = [one["params"]["TrainingJobName"] for one in plane.calls("CreateTrainingJob")]
    trials = [name for name in names if name.startswith("killed-")]
    assert sorted(name.split("-")[1] for name in trials) == ["001", "002", "003", "004"]
    assert created_by(plane) == {"schedule"}
    install()
    listed = boto3.client("sagemaker").list_hyper_parameter_tuning_jobs(NameContains="killed")
    summary = listed["HyperParameterTuningJobSummaries"][0]
    assert (summary["HyperParameterTuningJobName"], summary["Strategy"]) == ("killed", "Bayesian")
    assert summary["HyperParameterTuningJobStatus"] == "Completed"
