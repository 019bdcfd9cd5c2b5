"""Run the four-job example end to end, show it as it happens, and record what happened (``make demo``).

The order does not depend on the machine: each job waits at a step (``hold_file``) until the story wants it to
go on, so no job overtakes another.
"""

import io
import logging
import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.report import Report

from demos.stage.command import Telling, run
from demos.stage.courses import check_four_jobs, most_at_once
from demos.stage.directions import Hold
from demos.stage.evidence import Document, last_lines, losses_of, resumed_from, transitions
from demos.stage.job_requests import IMAGE, INSTANCE_TYPE, one_pool
from demos.stage.processes import ROOT, Program
from demos.stage.screen import table
from demos.stage.twin_stage import FINAL, Stage, opened_stage, temporary_folder
from training.config.choices import Precision
from training.metrics import METRIC_DEFINITIONS

CAPACITY = 2
CHECKPOINT_EVERY = 10
TOLERANCE = 1e-6
"""Largest difference between a loss of the resumed run and of the uninterrupted one."""
JOB1_STOPPED_AT = 53
"""job1 waits here for its preemption, 3 steps after its last regular checkpoint."""
JOB1_RESUMED_TO = 140
"""And here, resumed, until job4 is over and job3 has its instance."""
JOB2_WAITS_AT, JOB4_WAITS_AT, DEAF_STOPPED_AT = 80, 50, 33
QUIET = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}
"""Opts out of the SDK's telemetry, which would wait for an internet that the twin does not have."""
_LINES_OF_A_STEP = 20
"""More lines than a job prints from one step to the next: a metric line and events of checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoJob:
    label: str
    priority: int
    steps: int
    hears_sigterm: bool = True
    """Whether launch.py starts it, which passes SIGTERM on; script mode keeps SIGTERM to itself."""

    def hyperparameters(self) -> dict[str, Any]:
        every = {"checkpoint_every": CHECKPOINT_EVERY}
        return {"preset": "tiny", "steps": self.steps, "seed": 7, "batch_size": 4} | every


JOB1 = DemoJob(label="job1", priority=1, steps=150)
JOB2 = DemoJob(label="job2", priority=2, steps=90)
JOB3 = DemoJob(label="job3", priority=1, steps=15)
JOB4 = DemoJob(label="job4", priority=3, steps=60)
DEAF = DemoJob(label="job5", priority=1, steps=40, hears_sigterm=False)
URGENT_LABEL = "job6"


def _options(parser: ArgumentParser) -> None:
    what = "of the trainings (%(default)s)"
    parser.add_argument("--precision", type=Precision, default=Precision.AUTO, help=what)


def tell(telling: Telling) -> int:
    report, screen, precision = telling.report, telling.screen, telling.options.precision.value
    os.environ.setdefault("SAGEMAKER_SUPPRESS_V2_WARNING", "1")  # read when the SDK is imported
    logging.disable(logging.INFO)  # the SDK says where it found no settings, and each endpoint it uses
    with (
        temporary_folder() as folder,
        _uninterrupted(folder, precision) as reference,
        opened_stage(telling, one_pool(CAPACITY), pool=f"one pool with {CAPACITY} instances") as stage,
    ):
        scene = _Scene(stage, precision)
        report.facts |= scene.play()
        report.facts["script_mode"] = scene.play_in_script_mode()
        stage.wait_for("job1's uninterrupted run is over", reference)
        report.facts["reference"] = {"losses": losses_of(reference.lines())}
    check(report, capacity=CAPACITY)
    _print_attempts(report.facts, screen.console)
    return telling.finish()


def _uninterrupted(folder: Path, precision: str) -> Program:
    """Train job1 once more, outside of everything and uninterrupted: what its losses must be."""
    own = {"precision": precision, "checkpoint_dir": folder / "reference", "model_dir": folder / "model"}
    options = JOB1.hyperparameters() | own
    command = [sys.executable, "train.py", *(f"--{key}={value}" for key, value in options.items())]
    log, env = folder / "reference.log", {"SM_OUTPUT_DIR": str(folder)}
    return Program("the uninterrupted run of job1", command, log=log, env=env, cwd=ROOT / "training")


class _Scene:
    def __init__(self, stage: Stage, precision: str) -> None:
        from sagemaker.session_settings import SessionSettings  # noqa: PLC0415  the SDK takes seconds
        from trainmaster_client.session import QueueTrainingJobSession  # noqa: PLC0415  likewise

        self._stage, self._say, self._precision = stage, stage.screen.say, precision
        self._session = QueueTrainingJobSession(
            default_bucket=stage.twin.ready["bucket"],
            settings=SessionSettings(encrypt_repacked_artifacts=False),
            sagemaker_config=QUIET,
        )

    def play(self) -> Document:
        """Tell the four-job example; what happened."""
        stage = self._stage
        self._hold(JOB1).at(JOB1_STOPPED_AT)
        self._hold(JOB2).at(JOB2_WAITS_AT)
        self._hold(JOB4).at(JOB4_WAITS_AT)
        for job in (JOB1, JOB2, JOB3):
            self._submit(job)
        stage.until("job1 and job2 run", lambda: stage.are({"running"}, [JOB1.label, JOB2.label]))
        self._until_trained(JOB1, JOB1_STOPPED_AT)
        step = stage.bucket.step(stage.checkpoints(JOB1.label))
        self._say(f"job1 has a checkpoint at step {step} in S3. Now something urgent:")
        self._submit(JOB4)
        stage.until("job1 is preempted", lambda: stage.state(JOB1.label) == "preempted")
        stored = stage.bucket.hashes(stage.checkpoints(JOB1.label))
        self._hold(JOB1).at(JOB1_RESUMED_TO)
        stage.until("job4 runs", lambda: stage.state(JOB4.label) == "running")
        self._hold(JOB2).release()
        stage.until("job2 is over", lambda: stage.state(JOB2.label) in FINAL)
        stage.until("job1 runs again", lambda: stage.state(JOB1.label) == "running")
        self._hold(JOB4).release()
        stage.until("job4 is over, and job3 runs", lambda: stage.state(JOB3.label) in {"running", *FINAL})
        self._hold(JOB1).release()
        stage.until("all four are over", lambda: stage.are(FINAL, list(stage.names)))
        made, journal = self._attempts(list(stage.names), stored), stage.twin.records()
        return {
            "transitions": transitions(stage.views.values()),
            "attempts": made,
            "steps_lost": steps_lost([attempt for attempt in made if attempt["job"].startswith(JOB1.label)]),
            "most_at_once": most_at_once(journal),
            "journal": journal,
        }

    def play_in_script_mode(self) -> Document:
        """Play the scene with a job that does not hear SIGTERM, beside the four, to see what that costs."""
        stage, label = self._stage, DEAF.label
        self._say("And a job in script mode, where SIGTERM does not reach the training:")
        self._hold(DEAF).at(DEAF_STOPPED_AT)
        self._submit(DEAF)
        self._until_trained(DEAF, DEAF_STOPPED_AT)
        self._submit_urgent()
        stage.until(
            "job5 is preempted", lambda: stage.state(label) in {"preempted", *FINAL}, leaves_by_itself=False
        )
        stored = stage.bucket.hashes(stage.checkpoints(label))
        self._hold(DEAF).release()
        stage.until("job5 is over", lambda: stage.state(label) in FINAL)
        made = self._attempts([label], stored)
        return {"steps_lost": steps_lost(made), "interval": CHECKPOINT_EVERY, "attempts": made}

    def _until_trained(self, job: DemoJob, step: int) -> None:
        """Wait for the step at which a job is held, and for the checkpoint before it in S3."""
        stage, saved = self._stage, step // CHECKPOINT_EVERY * CHECKPOINT_EVERY

        def has_trained() -> bool:
            name = stage.attempt(job.label)
            lines = last_lines(stage.logs, name, count=_LINES_OF_A_STEP) if name else []
            trained = max((number for number, _ in losses_of(lines)), default=0)
            return trained >= step and stage.bucket.step(stage.checkpoints(job.label)) >= saved

        stage.until(f"{job.label} has trained {step} steps, {saved} of them in S3", has_trained)

    def _submit(self, job: DemoJob) -> None:
        from sagemaker.pytorch import PyTorch  # noqa: PLC0415  it takes seconds

        self._say(f"estimator.fit()  {job.label}, priority {job.priority}, {job.steps} steps")
        own = {"precision": self._precision, "hold_file": str(self._hold(job).path)}
        self._fit(
            PyTorch,
            job.label,
            job.priority,
            entry_point="train.py",
            source_dir=str(ROOT / "training"),
            container_entry_point=LAUNCHER if job.hears_sigterm else None,
            instance_count=1,
            hyperparameters=job.hyperparameters() | own,
            metric_definitions=METRIC_DEFINITIONS,
            checkpoint_s3_uri=self._stage.checkpoints(job.label),
            debugger_hook_config=False,
        )

    def _submit_urgent(self) -> None:
        """Submit a job that takes all instances for a moment."""
        from sagemaker.estimator import Estimator  # noqa: PLC0415  it takes seconds

        self._say(f"estimator.fit()  {URGENT_LABEL}, priority 9, all {CAPACITY} instances")
        self._fit(Estimator, URGENT_LABEL, 9, container_entry_point=["true"], instance_count=CAPACITY)

    def _fit(self, kind: Any, label: str, priority: int, **options: object) -> None:  # noqa: ANN401  the SDK's
        """Submit a job as any user would, by ``estimator.fit()``; the SDK gives it its name."""
        estimator = kind(
            role=self._stage.twin.ready["role_arn"],
            image_uri=IMAGE,
            instance_type=INSTANCE_TYPE,
            base_job_name=label,
            max_run=3600,
            disable_profiler=True,
            tags=[{"Key": "priority", "Value": str(priority)}],
            sagemaker_session=self._session,
            **options,
        )
        with redirect_stdout(io.StringIO()):  # the session's own lines: the screen shows the same and more
            estimator.fit(wait=False)
        self._stage.name(label, estimator.latest_training_job.name)

    def _hold(self, job: DemoJob) -> Hold:
        return Hold(self._stage.folder, job.label)

    def _attempts(self, labels: Sequence[str], stored: Mapping[str, str]) -> list[Document]:
        """Return what each attempt did, given the SHA-256 by URI of what lay in S3 after the preemption."""
        stage, keys = self._stage, ("attempt", "training_job_name", "status")
        return [
            {"job": stage.names[label], **{key: attempt[key] for key in keys}}
            | attempt_facts(stage.lines(attempt["training_job_name"]), stage.checkpoints(label), stored)
            for label in labels
            for attempt in stage.views[label]["attempts"]
        ]


def attempt_facts(lines: Sequence[str], checkpoints: str, stored: Mapping[str, str]) -> Document:
    """Return what an attempt did, from its log."""
    losses, resumed = losses_of(lines), resumed_from(lines, checkpoints)
    return {
        "first_step": losses[0][0] if losses else None,
        "last_step": losses[-1][0] if losses else None,
        "resumed_from": resumed and {**resumed, "sha256": stored.get(resumed["s3_uri"])},
        "losses": [list(loss) for loss in losses],
    }


def steps_lost(made: Sequence[Document]) -> int | None:
    """Return the steps trained before a preemption and again after it; None if the job did not resume."""
    if len(made) < 2 or made[1]["resumed_from"] is None:  # noqa: PLR2004  before and after
        return None
    lost: int = made[0]["last_step"] - made[1]["resumed_from"]["step"]
    return lost


def check(report: Report, *, capacity: int) -> None:
    """Check what the demo must have shown, from its facts alone."""
    facts, script = report.facts, report.facts["script_mode"]
    check_four_jobs(report, [(step["job"][:4], step["to"]) for step in facts["transitions"]])
    report.check("capacity", expected=capacity, actual=facts["most_at_once"])
    again = [attempt for attempt in facts["attempts"] if attempt["attempt"] == 1]
    second: Document = next((attempt for attempt in again if attempt["job"].startswith("job1")), {})
    resumed = second.get("resumed_from") or {}
    report.check("resumed-at", expected=resumed.get("step", 0) + 1, actual=second.get("first_step"))
    report.check("resumed-from", expected=resumed.get("sha256"), actual=resumed.get("sha256_read"))
    reference = dict(facts["reference"]["losses"])  # that weights came back, not only a counter
    differences = [abs(loss - reference.get(step, float("inf"))) for step, loss in second.get("losses", ())]
    worst = max(differences, default=None)
    report.check(
        "same-losses",
        expected=f"every loss within {TOLERANCE} of the uninterrupted run",
        actual=f"{len(differences)} losses, largest difference {worst}",
        ok=worst is not None and worst <= TOLERANCE,
    )
    report.check("steps-lost", expected=0, actual=facts["steps_lost"])
    report.check(
        "script-mode-steps-lost",
        expected=f"at most {script['interval']}, the steps between checkpoints",
        actual=script["steps_lost"],
        ok=script["steps_lost"] is not None and 0 <= script["steps_lost"] <= script["interval"],
    )


def _print_attempts(facts: Document, console: Console) -> None:
    script = facts["script_mode"]
    made = table("JOB", "ATTEMPT", "STATUS", "STEPS", "RESUMED FROM", "FIRST LOSS", "LAST LOSS")
    for attempt in facts["attempts"] + script["attempts"]:
        resumed, losses = attempt["resumed_from"], attempt["losses"]
        made.add_row(
            attempt["job"].partition("-")[0],
            str(attempt["attempt"]),
            str(attempt["status"]),
            f"{attempt['first_step']}-{attempt['last_step']}",
            f"step {resumed['step']}" if resumed else "-",
            *(f"{loss:.4f}" for _, loss in losses[:1] + losses[-1:]),
        )
    lost = f"{script['steps_lost']} of at most {script['interval']} between checkpoints"
    first = f"Steps lost when they were preempted: job1, started by launch.py, {facts['steps_lost']};"
    console.print("", made, "", first, f"job5, in script mode, {lost}.", sep="\n")


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="demo", options=_options))
