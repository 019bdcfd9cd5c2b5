"""A pool with a training plan, from outside: its window opens, drains and closes, and the queue goes on."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.plane import Document, Plane, running_plane, tags

pytestmark = pytest.mark.thorough

P5 = "ml.p5.48xlarge"
START = datetime.fromisoformat("2026-12-01T08:00:00+00:00")
WINDOW_HOURS, FEE = 4, 800
CLOSES = START + timedelta(hours=WINDOW_HOURS, minutes=-30)
"""When SageMaker begins to end the plan's instances."""
SAVES = """
import os, pathlib, signal, sys
file = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"], "step")
step = int(file.read_text()) if file.exists() else 0
print(f"begins at {step}", flush=True)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
asked = None
while asked is None and not pathlib.Path(sys.argv[1]).exists():
    asked = signal.sigtimedwait({signal.SIGTERM}, 0.02)
    step += 1
file.write_text(str(step))
print(f"leaves at {step}", flush=True)
sys.exit(143 if asked else 0)
"""
"""Counts until a file is there; when it is asked to stop, it saves how far it came."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    plane: Plane
    program: Path
    gate: Path
    plan: str

    def submit(self, name: str, *, saves: bool = True, hours: int = 40, **options: str) -> None:
        bucket = self.plane.twin.ready["bucket"]
        checkpoints = {"S3Uri": f"s3://{bucket}/{name}/"} if saves else None
        command = ["python", str(self.program), str(self.gate)]
        self.plane.add(
            self.plane.request(
                name,
                command,
                ResourceConfig={"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 10},
                CheckpointConfig=checkpoints,
                StoppingCondition={"MaxRuntimeInSeconds": hours * 3600},
                Tags=tags(**{f"trainmaster:{key}": value for key, value in options.items()}),
            )
        )

    def go_to(self, instant: datetime) -> None:
        now = datetime.fromisoformat(self.plane.control("/clock", {"advance_seconds": 0})["clock"])
        self.plane.clock((instant - now).total_seconds())

    def attempts(self, name: str) -> list[str]:
        return [one["training_job_name"] for one in self.plane.job(name)["attempts"]]

    def plans_of(self, name: str) -> list[str | None]:
        """The plan of each attempt."""
        return [
            self.plane.described(attempt)["ResourceConfig"].get("TrainingPlanArn")
            for attempt in self.attempts(name)
        ]

    def on_plan(self) -> int:
        shown = self.plane.client("sagemaker").describe_training_plan(TrainingPlanName=self.plan)
        return int(shown["InUseInstanceCount"])

    def lost_steps(self, name: str) -> int:
        """Steps that an attempt had done and the next one did again."""
        said = [self.plane.log(attempt).splitlines() for attempt in self.attempts(name)]
        steps = [
            {line.split()[0]: int(line.split()[2]) for line in lines if " at " in line} for lines in said
        ]
        return sum(before["leaves"] - after["begins"] for before, after in pairwise(steps))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("plans")
    policy = {"version": 1, "pools": [{"name": "p5", "capacity": {P5: 1}}]}
    options = ("--clock", "manual", "--start", START.isoformat())
    with running_plane(folder, *options, policy=policy) as plane:
        window = {
            "from": START.isoformat(),
            "to": (START + timedelta(hours=WINDOW_HOURS)).isoformat(),
        }
        bought = {"name": "spring", "instance_type": P5, "instances": 2, "windows": [window], "fee_usd": FEE}
        arn = plane.control("/plan", bought)["arn"]
        pools = [{"name": "p5", "capacity": {P5: 1}, "plans": [{"arn": arn}]}]
        answer = plane.call("PUT", "/policy", {"version": 1, "pools": pools})
        assert answer.status == 200, answer.body
        plane.clock(180)  # every function has read the policy and the plan by now
        program = folder / "program.py"
        program.write_text(SAVES, encoding="utf-8")
        yield Scene(plane=plane, program=program, gate=folder / "gate", plan=arn)


def pool_of(plane: Plane) -> Document:
    [pool] = plane.call("GET", "/pools").document["pools"]
    found: Document = pool
    return found


def check_unused(plane: Plane, arn: str) -> None:
    """The last 40 minutes of both instances were paid and not used, and what starts and ends took."""
    [unused] = plane.call("GET", "/usage").document["unused_plan"]
    assert (unused["arn"], unused["paid_hours"]) == (arn, 2.0 * WINDOW_HOURS)
    drained = 2 * 40 / 60
    assert drained <= unused["instance_hours"] < drained + 0.5
    assert unused["usd"] == pytest.approx(unused["instance_hours"] * FEE / (2 * WINDOW_HOURS), abs=0.5)


def test_a_plan_of_four_hours_from_its_first_job_to_the_queue_without_it(scene: Scene) -> None:
    plane = scene.plane
    [plan] = pool_of(plane)["plans"]
    assert (plan["arn"], plan["status"], plan["instances"]) == (scene.plan, "Active", 2)
    for number in range(3):
        scene.submit(f"saves-{number}")
        plane.clock(1)
    scene.submit("plain", saves=False)
    plane.clock(120)
    states = {name: plane.job(name)["state"] for name in ("saves-0", "saves-1", "saves-2", "plain")}
    assert states == {"saves-0": "running", "saves-1": "running", "saves-2": "running", "plain": "pending"}
    assert [scene.plans_of(f"saves-{number}") for number in range(3)] == [[scene.plan], [scene.plan], [None]]
    assert (scene.on_plan(), pool_of(plane)["used"]["plan"]) == (2, {P5: 2})

    scene.go_to(CLOSES)

    assert scene.on_plan() == 0
    assert (
        plane.client("sagemaker").list_training_jobs(
            TrainingPlanArnEquals=scene.plan, StatusEquals="InProgress"
        )["TrainingJobSummaries"]
        == []
    )
    for name in ("saves-0", "saves-1"):
        stopped = plane.job(name)
        assert (stopped["state"], stopped["preemptions"]) in {("pending", 0), ("preempted", 0)}
        assert "window" in {line["reason"]["code"] for line in stopped["history"] if line["reason"]}
    assert plane.job("saves-2")["state"] == "running"

    scene.go_to(START + timedelta(hours=WINDOW_HOURS, minutes=5))
    scene.gate.touch()
    plane.clock(1200)

    ended = {name: plane.job(name)["state"] for name in states}
    assert ended == dict.fromkeys(states, "completed")
    assert {name: scene.lost_steps(name) for name in states} == dict.fromkeys(states, 0)
    assert [scene.plans_of(f"saves-{number}")[-1] for number in range(3)] == [None, None, None]
    assert scene.plans_of("plain") == [None]
    check_unused(plane, scene.plan)
