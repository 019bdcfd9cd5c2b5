"""The scene: who submits what when, and what is looked at meanwhile."""

import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, redirect_stdout
from pathlib import Path
from typing import Any

import boto3
from rich.console import Console
from trainmaster_client.api import ApiClient
from trainmaster_client.report import Report

from demos.evidence import Bucket, transitions
from demos.main_job import evidence
from demos.main_job.attempts import print_attempts, print_steps_lost
from demos.main_job.checks import check
from demos.main_job.jobs import (
    CAPACITY,
    CHECKPOINT_EVERY,
    DEAF,
    JOB1,
    JOB2,
    JOB3,
    JOB4,
    JOBS,
    POLICY,
    ROOT,
    URGENT_LABEL,
    DemoJob,
    Submitter,
)
from demos.screen import Screen
from local.twin_process import TwinProcess, running_twin

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
                scene = _Scene(twin, screen, report)
                scene.play()
                scene.play_in_script_mode()
            reference.wait(LONGEST_SECONDS)
        finally:
            reference.kill()
        report.facts["reference"] = {"losses": evidence.reference_losses(folder / "reference.log")}
    check(report, capacity=CAPACITY)
    console.print()
    print_attempts(report.facts["attempts"] + report.facts["script_mode"]["attempts"], console)
    console.print()
    print_steps_lost(report.facts, console)
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


def _quietly() -> AbstractContextManager[io.StringIO]:
    """Without the session's own lines; the screen shows the same and more."""
    return redirect_stdout(io.StringIO())


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
            self._submit(job)
        checkpoints = self._submitter.checkpoints(JOB1)
        self._watch_until(lambda: self._bucket.step(checkpoints) >= ENOUGH_STEPS)
        step = self._bucket.step(checkpoints)
        self._screen.say(f"job1 has a checkpoint at step {step} in S3. Now something urgent:")
        self._submit(JOB4)
        self._watch_until(lambda: self._state(JOB1.label) == "preempted")
        self._stored = self._bucket.hashes(checkpoints)
        self._watch_until(lambda: all(self._state(job.label) in FINAL for job in JOBS))
        self._note()

    def play_in_script_mode(self) -> None:
        """The same once more with a job that does not hear SIGTERM, beside the four: what that costs."""
        self._screen.say("And a job in script mode, where SIGTERM does not reach the training:")
        self._submit(DEAF)
        checkpoints = self._submitter.checkpoints(DEAF)
        self._watch_until(lambda: self._bucket.step(checkpoints) >= CHECKPOINT_EVERY)
        self._screen.say(f"estimator.fit()  {URGENT_LABEL}, priority 9, all {CAPACITY} instances")
        with _quietly():
            self._name(URGENT_LABEL, self._submitter.fit_urgent())
        self._watch_until(lambda: self._state(DEAF.label) in {"preempted", *FINAL})
        stored = self._bucket.hashes(checkpoints)
        self._watch_until(lambda: self._state(DEAF.label) in FINAL)
        names = {self._names[DEAF.label]: checkpoints}
        made = evidence.attempts([self._views[DEAF.label]], names, stored)
        self._report.facts["script_mode"] = {
            "steps_lost": evidence.steps_lost(made),
            "interval": CHECKPOINT_EVERY,
            "attempts": made,
        }

    def _submit(self, job: DemoJob) -> None:
        self._screen.say(f"estimator.fit()  {job.label}, priority {job.priority}, {job.steps} steps")
        with _quietly():
            self._name(job.label, self._submitter.fit(job))

    def _name(self, label: str, name: str) -> None:
        self._names[label] = name
        self._screen.name(name, label)

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
        made = evidence.attempts(views, checkpoints, self._stored)
        first = [one for one in made if one["job"] == self._names[JOB1.label]]
        self._report.facts |= {
            "transitions": transitions(views),
            "attempts": made,
            "steps_lost": evidence.steps_lost(first),
            "most_at_once": evidence.most_at_once(journal),
            "journal": journal,
        }
