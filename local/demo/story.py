"""The scene: who submits what when, and what is looked at meanwhile."""

import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import boto3
from rich.console import Console
from trainmaster_client.api import ApiClient

from local.demo import evidence
from local.demo.attempts import print_attempts
from local.demo.checks import check
from local.demo.jobs import CAPACITY, JOB1, JOB2, JOB3, JOB4, JOBS, POLICY, ROOT, Submitter
from local.evidence import Bucket, transitions
from local.screen import Screen
from local.twin_process import TwinProcess, running_twin
from reporting.report import Report

FINAL = {"completed", "failed", "stopped"}
LOOK_SECONDS = 0.5
LONGEST_SECONDS = 240.0
ENOUGH_STEPS = 20
"""job1 has a checkpoint at least this far in S3 when job4 comes."""


def tell(path: Path, console: Console) -> int:
    """Run the demo; the exit code."""
    report = Report(name="demo")
    screen = Screen(console)
    with tempfile.TemporaryDirectory(prefix="trainmaster-demo-") as name:
        folder = Path(name)
        reference = _start_reference(folder)
        try:
            with running_twin(folder, policy=POLICY) as twin:
                os.environ.update(twin.environment())
                screen.say(
                    f"The twin is up at {twin.ready['endpoint_url']}: one pool with {CAPACITY} instances."
                )
                _Scene(twin, screen, report).play()
            reference.wait(LONGEST_SECONDS)
        finally:
            reference.kill()
        report.facts["reference"] = {"losses": evidence.reference_losses(folder / "reference.log")}
    check(report, capacity=CAPACITY)
    console.print()
    print_attempts(report.facts["attempts"], console)
    console.print()
    return report.finish(path)


def _start_reference(folder: Path) -> "subprocess.Popen[bytes]":
    """job1 once more, outside of everything and uninterrupted: what its losses must be."""
    options = JOB1.hyperparameters() | {"checkpoint_dir": folder / "reference", "model_dir": folder / "model"}
    arguments = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    environment = os.environ | {"SM_OUTPUT_DIR": str(folder)}
    with (folder / "reference.log").open("wb") as log:
        command = ["nice", sys.executable, "train.py", *arguments]
        return subprocess.Popen(command, cwd=ROOT / "training", stdout=log, stderr=log, env=environment)


class _Scene:
    def __init__(self, twin: TwinProcess, screen: Screen, report: Report) -> None:
        self._twin = twin
        self._screen = screen
        self._report = report
        self._api = ApiClient(twin.ready["api_url"], boto3.Session())
        self._bucket = Bucket()
        self._submitter = Submitter(twin)
        self._names: dict[str, str] = {}
        self._views: dict[str, dict[str, Any]] = {}
        self._stored: dict[str, str] = {}
        self._deadline = time.monotonic() + LONGEST_SECONDS

    def play(self) -> None:
        for job in (JOB1, JOB2, JOB3):
            self._submit(job.label)
        checkpoints = self._submitter.checkpoints(JOB1)
        self._watch_until(lambda: self._bucket.step(checkpoints) >= ENOUGH_STEPS)
        step = self._bucket.step(checkpoints)
        self._screen.say(f"job1 has a checkpoint at step {step} in S3. Now something urgent:")
        self._submit(JOB4.label)
        self._watch_until(lambda: self._state(JOB1.label) == "preempted")
        self._stored = self._bucket.hashes(checkpoints)
        self._watch_until(lambda: all(self._state(job.label) in FINAL for job in JOBS))
        self._note()

    def _submit(self, label: str) -> None:
        job = next(one for one in JOBS if one.label == label)
        self._screen.say(f"estimator.fit()  {label}, priority {job.priority}, {job.steps} steps")
        with redirect_stdout(io.StringIO()):  # the session's own lines; the screen shows the same and more
            self._names[label] = self._submitter.fit(job)
        self._screen.name(self._names[label], label)

    def _state(self, label: str) -> str:
        state: str = self._views[label]["state"] if label in self._views else "unknown"
        return state

    def _watch_until(self, seen: Callable[[], bool]) -> None:
        while True:
            self._views = {label: self._api.job(name) for label, name in self._names.items()}
            self._screen.show(self._api.jobs()["jobs"], list(self._views.values()))
            if seen():
                return
            if time.monotonic() > self._deadline:
                raise RuntimeError(f"not over after {LONGEST_SECONDS:.0f} s; the queue: {self._views}")
            time.sleep(LOOK_SECONDS)

    def _note(self) -> None:
        views = list(self._views.values())
        checkpoints = {self._names[job.label]: self._submitter.checkpoints(job) for job in JOBS}
        journal = self._twin.records()
        self._report.facts |= {
            "transitions": transitions(views),
            "attempts": evidence.attempts(views, checkpoints, self._stored),
            "most_at_once": evidence.most_at_once(journal),
            "journal": journal,
        }
