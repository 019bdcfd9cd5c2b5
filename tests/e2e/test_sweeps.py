"""Arrays on the twin from a user's side: the programs of the guide, the tag under boto3, the command line."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from trainmaster_client.hook import install

from tests.e2e.plane import Document, Plane, eventually, pool, running_plane
from tests.markdown import ROOT

EXAMPLES = ROOT / "docs/examples/sweeps"
COMMAND = [sys.executable, "-c", "from trainmaster_client.cli import main; main()"]

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    policy = pool(3)
    policy["pools"][0] |= {"warm_pool": {"keep_alive": "0s", "retain": "0s"}}
    with running_plane(tmp_path_factory.mktemp("sweeps"), policy=policy) as running:
        yield running


def environment(plane: Plane) -> dict[str, str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    paths = [str(ROOT / "client"), str(ROOT / "layers/trainmaster"), str(ROOT)]
    return env | plane.twin.environment() | {"PYTHONPATH": os.pathsep.join(paths)}


def ran(plane: Plane, *arguments: str) -> str:
    done = subprocess.run(
        [*arguments], env=environment(plane), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def saved(plane: Plane, folder: Path, name: str = "any", **fields: Any) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(plane.request(name, ["true"], **fields)))
    return str(path)


def starts(plane: Plane, array: str) -> dict[str, Document]:
    """CreateTrainingJob of each task that was started, by name; each only once."""
    records = [record for record in plane.calls("CreateTrainingJob") if record["status"] == 200]
    names = [str(record["params"]["TrainingJobName"]) for record in records]
    assert len(names) == len(set(names))
    return {
        name: record["params"]
        for name, record in zip(names, records, strict=True)
        if name.startswith(f"{array}-")
    }


def test_the_program_of_the_guide_runs_as_it_stands(plane: Plane, tmp_path: Path) -> None:
    printed = ran(plane, sys.executable, str(EXAMPLES / "rates.py"), saved(plane, tmp_path), "7")
    assert "sweep-7: completed, 6 of 6 completed" in printed
    heads, *rows = printed.splitlines()[-7:]
    assert heads.split()[:4] == ["index", "lr", "seed", "state"]
    assert [row.split()[4] for row in rows] == ["completed"] * 6
    started = starts(plane, "sweep-7")
    assert sorted(started) == [f"sweep-7-{index}" for index in range(6)]
    values = [started[f"sweep-7-{index}"]["HyperParameters"] for index in range(6)]
    assert [(row["lr"], row["seed"]) for row in values][:3] == [("0.1", "1"), ("0.1", "2"), ("0.01", "1")]
    environments = [started[f"sweep-7-{index}"]["Environment"] for index in range(6)]
    assert [variables["TRAINMASTER_ARRAY_INDEX"] for variables in environments] == list("012345")


def test_the_program_of_the_handles_page_runs_as_it_stands(plane: Plane, tmp_path: Path) -> None:
    printed = ran(plane, sys.executable, str(EXAMPLES / "handle.py"), saved(plane, tmp_path), "1")
    assert "rates-1: completed, 2 of 2 completed" in printed


def test_the_tag_makes_boto3_train_an_array_as_one_training_job(plane: Plane) -> None:
    ready = plane.twin.ready
    session = boto3.Session(ready["access_key_id"], ready["secret_access_key"], region_name=ready["region"])
    install(session, api_url=ready["api_url"])
    sagemaker = session.client("sagemaker", endpoint_url=ready["endpoint_url"])
    tags = [{"Key": "trainmaster:array", "Value": "1 3 5@2"}]
    request = plane.request("tagged", ["sh", "-c", "test $TRAINMASTER_ARRAY_INDEX != 3"], Tags=tags)
    assert sagemaker.create_training_job(**request)["TrainingJobArn"].endswith(":training-job/tagged")

    def described() -> Document:
        return dict(sagemaker.describe_training_job(TrainingJobName="tagged"))

    end = eventually(described, lambda seen: seen["TrainingJobStatus"] != "InProgress")
    assert (end["TrainingJobStatus"], end["FailureReason"]) == ("Failed", "1 of 3 tasks failed: 3")
    assert "Tags" not in starts(plane, "tagged")["tagged-1"] or all(
        tag["Key"] != "trainmaster:array" for tag in starts(plane, "tagged")["tagged-1"]["Tags"]
    )


def test_the_command_line_sweeps_cancels_a_range_and_runs_the_failed_again(
    plane: Plane, tmp_path: Path
) -> None:
    file = saved(plane, tmp_path, "cli", HyperParameters={"lr": "0.1"})
    dry = ran(plane, *COMMAND, "sweep", file, "--grid", "lr=1,2,3,4", "--at-most", "1", "--dry-run")
    assert "4 tasks, at most 1 at once." in dry
    assert "cli: pending, 0 of 4" in ran(
        plane, *COMMAND, "sweep", file, "--grid", "lr=1,2,3,4", "--at-most", "1"
    )
    ran(plane, *COMMAND, "cancel", "cli", "--tasks", "3")
    view = eventually(
        lambda: json.loads(ran(plane, *COMMAND, "arrays", "cli", "--json")),
        lambda seen: seen["state"] in {"completed", "failed", "stopped"},
    )
    assert (view["state"], view["stopped"]) == ("failed", "3")
    again = json.loads(ran(plane, *COMMAND, "rerun", "cli", "--tasks", "3", "--json"))["array"]["name"]
    eventually(
        lambda: json.loads(ran(plane, *COMMAND, "show", again, "--json"))["state"],
        lambda state: state == "completed",
    )
    table = ran(plane, *COMMAND, "results", "cli", "--csv").splitlines()
    assert table[0].startswith("index,lr,state")
    assert table[4].startswith("3,4,stopped")
