"""Which trainings a proof runs; runs them, says what happens, records, draws and checks what happened."""

import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainmaster_client.report import Report

from benchmarks.training.proof.evidence import TOLERANCE, TOLERANCE_OF_IMAGES, check, draw, print_runs
from benchmarks.training.proof.jobs import Attempt, Job
from benchmarks.training.proof.kill_schedule import PROGRAM, SILENT_SECONDS, Kill, Schedule
from benchmarks.training.proof.spoil import hashes_of, trials
from training.config.choices import Precision
from training.config.vision_shape import VISION_PRESETS
from training.metrics import Event, event_in

_LEARNING_RATE = "1e-3"
"""Below the program's default, which suits `tiny` but makes ten times more of a difference in rounding."""
_LEARNING_RATE_OF_IMAGES = "1e-4"
"""At 1e-3 a batch of a few images is no stable course: another rate by one part in ten million moves the loss
of `vit-tiny` by 4e-4 after 29 steps, on one rank that nobody stops; at 1e-4 by 2e-7."""

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: str
    precision: Precision
    schedule: Schedule
    reference: str | None = None
    """The run that nobody interrupted, of the same precision; None: this is it."""
    spoils: bool = False
    """The newest checkpoint is spoiled before each attempt that has another one to go back to."""


def runs_of(
    schedule: Schedule,
    precisions: Sequence[Precision] = (Precision.FP32, Precision.BF16),
    *,
    in_saves: Sequence[Kill] = (),
    spoils: bool = False,
) -> list[Run]:
    """Return the runs: the schedule in fp32, and in each precision the same kills on the first world.

    The first precision is also killed ``in_saves``, and has checkpoints spoiled between the attempts.
    """
    runs = [run for precision in precisions for run in _of_precision(precision, schedule)]
    first = precisions[0]
    reference = f"{first}-uninterrupted"
    if in_saves:
        world = schedule.worlds[0]
        caught = replace(schedule, kills=tuple(in_saves), worlds=(world,) * (len(in_saves) + 1))
        runs.append(Run(id=f"{first}-killed-in-saves", precision=first, schedule=caught, reference=reference))
    if spoils and schedule.kills:
        one_world = schedule.in_one_world()
        runs.append(
            Run(id=f"{first}-spoiled", precision=first, schedule=one_world, reference=reference, spoils=True)
        )
    return runs


def _of_precision(precision: Precision, schedule: Schedule) -> list[Run]:
    plain, interrupted = f"{precision}-uninterrupted", f"{precision}-interrupted"
    one_world = Run(
        id=f"{interrupted}-one-world", precision=precision, schedule=schedule.in_one_world(), reference=plain
    )
    reference = Run(id=plain, precision=precision, schedule=schedule.uninterrupted())
    if precision is not Precision.FP32:  # sums of bf16 differ too much between numbers of ranks
        return [reference, one_world]
    as_given = Run(id=interrupted, precision=precision, schedule=schedule, reference=plain)
    return [reference, as_given] if schedule.is_of_one_world else [reference, as_given, one_world]


def facts_of(run: Run, attempts: Sequence[Attempt], hashes: dict[str, str] | None) -> Facts:
    """Return what happened; ``losses`` are in the order in which the steps were trained, with replays."""
    losses = [loss for attempt in attempts for loss in attempt.losses]
    return {
        "id": run.id,
        "precision": str(run.precision),
        "reference": run.reference,
        "spoils": run.spoils,
        "worlds": list(run.schedule.worlds),
        "signals": [str(kill) for kill in run.schedule.kills],
        "exit_codes": [attempt.exit_code for attempt in attempts],
        "steps_replayed": len(losses) - len(Counter(step for step, _ in losses)),
        "final_hashes": hashes,
        "attempts": [_attempt_facts(attempt) for attempt in attempts],
        "losses": [[step, loss.hex()] for step, loss in losses],
    }


def _attempt_facts(attempt: Attempt) -> Facts:
    steps = [step for step, _ in attempt.losses]
    return {
        "world": attempt.world,
        "signal": str(attempt.kill) if attempt.kill else None,
        "sent_at": attempt.sent_at,
        "spoiled": attempt.spoiled,
        "exit_code": attempt.exit_code,
        "first_step": steps[0] if steps else None,
        "last_step": steps[-1] if steps else None,
        "steps_trained": len(steps),
        "seconds": round(attempt.seconds, 1),
        "resume_seconds": _resume_seconds(attempt),
        "said": list(attempt.said),
        "error": attempt.error,
    }


def _resume_seconds(attempt: Attempt) -> dict[str, float] | None:
    """Return seconds by phase, as the program reported; None if it did not resume, or reported none."""
    events = [event for line in attempt.said if (event := event_in(line)) and event["kind"] == Event.RESUME]
    if not events:
        return None
    phases = {name.removesuffix("_s"): value for name, value in events[0].items() if name.endswith("_s")}
    return {name: value for name, value in phases.items() if isinstance(value, float)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    schedule: Schedule
    seed: int
    checkpoint_every: int
    program: Path = PROGRAM
    precisions: Sequence[Precision] = (Precision.FP32, Precision.BF16)
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the program by name; they win over what is chosen here."""
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
            print(f"loss curves in {picture}", flush=True)
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
        """Return the hyperparameters that every attempt of a run shares."""
        named = {} if "model_config" in self.options else {"preset": "tiny"}
        return {
            **named,
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
        print(f"{run.id}: {run.schedule.steps} steps on {_ranks(run.schedule)}", flush=True)
        with TemporaryDirectory(prefix="trainmaster-proof-") as place:
            job = Job(
                place=Path(place),
                schedule=run.schedule,
                hyperparameters=self.hyperparameters(run),
                program=self.program,
                spoils=random.Random(self.seed) if run.spoils else None,
                silent_seconds=self.silent_seconds,
            )
            attempts = job.attempts(_tell)
            last = job.checkpoints / f"step-{run.schedule.steps:08d}"
            is_whole = last.exists() and not attempts[-1].error
            hashes = hashes_of(last) if is_whole else None
            if is_whole and self.spoilings and not spoilings:
                print(f"  its last checkpoint is spoiled {self.spoilings} times", flush=True)
                spoilings += trials(last, self.spoilings, random.Random(self.seed))
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
        print(f"  spoiled {attempt.spoiled}", flush=True)
    end = "left alone"
    if attempt.kill:
        end = "in a save" if attempt.kill.in_save else f"SIG{str(attempt.kill).partition(':')[2]}"
    print(
        f"  {attempt.world} ranks, {trained}, {end:>10}: "
        f"exit code {attempt.exit_code:>3} after {attempt.seconds:4.1f} s",
        flush=True,
    )
    if attempt.error:
        print(f"  it should not have ended so: {attempt.error}", flush=True)
