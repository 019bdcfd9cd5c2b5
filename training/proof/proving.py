"""Runs every training of a proof, says what happens, and draws and checks what happened."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from trainmaster_client.report import Report

from training.proof.attempts import PROGRAM, Attempt, Job
from training.proof.checks import check
from training.proof.hashes import hashes_of
from training.proof.plot import draw
from training.proof.runs import Facts, Run, facts_of, runs_of
from training.proof.schedule import Schedule
from training.proof.table import print_runs

_LEARNING_RATE = "1e-3"
"""Below the program's default, which suits `tiny` but makes ten times more of a difference in rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    schedule: Schedule
    seed: int
    checkpoint_every: int
    program: Path = PROGRAM

    def run(self, path: Path) -> int:
        """Write the report and the curves beside it; the exit code."""
        report = self.report(runs_of(self.schedule))
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
            "batch_size": self.schedule.batch_size,
            "checkpoint_every": self.checkpoint_every,
            "program": str(self.program),
            "cpus": os.cpu_count(),
            "runs": done,
        }
        for run in runs:
            done.append(self._run(run))
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
            "lr": _LEARNING_RATE,
            "batch_size": str(self.schedule.batch_size),
            "checkpoint_every": str(self.checkpoint_every),
        }

    def _run(self, run: Run) -> Facts:
        _say(f"{run.id}: {run.schedule.steps} steps on {_ranks(run.schedule)}")
        with TemporaryDirectory(prefix="trainmaster-proof-") as place:
            job = Job(
                place=Path(place),
                schedule=run.schedule,
                hyperparameters=self.hyperparameters(run),
                program=self.program,
            )
            attempts = job.attempts(_tell)
            last = job.checkpoints / f"step-{run.schedule.steps:08d}"
            is_whole = last.exists() and not attempts[-1].error
            return facts_of(run, attempts, hashes_of(last) if is_whole else None)


def _ranks(schedule: Schedule) -> str:
    if schedule.kills:
        return (
            f"{', '.join(map(str, schedule.worlds))} ranks, killed at {', '.join(map(str, schedule.kills))}"
        )
    return f"{schedule.worlds[0]} ranks"


def _tell(attempt: Attempt) -> None:
    steps = [step for step, _ in attempt.losses]
    trained = f"steps {steps[0]:>2} to {steps[-1]:>2}" if steps else "no step"
    end = f"SIG{str(attempt.kill).partition(':')[2]}" if attempt.kill else "left alone"
    _say(
        f"  {attempt.world} ranks, {trained}, {end:>10}: "
        f"exit code {attempt.exit_code:>3} after {attempt.seconds:4.1f} s"
    )
    if attempt.error:
        _say(f"  it should not have ended so: {attempt.error}")


def _say(line: str) -> None:
    print(line, flush=True)
