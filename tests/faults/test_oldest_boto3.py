"""L6: what a program sees of its jobs with the oldest boto3 and with the newest, on one twin."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.twin_process import TwinProcess, running_twin
from tests.faults import boto3_program
from tests.faults.other_environments import python_of

pytestmark = pytest.mark.thorough

POLICY = {"version": 1, "pools": [{"name": "cpu", "capacity": {"ml.m5.xlarge": 1}}]}
AIO = ".venv-aio"
"""With what aiobotocore pins, which is the floor."""


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwinProcess]:
    with running_twin(tmp_path_factory.mktemp("twin"), policy=POLICY) as running:
        yield running


def seen_by(twin: TwinProcess, python: str | Path, prefix: str) -> tuple[str, dict[str, Any]]:
    """Version of botocore, and what the program saw."""
    env = {name: text for name, text in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
    command = [str(python), boto3_program.__file__, prefix]
    ran = subprocess.run(
        command, env=env | twin.environment(), capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    return told["botocore"], told["seen"]


def test_L6_the_oldest_and_the_newest_boto3_see_the_same_of_jobs_that_wait_run_and_end(
    twin: TwinProcess,
) -> None:
    oldest, seen = seen_by(twin, python_of(AIO), "oldest")
    newest, expected = seen_by(twin, sys.executable, "newest")
    assert oldest.startswith("1.40."), f"the floor moved: {oldest}; correct hook._FLOOR and docs/sdk.md"
    assert newest != oldest
    assert seen == expected
    arn = f"arn:aws:sagemaker:us-east-1:{twin.ready['account_id']}:training-job"
    facts: dict[str, Any] = {
        "created": f"{arn}/first",
        "again": f"{arn}/first",
        "taken": ["ResourceInUse", 409, "ResourceInUse"],
        "waiting": ["InProgress", "Pending", f"{arn}/second"],
        "stopped": ["Stopped", "Stopped", f"{arn}/second"],
        "stopped twice": ["ValidationException", 400, "ClientError"],
        "tags": [{"Key": "priority", "Value": "3"}],
        "invalid": ["ValidationException", 400, "ClientError"],
        "unknown": ["ValidationException", 400, "ClientError"],
        "completed": ["Completed", "Completed", f"{arn}/first"],
        "final": [["loss", 3.5]],
        "lines": ["loss=3.5", "begun", "done"],
        "statistics": [3.5],
        "data": [["loss", "loss", [3.5]]],
    }
    assert {name: seen[name] for name in facts} == facts
    assert (seen["steps"][0], seen["steps"][-1]) == ("Pending", "Completed")
