"""The scene: three scripts train, somebody more urgent takes their instances, they resume and end."""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import boto3
from rich.console import Console
from rich.table import Table
from trainmaster_client.api import ApiClient
from trainmaster_client.report import Report

from demos.evidence import Document, log_lines
from demos.requests import INSTANCE_TYPE, urgent_request
from demos.screen import Screen
from demos.scripts.checks import check
from demos.scripts.jobs import SCRIPTS, STEPS, Script, script_request, undisturbed
from local.twin_process import TwinProcess, end, running_twin

LOOK_SECONDS = 0.7
LONGEST_SECONDS = 300.0
ENOUGH_STEPS = 5
"""Each script has trained so many when somebody more urgent comes."""
_POLICY = {"version": 1, "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: len(SCRIPTS)}}]}
_SLOWER = ("--speed", "8")
"""The 120 seconds of a stop last 15 here, not 2: three programs that load torch share a laptop."""
_LOSS = re.compile(r"step=(\d+) loss=(\S+)")


def tell(path: Path, console: Console) -> int:
    """Run the demo; the exit code."""
    report, screen = Report(name="scripts"), Screen(console)
    with tempfile.TemporaryDirectory(prefix="trainmaster-scripts-") as name:
        folder = Path(name)
        alone = [undisturbed(script, folder) for script in SCRIPTS]
        try:
            with running_twin(folder, policy=_POLICY, options=_SLOWER) as twin:
                os.environ.update(twin.environment())
                screen.say(f"The twin is up: one pool with {len(SCRIPTS)} instances.")
                scene = _Scene(twin, screen)
                scene.play()
                report.facts["scripts"] = [scene.facts(script) for script in SCRIPTS]
            for process in alone:
                process.wait(LONGEST_SECONDS)
        finally:
            for process in alone:
                end(process)
        for facts in report.facts["scripts"]:
            lines = (folder / f"{facts['script']}.log").read_text(encoding="utf-8").splitlines()
            facts["undisturbed"] = losses_of(lines)
    check(report, steps=STEPS)
    console.print(_table(report.facts["scripts"]))
    console.print()
    return report.finish(path)


def losses_of(lines: Iterable[str]) -> list[list[str]]:
    """[step, loss] as they were printed: to the last digit."""
    return [list(match.groups()) for line in lines if (match := _LOSS.fullmatch(line))]


class _Scene:
    def __init__(self, twin: TwinProcess, screen: Screen) -> None:
        self._twin, self._screen = twin, screen
        self._api = ApiClient(twin.ready["api_url"], boto3.Session())
        self._logs = boto3.client("logs")
        self._deadline = time.monotonic() + LONGEST_SECONDS

    def play(self) -> None:
        for script in SCRIPTS:
            self._screen.say(f"  {script.job}: {script.title}, {STEPS} steps")
            self._api.add_job(script_request(script, self._twin))
        self._until(self._have_trained, f"{ENOUGH_STEPS} steps of each")
        self._screen.say(
            f"Each has trained {ENOUGH_STEPS} steps or more. Somebody else has something urgent."
        )
        self._api.add_job(urgent_request("urgent", self._twin, instances=len(SCRIPTS)))
        self._until(lambda: self._are({"preempted"}), "all were preempted")
        self._api.cancel("urgent")
        self._until(lambda: self._are({"completed"}), "all were completed")

    def facts(self, script: Script) -> Document:
        job = self._api.job(script.job)
        exits = {
            one["training_job"]: one["exit_code"]
            for one in self._twin.records()
            if one["kind"] == "process" and one["event"] == "exit"
        }
        return {
            "script": script.name,
            "title": script.title,
            "attempts": [
                {
                    "training_job_name": one["training_job_name"],
                    "status": one["status"],
                    "exit_code": exits.get(one["training_job_name"]),
                    "losses": losses_of(log_lines(self._logs, one["training_job_name"])),
                }
                for one in job["attempts"]
            ],
        }

    def _have_trained(self) -> bool:
        return all(self._steps(script) >= ENOUGH_STEPS for script in SCRIPTS)

    def _steps(self, script: Script) -> int:
        names = [one["training_job_name"] for one in self._api.job(script.job)["attempts"]]
        try:
            return max((len(losses_of(log_lines(self._logs, name))) for name in names), default=0)
        except self._logs.exceptions.ResourceNotFoundException:  # there is no log before its first line
            return 0

    def _are(self, states: set[str]) -> bool:
        return {str(self._api.job(script.job)["state"]) for script in SCRIPTS} == states

    def _until(self, seen: Callable[[], object], what: str) -> None:
        while not seen():
            views = [self._api.job(script.job) for script in SCRIPTS]
            broken = [view["name"] for view in views if view["state"] in {"failed", "stopped"}]
            if broken or time.monotonic() > self._deadline:
                told = [line for name in broken for line in self._last_lines(name)]
                raise RuntimeError(f"not seen: {what}; broken: {broken or 'none'}\n" + "\n".join(told))
            self._screen.show(self._api.jobs()["jobs"], views)
            time.sleep(LOOK_SECONDS)

    def _last_lines(self, name: str) -> list[str]:
        return log_lines(self._logs, self._api.job(name)["attempts"][-1]["training_job_name"])[-20:]


def _table(scripts: Iterable[Document]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for heading in ("SCRIPT", "ATTEMPT", "EXIT", "STEPS", "STEPS LOST", "LAST LOSS"):
        table.add_column(heading)
    for one in scripts:
        for number, attempt in enumerate(one["attempts"]):
            losses = attempt["losses"] or [["-", "-"]]
            is_first = number == 0
            table.add_row(
                one["title"] if is_first else "",
                str(number),
                str(attempt["exit_code"]),
                f"{losses[0][0]}-{losses[-1][0]}",
                str(one["steps_lost"]) if is_first else "",
                losses[-1][1],
            )
    return table
