"""The scene: a vision transformer trains, somebody more urgent takes its instance, it resumes and ends."""

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import boto3
from rich.console import Console
from trainmaster_client.api import ApiClient
from trainmaster_client.report import Report

from demos.evidence import Document, log_lines
from demos.requests import INSTANCE_TYPE, urgent_request
from demos.screen import Screen
from demos.scripts.checks import check
from demos.vision.jobs import JOB, STEPS, pictures_request, shards, undisturbed
from local.twin_process import TwinProcess, end, running_twin
from training.metrics import metrics_in, validation_in

LOOK_SECONDS = 0.7
LONGEST_SECONDS = 300.0
ENOUGH_STEPS = 6
"""It has trained so many when somebody more urgent comes."""
_POLICY = {"version": 1, "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: 1}}]}
_SLOWER = ("--speed", "8")
"""The 120 seconds of a stop last 15 here, not 2: programs that load torch share a laptop."""


def tell(path: Path, console: Console) -> int:
    """Run the demo; the exit code."""
    report, screen = Report(name="vit"), Screen(console)
    with tempfile.TemporaryDirectory(prefix="trainmaster-vit-") as name:
        folder = Path(name)
        data = shards(folder)
        alone = undisturbed(data, folder)
        try:
            with running_twin(folder, policy=_POLICY, options=_SLOWER) as twin:
                os.environ.update(twin.environment())
                screen.say("The twin is up: one pool with one instance.")
                scene = _Scene(twin, screen)
                scene.play(data)
                facts = scene.facts()
            alone.wait(LONGEST_SECONDS)
        finally:
            end(alone)
        lines = (folder / "undisturbed.log").read_text(encoding="utf-8").splitlines()
        facts |= {"undisturbed": losses_of(lines), "undisturbed_validation": validations_of(lines)}
    report.facts["scripts"] = [facts]
    check(report, steps=STEPS)
    seen = [one for attempt in facts["attempts"] for one in attempt["validation"]]
    report.check("vit-same-accuracy", expected=facts["undisturbed_validation"], actual=seen)
    for number, attempt in enumerate(facts["attempts"]):
        first, last = attempt["losses"][0], attempt["losses"][-1]
        screen.say(f"attempt {number}: steps {first[0]} to {last[0]}, loss {first[1]} to {last[1]}")
    return report.finish(path)


def losses_of(lines: Iterable[str]) -> list[list[str]]:
    """[step, loss] as they were printed: to the last digit."""
    return [[found["step"], found["loss"]] for line in lines if (found := metrics_in(line))]


def validations_of(lines: Iterable[str]) -> list[list[str]]:
    """[step, loss, accuracy] likewise."""
    found = (one for line in lines if (one := validation_in(line)))
    return [[one["step"], one["val_loss"], one["val_accuracy"]] for one in found]


class _Scene:
    def __init__(self, twin: TwinProcess, screen: Screen) -> None:
        self._twin, self._screen = twin, screen
        self._api = ApiClient(twin.ready["api_url"], boto3.Session())
        self._logs = boto3.client("logs")
        self._deadline = time.monotonic() + LONGEST_SECONDS

    def play(self, data: Path) -> None:
        self._screen.say(f"  {JOB}: vit-nano on pictures in tar shards, {STEPS} steps")
        self._api.add_job(pictures_request(data, self._twin))
        self._until(lambda: self._steps() >= ENOUGH_STEPS, f"{ENOUGH_STEPS} steps")
        self._screen.say(f"It has trained {ENOUGH_STEPS} steps or more. Somebody has something urgent.")
        self._api.add_job(urgent_request("urgent", self._twin))
        self._until(lambda: self._state() == "preempted", "it was preempted")
        self._api.cancel("urgent")
        self._until(lambda: self._state() == "completed", "it was completed")

    def facts(self) -> Document:
        exits = {
            one["training_job"]: one["exit_code"]
            for one in self._twin.records()
            if one["kind"] == "process" and one["event"] == "exit"
        }
        attempts = []
        for one in self._api.job(JOB)["attempts"]:
            name = one["training_job_name"]
            lines = log_lines(self._logs, name)
            attempts.append(
                {
                    "training_job_name": name,
                    "status": one["status"],
                    "exit_code": exits.get(name),
                    "losses": losses_of(lines),
                    "validation": validations_of(lines),
                }
            )
        return {"script": JOB, "title": "vision transformer", "attempts": attempts}

    def _state(self) -> str:
        return str(self._api.job(JOB)["state"])

    def _steps(self) -> int:
        names = [one["training_job_name"] for one in self._api.job(JOB)["attempts"]]
        try:
            return max((len(losses_of(log_lines(self._logs, name))) for name in names), default=0)
        except self._logs.exceptions.ResourceNotFoundException:  # there is no log before its first line
            return 0

    def _until(self, seen: Callable[[], object], what: str) -> None:
        while not seen():
            view = self._api.job(JOB)
            if view["state"] in {"failed", "stopped"} or time.monotonic() > self._deadline:
                lines = [
                    one for run in view["attempts"] for one in log_lines(self._logs, run["training_job_name"])
                ]
                raise RuntimeError(f"not seen: {what}; {JOB} is {view['state']}\n" + "\n".join(lines[-20:]))
            self._screen.show(self._api.jobs()["jobs"], [view])
            time.sleep(LOOK_SECONDS)
