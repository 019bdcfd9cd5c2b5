"""The scene: a user's program per door, and meanwhile somebody with a more urgent job."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import boto3
from rich.console import Console
from trainmaster_client.api import ApiClient
from trainmaster_client.report import Report

from demos.client import evidence
from demos.client.checks import check
from demos.client.doors.settings import CHECKPOINT_EVERY, INSTANCE_TYPE
from demos.client.programs import DOORS, Program, why_not
from demos.evidence import Bucket, Document, log_lines
from demos.requests import urgent_request
from demos.screen import Screen
from local.twin_process import TwinProcess, running_twin

POLICY = {"version": 1, "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: 1}}]}
FINAL = {"completed", "failed", "stopped"}
LOOK_SECONDS = 0.5
LONGEST_SECONDS = 240.0
"""Of one door."""
URGENT_SECONDS = 7
"""Longer than the SDK v3 takes from one look at a job to the next, so that it sees it wait."""


def tell(path: Path, python_v3: Path, console: Console) -> int:
    """Run the demo; the exit code."""
    report, screen = Report(name="client"), Screen(console)
    report.facts["doors"] = []
    with tempfile.TemporaryDirectory(prefix="trainmaster-demo-") as name:
        folder = Path(name)
        with running_twin(folder, policy=POLICY) as twin:
            os.environ.update(twin.environment())
            screen.say(f"The twin is up at {twin.ready['endpoint_url']}: one pool with one instance.")
            for door in DOORS:
                if (why := why_not(door, python_v3)) is not None:
                    report.skip(door.name, reason=why)
                    continue
                python = python_v3 if door.needs_v3 else None
                with Program(door, folder, twin, python) as program:
                    _play(_Scene(twin, screen, program), program, report)
            report.facts["journal"] = evidence.calls(twin.records())
    check(report)
    console.print()
    return report.finish(path)


class NothingToSeeError(Exception):
    """The program ended, or took too long, before the scene was over."""


def _play(scene: "_Scene", program: Program, report: Report) -> None:
    try:
        report.facts["doors"].append(scene.play())
    except NothingToSeeError:
        report.facts.setdefault("broken_doors", {})[program.door.name] = program.output().splitlines()
        last = next(reversed(program.output().split("\n")[:-1]), "nothing")
        report.check(f"{program.door.name}-played", expected="the whole scene", actual=last, ok=False)


class _Scene:
    """One door from the start of its program to its end."""

    def __init__(self, twin: TwinProcess, screen: Screen, program: Program) -> None:
        self._twin = twin
        self._screen = screen
        self._program = program
        self._api = ApiClient(twin.ready["api_url"], boto3.Session())
        self._bucket = Bucket()
        self._name = ""
        self._deadline = time.monotonic() + LONGEST_SECONDS

    def play(self) -> Document:
        door = self._program.door
        self._screen.say(f"\n{door.title}")
        self._watch_until(self._has_checkpoint)
        self._screen.say("It has a checkpoint in S3. Somebody else has something urgent.")
        self._api.add_job(urgent_request(f"urgent-{door.name}", self._twin, seconds=URGENT_SECONDS))
        self._watch_until(lambda: self._program.is_over)
        job = self._api.job(self._name)
        logs = boto3.client("logs")
        written = [line for one in job["attempts"] for line in log_lines(logs, one["training_job_name"])]
        return evidence.door(self._program, job, written)

    def _has_checkpoint(self) -> bool:
        return bool(self._name) and self._bucket.step(self._program.checkpoints) >= CHECKPOINT_EVERY

    def _watch_until(self, seen: Callable[[], bool]) -> None:
        while not seen():
            if time.monotonic() > self._deadline or self._program.is_over:
                raise NothingToSeeError
            queue = self._api.jobs()["jobs"]
            self._name = self._name or self._program.job_among(queue)
            if self._name:
                self._screen.name(self._name, self._program.door.name)
                self._screen.show(queue, [self._api.job(self._name)])
            time.sleep(LOOK_SECONDS)
