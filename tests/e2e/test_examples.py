"""Programs of the guides, as files that a reader would save, run against a twin of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.plane import Plane, running_plane
from tests.markdown import ROOT

DOORS = ROOT / "docs/examples/doors"
POLICY = ROOT / "docs/examples/policies/first.yaml"
PYTHON_OF_V3 = ROOT / ".venv-v3/bin/python"
PATIENCE_SECONDS = 240

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    policy = yaml.safe_load(POLICY.read_text())
    with running_plane(tmp_path_factory.mktemp("examples"), policy=policy) as running:
        yield running


def run(plane: Plane, folder: Path, *command: str) -> str:
    """What it printed. Telemetry of the SDK, which would ask for an address of AWS, is off."""
    quiet = folder / "sagemaker.yaml"
    quiet.write_text("SchemaVersion: '1.0'\nSageMaker: {PythonSDK: {Modules: {TelemetryOptOut: true}}}\n")
    env = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    env |= plane.twin.environment() | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "client"), str(ROOT)]),
        "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
        "SAGEMAKER_USER_CONFIG_OVERRIDE": str(quiet),
        "SAGEMAKER_VALIDATE_ROLE": "false",  # SDK v3 asks IAM for what the twin has no answer to
    }
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def completed(plane: Plane) -> list[str]:
    """Names of completed jobs, in the order of their submission."""
    jobs = plane.call("GET", "/jobs?state=completed").document["jobs"]
    return [str(job["name"]) for job in sorted(jobs, key=lambda job: str(job["submitted_at"]))]


def test_boto3_submits_the_request_of_the_guide_and_follows_it_to_its_end(
    plane: Plane, tmp_path: Path
) -> None:
    request = str(ROOT / "docs/examples/requests/job.json")
    printed = run(plane, tmp_path, sys.executable, str(DOORS / "boto3_after.py"), request)
    assert printed.splitlines()[-1] == "Completed Completed"
    assert plane.job("my-job")["attempts"][0]["status"] == "Completed"


@pytest.mark.parametrize("program", ["first_fit.py", "fit_after.py"])
def test_fit_returns_when_the_job_of_the_queue_has_completed(
    plane: Plane, tmp_path: Path, program: str
) -> None:
    before = completed(plane)
    run(plane, tmp_path, sys.executable, str(DOORS / program))
    assert len(completed(plane)) == len(before) + 1


@pytest.mark.skipif(not PYTHON_OF_V3.exists(), reason="SDK v3 is in an environment of its own: make test-v3")
def test_train_returns_when_the_job_of_the_queue_has_completed(plane: Plane, tmp_path: Path) -> None:
    before = completed(plane)
    run(plane, tmp_path, str(PYTHON_OF_V3), str(DOORS / "train_after.py"))
    assert len(completed(plane)) == len(before) + 1
