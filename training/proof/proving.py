"""Runs every training of a proof, says what happens, and draws and checks what happened."""

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from trainmaster_client.report import Report

from training.options.choices import Precision
from training.proof.checks import TOLERANCE, TOLERANCE_OF_IMAGES, check
from training.proof.hashes import hashes_of
from training.proof.jobs import Attempt, Job
from training.proof.kill_schedule import PROGRAM, SILENT_SECONDS, Kill, Schedule
from training.proof.plot import draw
from training.proof.runs import Facts, Run, facts_of, runs_of
from training.proof.spoil import trials
from training.proof.table import print_runs
from training.vision.shape import VISION_PRESETS

_LEARNING_RATE = "1e-3"
"""Below the program's default, which suits `tiny` but makes ten times more of a difference in rounding."""
_LEARNING_RATE_OF_IMAGES = "1e-4"
"""At 1e-3 a batch of a few images is no stable course: another rate by one part in ten million moves the loss
of `vit-tiny` by 4e-4 after 29 steps, on one rank that nobody stops; at 1e-4 by 2e-7."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    schedule: Schedule
    seed: int
    checkpoint_every: int
    program: Path = PROGRAM
    precisions: Sequence[Precision] = (Precision.FP32, Precision.BF16)
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the program, by name; they win over what is chosen here."""
    spoilings: int = 0
    in_saves: Sequence[Kill] = ()
    silent_seconds: float = SILENT_SECONDS

    def run(self, path: Path) -> int:
        """Write the report and the curves beside it; the exit code."""
        runs = runs_of(self.schedule, self.precisions, in_saves=self.in_saves, spoils=self.spoilings > 0)
        report = self.report(runs)
        print_runs(report.facts)
        code = report.finish(path)
        if any(run["reference"] for run in report.facts["runs"]):
            picture = path.with_suffix(".png")
            draw(report.facts, picture)
            _say(f"loss curves in {picture}")
        return code

    def report(self, runs: Sequence[Run]) -> Report:
        """Run them in this order, and check; after one that fails the others would prove nothing."""
        report = Report(name="training")
        done: list[Facts] = []
        report.facts |= {
            "seed": self.seed,
            "steps": self.schedule.steps,
            "batch_size": int(self._batch_size),
            "checkpoint_every": self.checkpoint_every,
            "program": str(self.program),
            "options": dict(self.options),
            "spoilings": [],
            "tolerance": TOLERANCE_OF_IMAGES if self._has_images else TOLERANCE,
            "cpus": os.cpu_count(),
            "runs": done,
        }
        for run in runs:
            done.append(self._run(run, report.facts["spoilings"]))
            if any(attempt["error"] for attempt in done[-1]["attempts"]):
                break
        report.check("runs", expected=[run.id for run in runs], actual=[facts["id"] for facts in done])
        check(report)
        return report

    def hyperparameters(self, run: Run) -> Mapping[str, str]:
        """What is the same for every attempt of a run."""
        return {
            "preset": "tiny",
            "precision": run.precision,
            "seed": str(self.seed),
            "lr": _LEARNING_RATE_OF_IMAGES if self._has_images else _LEARNING_RATE,
            "batch_size": self._batch_size,
            "checkpoint_every": str(self.checkpoint_every),
            **self.options,
        }

    @property
    def _has_images(self) -> bool:
        return self.options.get("preset") in VISION_PRESETS

    @property
    def _batch_size(self) -> str:
        parts = int(self.options.get("gradient_accumulation_steps", "1"))
        return self.options.get("batch_size", str(self.schedule.batch_size(parts)))

    def _run(self, run: Run, spoilings: list[Facts]) -> Facts:
        _say(f"{run.id}: {run.schedule.steps} steps on {_ranks(run.schedule)}")
        with TemporaryDirectory(prefix="trainmaster-proof-") as place:
            job = Job(
                place=Path(place),
                schedule=run.schedule,
                hyperparameters=self.hyperparameters(run),
                program=self.program,
                spoils=random.Random(self.seed) if run.spoils else None,  # noqa: S311  to be repeated
                silent_seconds=self.silent_seconds,
            )
            attempts = job.attempts(_tell)
            last = job.checkpoints / f"step-{run.schedule.steps:08d}"
            is_whole = last.exists() and not attempts[-1].error
            hashes = hashes_of(last) if is_whole else None
            if is_whole and self.spoilings and not spoilings:
                _say(f"  its last checkpoint is spoiled {self.spoilings} times")
                spoilings += trials(last, self.spoilings, random.Random(self.seed))  # noqa: S311
            return facts_of(run, attempts, hashes)


def _ranks(schedule: Schedule) -> str:
    if schedule.kills:
        return (
            f"{', '.join(map(str, schedule.worlds))} ranks, killed at {', '.join(map(str, schedule.kills))}"
        )
    return f"{schedule.worlds[0]} ranks"


def _tell(attempt: Attempt) -> None:
    steps = [step for step, _ in attempt.losses]
    trained = f"steps {steps[0]:>2} to {steps[-1]:>2}" if steps else "no step"
    if attempt.spoiled:
        _say(f"  spoiled {attempt.spoiled}")
    end = "left alone"
    if attempt.kill:
        end = "in a save" if attempt.kill.in_save else f"SIG{str(attempt.kill).partition(':')[2]}"
    _say(
        f"  {attempt.world} ranks, {trained}, {end:>10}: "
        f"exit code {attempt.exit_code:>3} after {attempt.seconds:4.1f} s"
    )
    if attempt.error:
        _say(f"  it should not have ended so: {attempt.error}")


def _say(line: str) -> None:
    print(line, flush=True)
