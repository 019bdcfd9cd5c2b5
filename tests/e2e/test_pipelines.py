"""Jobs that wait for others, on the twin: the program of the guide, a chain of 50, a fan-out of 300."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.e2e.plane import Document, Plane, eventually, pool, running_plane, until_exists
from tests.markdown import ROOT

PROGRAM = ROOT / "docs/examples/pipelines/three_steps.py"
LIMITS = {"max_submissions_per_minute": 100_000, "max_waiting": 5000}

pytestmark = pytest.mark.thorough


def policy(instances: int) -> Document:
    document = pool(instances)
    document["pools"][0] |= {"limits": LIMITS, "warm_pool": {"keep_alive": "0s", "retain": "0s"}}
    return document


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with running_plane(tmp_path_factory.mktemp("pipelines"), policy=policy(40)) as running:
        yield running


def submit(plane: Plane, name: str, *parents: str, command: Sequence[str] = ("true",)) -> Document:
    tags = [{"Key": "trainmaster:after", "Value": " ".join(parents)}] if parents else []
    return plane.add(plane.request(name, list(command), Tags=tags))


def creates(plane: Plane) -> list[str]:
    """Training jobs in the order in which they were created."""
    records = [one for one in plane.twin.records() if one.get("operation") == "CreateTrainingJob"]
    done = [one for one in records if one["status"] == 200]
    return [str(one["params"]["TrainingJobName"]) for one in done]


def waiting(plane: Plane) -> int:
    """How many jobs wait, for others or for their turn."""
    return int(plane.call("GET", "/pools").document["pools"][0]["waiting"])


def ended(plane: Plane, *names: str) -> dict[str, Any]:
    """The states of these jobs as soon as all have ended."""

    def states() -> dict[str, Any]:
        return {name: plane.job(f"{name}?estimate=false")["state"] for name in names}

    return eventually(states, lambda seen: set(seen.values()) <= {"completed", "failed", "stopped"})


def test_the_program_of_the_guide_runs_as_it_stands(plane: Plane, tmp_path: Any) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps(plane.request("any", ["true"])))
    env = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    env |= plane.twin.environment() | {"PYTHONPATH": os.pathsep.join([str(ROOT / "client"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(request), "7"],
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("prepare-7  ")
    assert any(line.startswith("`- train-7  pending") for line in lines), lines
    assert any("`- afterany clean-7  pending" in line for line in lines), lines
    assert lines[-1] == "completed"
    assert creates(plane) == ["prepare-7", "train-7", "clean-7"]


def test_a_chain_of_50_runs_one_after_the_other(plane: Plane) -> None:
    names = [f"link-{number:02d}" for number in range(50)]
    submit(plane, names[0])
    for parent, name in itertools.pairwise(names):
        submit(plane, name, parent)
    eventually(lambda: plane.job(names[-1])["state"], lambda state: state == "completed", patience=600)
    assert [name for name in creates(plane) if name.startswith("link-")] == names


def test_a_fan_out_of_300_starts_once_its_root_has_completed_and_each_once(
    plane: Plane, tmp_path: Any
) -> None:
    gate = tmp_path / "gate"
    submit(plane, "root", command=until_exists(gate))
    names = [f"leaf-{number:03d}" for number in range(300)]
    for name in names:
        assert submit(plane, name, "root")["waiting"]["code"] == "dependency"
    plane.await_state("root", "running")
    assert plane.job("root")["dependents_count"] == 300
    assert not [name for name in creates(plane) if name.startswith("leaf-")]
    gate.touch()
    eventually(lambda: waiting(plane), lambda count: count == 0, patience=900)
    assert sorted(name for name in creates(plane) if name.startswith("leaf-")) == names


def test_a_root_that_fails_ends_what_waits_for_it_and_says_so_once(plane: Plane) -> None:
    submit(plane, "bad", command=("sh", "-c", "exit 3"))
    submit(plane, "behind", "bad")
    submit(plane, "further", "afterok:behind")
    submit(plane, "anyway", "afterany:behind")
    assert ended(plane, "bad", "behind", "further", "anyway") == {
        "bad": "failed",
        "behind": "stopped",
        "further": "stopped",
        "anyway": "completed",
    }
    assert "bad failed" in plane.job("further")["reason"]["message"]
