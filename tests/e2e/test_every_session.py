"""One ``install()``, or ``trainmaster run``: no CreateTrainingJob of a person reaches SageMaker."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import boto3
import botocore.session
import pytest
from trainmaster_client.hook import install, uninstall

from tests.e2e.plane import Plane, python, running_plane

pytestmark = pytest.mark.thorough

PROGRAM = """
import json, sys, botocore.session
request = json.loads(sys.argv[1])
client = botocore.session.get_session().create_client("sagemaker")
client.create_training_job(**request)
status = client.describe_training_job(TrainingJobName=request["TrainingJobName"])["TrainingJobStatus"]
assert status in {"InProgress", "Completed"}, status
"""


@pytest.fixture
def plane(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plane]:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with running_plane(tmp_path) as running:
        for name, value in running.twin.environment().items():
            monkeypatch.setenv(name, value)
        yield running
        uninstall()


def created_by(plane: Plane) -> dict[str, str]:
    """By name of the training job: who asked SageMaker for it, as the journal has it."""
    calls = plane.calls("CreateTrainingJob")
    return {one["params"]["TrainingJobName"]: one["principal"].rpartition("/")[2] for one in calls}


def test_installed_once_each_kind_of_session_queues(plane: Plane) -> None:
    install()
    clients: dict[str, Any] = {"session": boto3.Session().client("sagemaker")}
    boto3.setup_default_session(region_name=plane.twin.ready["region"])
    clients["default"] = boto3.client("sagemaker")
    clients["botocore"] = botocore.session.get_session().create_client("sagemaker")
    for name, client in clients.items():
        client.create_training_job(**plane.request(name, python("pass")))
    for name, client in clients.items():
        plane.await_state(name, "completed")
        assert client.describe_training_job(TrainingJobName=name)["TrainingJobStatus"] == "Completed"
    assert created_by(plane) == dict.fromkeys(clients, "schedule")


def test_a_program_under_run_and_its_child_queue(plane: Plane, tmp_path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    train = [sys.executable, str(tmp_path / "train.py")]
    parent = f"import subprocess, sys; subprocess.run({train!r} + sys.argv[1:], check=True)"
    main = "from trainmaster_client.cli import main; main()"
    for name, command in {"program": train, "child": [sys.executable, "-c", parent]}.items():
        request = json.dumps(plane.request(name, python("pass")))
        subprocess.run(
            [sys.executable, "-c", main, "run", "--", *command, request], check=True, env=os.environ
        )
        plane.await_state(name, "completed")
    assert created_by(plane) == dict.fromkeys(("program", "child"), "schedule")
