"""An elastic job and an urgent one, from outside: it gives up half of the pool once, and takes it back."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest

from tests.e2e.plane import INSTANCE_TYPE, Document, Plane, running_plane, tags

pytestmark = pytest.mark.thorough

SAVES = """
import os, pathlib, signal, sys, time
file = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"], "step")
print("widths", os.environ.get("TRAINMASTER_WIDTHS"), flush=True)
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
while not asked and not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.02)
file.write_text("saved")
sys.exit(143 if asked else 0)
"""
"""Trains until a file is there, and saves when it is asked to stop."""
CAPACITY = 4


@dataclass(frozen=True, kw_only=True)
class Scene:
    plane: Plane
    folder: Path

    def submit(self, name: str, count: int, *, priority: int = 0, **options: str) -> None:
        program = self.folder / "program.py"
        program.write_text(SAVES, encoding="utf-8")
        bucket = self.plane.twin.ready["bucket"]
        marks = {"priority": str(priority)} | {f"trainmaster:{key}": value for key, value in options.items()}
        self.plane.add(
            self.plane.request(
                name,
                ["python", str(program), str(self.gate(name))],
                ResourceConfig={
                    "InstanceType": INSTANCE_TYPE,
                    "InstanceCount": count,
                    "VolumeSizeInGB": 10,
                },
                CheckpointConfig={"S3Uri": f"s3://{bucket}/{name}/"},
                StoppingCondition={"MaxRuntimeInSeconds": 86_400},
                Tags=tags(**marks),
            )
        )

    def gate(self, name: str) -> Path:
        """The file whose presence lets a job come to its end."""
        return self.folder / f"{name}.done"

    def ends(self, name: str) -> None:
        """Let a job come to its end, and SageMaker bring in its results."""
        self.gate(name).touch()
        attempt = self.plane.job(name)["training_job_name"]
        self.plane.await_status(attempt, "Uploading", "Completed")
        self.plane.clock(120)
        assert self.plane.job(name)["state"] == "completed"

    def attempts(self, name: str) -> list[tuple[int, str | None]]:
        """Instances of each attempt, and the code of its end."""
        attempts: list[Document] = self.plane.job(name)["attempts"]
        return [
            (attempt["instances"][INSTANCE_TYPE], (attempt["reason"] or {}).get("code"))
            for attempt in attempts
        ]

    def most_at_once(self) -> int:
        """Most hosts that ran at one instant of the journal."""
        signs = {"start": 1, "exit": -1}
        changes = [
            signs[record["event"]]
            for record in self.plane.twin.records()
            if record["kind"] == "process" and record["event"] in signs
        ]
        return max(accumulate(changes))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    pool = {"name": "main", "capacity": {INSTANCE_TYPE: CAPACITY}, "preemption": {"min_runtime": "5m"}}
    policy = {"version": 1, "pools": [pool]}
    with running_plane(tmp_path, "--clock", "manual", policy=policy) as plane:
        plane.clock(180)  # every function has read the policy by now
        yield Scene(plane=plane, folder=tmp_path)


def test_an_elastic_job_gives_up_what_an_urgent_one_needs_and_takes_it_back(scene: Scene) -> None:
    plane = scene.plane
    scene.submit("wide", CAPACITY, elastic="1-4")
    plane.clock(600)
    assert scene.attempts("wide") == [(4, None)]
    assert plane.job("wide")["elastic"]["width"] == 4
    plane.await_log("wide", "widths 1-4")

    scene.submit("urgent", 2, priority=100)
    plane.clock(600)
    assert plane.job("urgent")["state"] == "running"
    assert scene.attempts("wide") == [(4, "shrink"), (2, None)]
    wide = plane.job("wide")
    assert (wide["state"], wide["preemptions"]) == ("running", 0)
    assert (wide["elastic"]["width"], wide["elastic"]["wanted"]) == (2, 4)
    assert wide["elastic"]["why"].startswith("2 of 4 instances")
    plane.clock(600)
    assert scene.attempts("wide") == [(4, "shrink"), (2, None)], "it stops once"

    scene.ends("urgent")
    plane.clock(5400)
    assert scene.attempts("wide") == [(4, "shrink"), (2, "grow"), (4, None)]

    scene.ends("wide")
    assert scene.most_at_once() == CAPACITY
