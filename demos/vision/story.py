"""The scene: a vision transformer trains, somebody more urgent takes its instance, it resumes and ends."""

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from demos.stage.command import Telling
from demos.stage.evidence import Document, log_lines
from demos.stage.patience import ProgramEndedError
from demos.stage.job_requests import INSTANCE_TYPE, urgent_request
from demos.scripts.checks import check
from demos.stage.twin_stage import Hold, Stage, opened_twin
from demos.vision.jobs import JOB, STEPS, pictures_request, shards, undisturbed
from local.twin_process import end
from training.metrics import metrics_in, validation_in

STOPPED_AT = 9
"""Step after which it waits until a more urgent job has its instance."""
_POLICY = {"version": 1, "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: 1}}]}


def tell(telling: Telling) -> int:
    """Run the demo; the exit code."""
    report, screen = telling.report, telling.screen
    with tempfile.TemporaryDirectory(prefix="trainmaster-vit-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        data = shards(folder)
        alone, log = undisturbed(data, folder), folder / "undisturbed.log"
        try:
            with opened_twin(folder, policy=_POLICY) as twin:
                os.environ.update(twin.environment())
                screen.say("The twin is up: one pool with one instance.")
                scene = _Scene(Stage(twin, screen), Hold(folder, JOB))
                scene.play(data)
                facts = scene.facts()
                vigil = scene.stage.vigil
                vigil.evidence.append(lambda: log.stat().st_size)
                vigil.until("the undisturbed run is over", lambda: alone.poll() is not None)
        finally:
            end(alone)
        text = log.read_text(encoding="utf-8", errors="replace")
        if alone.returncode:
            raise ProgramEndedError(program="the undisturbed run", exit_code=alone.returncode, printed=text)
        lines = text.splitlines()
        facts |= {"undisturbed": losses_of(lines), "undisturbed_validation": validations_of(lines)}
    report.facts["scripts"] = [facts]
    check(report, steps=STEPS)
    seen = [validation for attempt in facts["attempts"] for validation in attempt["validation"]]
    report.check("vit-same-accuracy", expected=facts["undisturbed_validation"], actual=seen)
    for number, attempt in enumerate(facts["attempts"]):
        first, last = attempt["losses"][0], attempt["losses"][-1]
        screen.say(f"attempt {number}: steps {first[0]} to {last[0]}, loss {first[1]} to {last[1]}")
    return telling.finish()


def losses_of(lines: Iterable[str]) -> list[list[str]]:
    """Return [step, loss] as they were printed, to the last digit."""
    return [[metrics["step"], metrics["loss"]] for line in lines if (metrics := metrics_in(line))]


def validations_of(lines: Iterable[str]) -> list[list[str]]:
    """Return [step, loss, accuracy] as they were printed."""
    validations = (validation for line in lines if (validation := validation_in(line)))
    return [
        [validation["step"], validation["val_loss"], validation["val_accuracy"]] for validation in validations
    ]


class _Scene:
    def __init__(self, stage: Stage, hold: Hold) -> None:
        self.stage, self._hold = stage, hold

    def play(self, data: Path) -> None:
        stage = self.stage
        stage.screen.say(f"  {JOB}: vit-nano on pictures in tar shards, {STEPS} steps")
        self._hold.at(STOPPED_AT)
        stage.api.add_job(pictures_request(data, stage.twin, self._hold.path))
        stage.name(JOB, JOB)
        self._until(f"it has trained {STOPPED_AT} steps", lambda: self._steps() >= STOPPED_AT)
        stage.screen.say(f"It has trained {STOPPED_AT} steps. Somebody has something urgent.")
        stage.api.add_job(urgent_request("urgent", stage.twin))
        self._until("it was preempted", lambda: stage.state(JOB) == "preempted")
        self._hold.release()
        stage.api.cancel("urgent")
        self._until("it was completed", lambda: stage.state(JOB) == "completed")

    def facts(self) -> Document:
        """Return what each attempt did, and how its container ended."""
        exits = {
            record["training_job"]: record["exit_code"]
            for record in self.stage.twin.records()
            if record["kind"] == "process" and record["event"] == "exit"
        }
        attempts = []
        for attempt in self.stage.api.job(JOB)["attempts"]:
            name = attempt["training_job_name"]
            lines = log_lines(self.stage.logs, name)
            attempts.append(
                {
                    "training_job_name": name,
                    "status": attempt["status"],
                    "exit_code": exits.get(name),
                    "losses": losses_of(lines),
                    "validation": validations_of(lines),
                }
            )
        return {"script": JOB, "title": "vision transformer", "attempts": attempts}

    def _steps(self) -> int:
        name = self.stage.attempt(JOB)
        return len(losses_of(log_lines(self.stage.logs, name))) if name else 0

    def _until(self, what: str, holds: Callable[[], object]) -> None:
        """Raises ProgramEndedError: the training has failed."""

        def looked() -> object:
            if self.stage.state(JOB) in {"failed", "stopped"}:
                lines = log_lines(self.stage.logs, self.stage.attempt(JOB))
                raise ProgramEndedError(program="the training", exit_code=None, printed="\n".join(lines))
            return holds()

        self.stage.until(what, looked)
