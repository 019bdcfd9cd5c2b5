"""Programs of the guides, as files that a reader would save, run against a twin of their own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from local.account.document import healthy
from tests import shell
from tests.e2e.plane import Plane, running_plane
from tests.markdown import ROOT, blocks, text_of

EXAMPLES = ROOT / "docs/examples"
DOORS = EXAMPLES / "doors"
POLICY = EXAMPLES / "policies/first.yaml"
PYTHON_OF_V3 = ROOT / ".venv-v3/bin/python"
PATIENCE_SECONDS = 240

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    policy = yaml.safe_load(POLICY.read_text())
    with running_plane(tmp_path_factory.mktemp("examples"), policy=policy) as running:
        yield running


def run(plane: Plane, *command: str, folder: Path = ROOT) -> str:
    """What it printed."""
    env = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    env |= plane.twin.environment()
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "client"), str(ROOT)])
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A stack as it is after its deployment: without a policy."""
    with running_plane(tmp_path_factory.mktemp("fresh"), policy={"version": 1}) as running:
        yield running


def completed(plane: Plane) -> list[str]:
    """Names of completed jobs, in the order of their submission."""
    jobs = plane.call("GET", "/jobs?state=completed").document["jobs"]
    return [str(job["name"]) for job in sorted(jobs, key=lambda job: str(job["submitted_at"]))]


def test_boto3_submits_the_request_of_the_guide_and_follows_it_to_its_end(
    plane: Plane, tmp_path: Path
) -> None:
    request = str(EXAMPLES / "job.json")
    printed = run(plane, sys.executable, str(DOORS / "boto3_after.py"), request)
    assert printed.splitlines()[-1] == "Completed Completed"
    assert plane.job("my-job")["attempts"][0]["status"] == "Completed"


@pytest.mark.parametrize("program", ["first_fit.py", "fit_after.py"])
def test_fit_returns_when_the_job_of_the_queue_has_completed(
    plane: Plane, tmp_path: Path, program: str
) -> None:
    before = completed(plane)
    run(plane, sys.executable, str(DOORS / program))
    assert len(completed(plane)) == len(before) + 1


@pytest.mark.skipif(not PYTHON_OF_V3.exists(), reason="SDK v3 is in an environment of its own: make test-v3")
def test_train_returns_when_the_job_of_the_queue_has_completed(plane: Plane, tmp_path: Path) -> None:
    before = completed(plane)
    run(plane, str(PYTHON_OF_V3), str(DOORS / "train_after.py"))
    assert len(completed(plane)) == len(before) + 1


def move_account_into(vpc: str, plane: Plane) -> None:
    """Give the twin's account its VPC and endpoints under the id that the guide shows."""
    account = healthy("123456789012")
    (only,) = account["vpcs"]
    endpoints = [endpoint | {"vpc": vpc} for endpoint in account["endpoints"]]
    plane.control("/account", {"set": {"vpcs": [only | {"id": vpc}], "endpoints": endpoints}})


def test_the_commands_from_the_deployment_to_the_first_job_do_what_the_guide_says(
    fresh: Plane, tmp_path: Path
) -> None:
    steps = text_of("docs/guides/deploy.md").partition("## 7.")[0]
    ours = [words for block in blocks(steps, "bash") for words in shell.lines(block.text)]
    (policy,) = blocks(steps, "yaml")
    (tmp_path / "policy.yaml").write_text(policy.text)
    shutil.copy(EXAMPLES / "job.json", tmp_path)
    command = (sys.executable, "-c", "from trainmaster_client.cli import main; main()")
    move_account_into("vpc-0a1b2c3d", fresh)
    said = {
        " ".join(words[1:]): run(fresh, *command, *words[1:], folder=tmp_path)
        for words in ours
        if words[0] == "trainmaster"
    }
    assert list(said) == [
        "preflight --vpc vpc-0a1b2c3d",
        "doctor",
        "policy show",
        "policy validate policy.yaml",
        "policy apply policy.yaml",
        "submit job.json --dry-run",
        "submit job.json",
        "queue",
        "show my-job",
    ]
    assert "my-job" in said["show my-job"]
    fresh.await_state("my-job", "completed")
