"""The scene: three scripts train, somebody more urgent takes their instances, they resume and end."""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.table import Table

from demos.command import Telling
from demos.evidence import Document, log_lines
from demos.patience import ProgramEndedError
from demos.requests import INSTANCE_TYPE, urgent_request
from demos.scripts.checks import check
from demos.scripts.jobs import SCRIPTS, STEPS, Script, script_request, undisturbed
from demos.stage import Hold, Stage, opened_twin
from local.twin_process import end

ENOUGH_STEPS = 5
"""Each script has trained so many when somebody more urgent comes."""
_SAMPLES = 32
"""And waits then: 4 are in a step, and the libraries read some batches ahead."""
_POLICY = {"version": 1, "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: len(SCRIPTS)}}]}
_LOSS = re.compile(r"step=(\d+) loss=(\S+)")

Processes = Mapping[str, "subprocess.Popen[bytes]"]
"""The undisturbed run by the name of the script."""


def tell(telling: Telling) -> int:
    """Run the demo; the exit code."""
    report, screen = telling.report, telling.screen
    with tempfile.TemporaryDirectory(prefix="trainmaster-scripts-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with _undisturbed(folder) as alone, opened_twin(folder, policy=_POLICY) as twin:
            os.environ.update(twin.environment())
            screen.say(f"The twin is up: one pool with {len(SCRIPTS)} instances.")
            scene = _Scene(Stage(twin, screen), folder)
            scene.play()
            report.facts["scripts"] = [scene.facts(script) for script in SCRIPTS]
            scene.wait_for(alone)
        for facts in report.facts["scripts"]:
            lines = (folder / f"{facts['script']}.log").read_text(encoding="utf-8").splitlines()
            facts["undisturbed"] = losses_of(lines)
    check(report, steps=STEPS)
    screen.console.print(_table(report.facts["scripts"]))
    screen.console.print()
    return telling.finish()


@contextmanager
def _undisturbed(folder: Path) -> Iterator[Processes]:
    """Run each script outside of everything, for the block."""
    alone = {script.name: undisturbed(script, folder) for script in SCRIPTS}
    try:
        yield alone
    finally:
        for process in alone.values():
            end(process)


def losses_of(lines: Iterable[str]) -> list[list[str]]:
    """[step, loss] as they were printed: to the last digit."""
    return [list(match.groups()) for line in lines if (match := _LOSS.fullmatch(line))]


class _Scene:
    def __init__(self, stage: Stage, folder: Path) -> None:
        self._stage, self._folder = stage, folder
        self._labels = [script.job for script in SCRIPTS]

    def play(self) -> None:
        stage = self._stage
        holds = [Hold(self._folder, script.job) for script in SCRIPTS]
        for script, hold in zip(SCRIPTS, holds, strict=True):
            stage.screen.say(f"  {script.job}: {script.title}, {STEPS} steps")
            hold.at(_SAMPLES)
            stage.api.add_job(script_request(script, stage.twin, hold.path))
            stage.name(script.job, script.job)
        self._until(f"each script has trained {ENOUGH_STEPS} steps", self._have_trained)
        stage.screen.say(
            f"Each has trained {ENOUGH_STEPS} steps or more. Somebody else has something urgent."
        )
        stage.api.add_job(urgent_request("urgent", stage.twin, instances=len(SCRIPTS)))
        self._until("each script is asked to stop", lambda: len(stage.vigil.journal.leaving) == len(SCRIPTS))
        for hold in holds:
            hold.release()  # the step in flight can end, and with it the script
        self._until("all were preempted", lambda: stage.are({"preempted"}, self._labels))
        stage.api.cancel("urgent")
        self._until("all were completed", lambda: stage.are({"completed"}, self._labels))

    def wait_for(self, alone: Processes) -> None:
        """Wait for the undisturbed runs.

        Raises:
            ProgramEndedError: One failed.
        """
        logs = {name: self._folder / f"{name}.log" for name in alone}
        vigil = self._stage.vigil
        vigil.evidence.append(lambda: [log.stat().st_size for log in logs.values()])
        vigil.until(
            "the undisturbed runs are over",
            lambda: all(process.poll() is not None for process in alone.values()),
        )
        for name, process in alone.items():
            if process.returncode:
                printed = logs[name].read_text(encoding="utf-8", errors="replace")
                raise ProgramEndedError(
                    program=f"the undisturbed run of {name}", exit_code=process.returncode, printed=printed
                )

    def facts(self, script: Script) -> Document:
        """What happened to one script: each attempt, and how its container ended."""
        job = self._stage.api.job(script.job)
        exits = {
            record["training_job"]: record["exit_code"]
            for record in self._stage.twin.records()
            if record["kind"] == "process" and record["event"] == "exit"
        }
        return {
            "script": script.name,
            "title": script.title,
            "attempts": [
                {
                    "training_job_name": attempt["training_job_name"],
                    "status": attempt["status"],
                    "exit_code": exits.get(attempt["training_job_name"]),
                    "losses": losses_of(log_lines(self._stage.logs, attempt["training_job_name"])),
                }
                for attempt in job["attempts"]
            ],
        }

    def _have_trained(self) -> bool:
        return all(self._steps(script) >= ENOUGH_STEPS for script in SCRIPTS)

    def _steps(self, script: Script) -> int:
        name = self._stage.attempt(script.job)
        return len(losses_of(log_lines(self._stage.logs, name))) if name else 0

    def _until(self, what: str, holds: Callable[[], object]) -> None:
        """Raises ProgramEndedError: a script has failed."""

        def looked() -> object:
            for label in self._labels:
                if self._stage.state(label) in {"failed", "stopped"}:
                    lines = log_lines(self._stage.logs, self._stage.attempt(label))
                    raise ProgramEndedError(program=label, exit_code=None, printed="\n".join(lines))
            return holds()

        self._stage.until(what, looked)


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
