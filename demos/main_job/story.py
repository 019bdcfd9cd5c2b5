"""The scene: who submits what when, and what is looked at meanwhile.

The order does not depend on the machine: each job waits at a step (``hold_file``) until the story wants it to
go on, so no job overtakes another.
"""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from pathlib import Path

from demos.stage.command import Telling
from demos.stage.evidence import last_lines, transitions
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
from demos.stage.patience import ProgramEndedError
from demos.stage.twin_stage import FINAL, Hold, Stage, opened_twin
from local.twin_process import end

JOB1_STOPPED_AT = 53
"""job1 waits here for its preemption, 3 steps after its last regular checkpoint."""
JOB1_RESUMED_TO = 140
"""And here, resumed, until job4 is over and job3 has its instance."""
JOB2_WAITS_AT, JOB4_WAITS_AT = 80, 50
DEAF_STOPPED_AT = 33
_LINES_OF_A_STEP = 20
"""More lines than a job prints from one step to the next: a metric line and events of checkpoints."""


def tell(telling: Telling, *, precision: str) -> int:
    """Run the demo; the exit code. ``precision``: as the training program has it, of every job."""
    report, screen = telling.report, telling.screen
    with tempfile.TemporaryDirectory(prefix="trainmaster-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with _reference(folder, precision) as reference, opened_twin(folder, policy=POLICY) as twin:
            os.environ.update(twin.environment())
            screen.say(f"The twin is up at {twin.ready['endpoint_url']}: one pool with {CAPACITY} instances.")
            scene = _Scene(Stage(twin, screen), folder, precision)
            report.facts |= scene.play()
            report.facts["script_mode"] = scene.play_in_script_mode()
            scene.wait_for(reference, folder / "reference.log")
        report.facts["reference"] = {"losses": evidence.reference_losses(folder / "reference.log")}
    check(report, capacity=CAPACITY)
    screen.console.print()
    print_attempts(report.facts["attempts"] + report.facts["script_mode"]["attempts"], screen.console)
    screen.console.print()
    print_steps_lost(report.facts, screen.console)
    screen.console.print()
    return telling.finish()


@contextmanager
def _reference(folder: Path, precision: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Train job1 once more, outside of everything and uninterrupted: what its losses must be."""
    own = {"precision": precision, "checkpoint_dir": folder / "reference", "model_dir": folder / "model"}
    options = JOB1.hyperparameters() | own
    arguments = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    environment = os.environ | {"SM_OUTPUT_DIR": str(folder)}
    with (folder / "reference.log").open("wb") as log:
        command = [sys.executable, "train.py", *arguments]
        process = subprocess.Popen(command, cwd=ROOT / "training", stdout=log, stderr=log, env=environment)
    try:
        yield process
    finally:
        end(process)


def _quietly() -> AbstractContextManager[io.StringIO]:
    """Hide the session's own lines; the screen shows the same and more."""
    return redirect_stdout(io.StringIO())


class _Scene:
    def __init__(self, stage: Stage, folder: Path, precision: str) -> None:
        self._stage, self._screen = stage, stage.screen
        self._submitter = Submitter(stage.twin, folder, precision)

    def play(self) -> dict[str, object]:
        """Tell the four-job example; what happened."""
        stage = self._stage
        self._hold(JOB1).at(JOB1_STOPPED_AT)
        self._hold(JOB2).at(JOB2_WAITS_AT)
        self._hold(JOB4).at(JOB4_WAITS_AT)
        for job in (JOB1, JOB2, JOB3):
            self._submit(job)
        stage.until("job1 and job2 run", lambda: stage.are({"running"}, [JOB1.label, JOB2.label]))
        self._until_trained(JOB1, JOB1_STOPPED_AT)
        step = stage.bucket.step(self._submitter.checkpoints(JOB1))
        self._screen.say(f"job1 has a checkpoint at step {step} in S3. Now something urgent:")
        self._submit(JOB4)
        stage.until("job1 is preempted", lambda: stage.state(JOB1.label) == "preempted")
        stored = stage.bucket.hashes(self._submitter.checkpoints(JOB1))
        self._hold(JOB1).at(JOB1_RESUMED_TO)
        stage.until("job4 runs", lambda: stage.state(JOB4.label) == "running")
        self._hold(JOB2).release()
        stage.until("job2 is over, and job1 runs again", self._has_job1_resumed)
        self._hold(JOB4).release()
        stage.until("job4 is over, and job3 runs", lambda: stage.state(JOB3.label) in {"running", *FINAL})
        self._hold(JOB1).release()
        stage.until("all four are over", lambda: stage.are(FINAL, [job.label for job in JOBS]))
        return self._facts(stored)

    def play_in_script_mode(self) -> dict[str, object]:
        """Play the scene with a job that does not hear SIGTERM, beside the four, to see what that costs."""
        stage, checkpoints = self._stage, self._submitter.checkpoints(DEAF)
        self._screen.say("And a job in script mode, where SIGTERM does not reach the training:")
        self._hold(DEAF).at(DEAF_STOPPED_AT)
        self._submit(DEAF)
        self._until_trained(DEAF, DEAF_STOPPED_AT)
        self._screen.say(f"estimator.fit()  {URGENT_LABEL}, priority 9, all {CAPACITY} instances")
        with _quietly():
            stage.name(URGENT_LABEL, self._submitter.fit_urgent())
        stage.until(
            "job5 is preempted",
            lambda: stage.state(DEAF.label) in {"preempted", *FINAL},
            leaves_by_itself=False,
        )
        stored = stage.bucket.hashes(checkpoints)
        self._hold(DEAF).release()
        stage.until("job5 is over", lambda: stage.state(DEAF.label) in FINAL)
        made = evidence.attempts([stage.views[DEAF.label]], {stage.names[DEAF.label]: checkpoints}, stored)
        return {
            "steps_lost": evidence.steps_lost(made),
            "interval": CHECKPOINT_EVERY,
            "attempts": made,
        }

    def wait_for(self, reference: "subprocess.Popen[bytes]", log: Path) -> None:
        """Wait for the uninterrupted run, which has the rest of the machine.

        Raises:
            ProgramEndedError: It failed.
        """
        vigil = self._stage.vigil
        vigil.evidence.append(lambda: log.stat().st_size)
        vigil.until("job1's uninterrupted run is over", lambda: reference.poll() is not None)
        if reference.returncode:
            raise ProgramEndedError(
                program="the uninterrupted run of job1",
                exit_code=reference.returncode,
                printed=log.read_text(encoding="utf-8", errors="replace"),
            )

    def _until_trained(self, job: DemoJob, step: int) -> None:
        """Wait for the step at which a job is held, and for the checkpoint before it in S3."""
        stage, saved = self._stage, step // CHECKPOINT_EVERY * CHECKPOINT_EVERY
        checkpoints = self._submitter.checkpoints(job)

        def has_trained() -> bool:
            name = stage.attempt(job.label)
            lines = last_lines(stage.logs, name, count=_LINES_OF_A_STEP) if name else []
            trained = max((number for number, _ in evidence.losses_of(lines)), default=0)
            return trained >= step and stage.bucket.step(checkpoints) >= saved

        stage.until(f"{job.label} has trained {step} steps, {saved} of them in S3", has_trained)

    def _has_job1_resumed(self) -> bool:
        job1 = self._stage.views[JOB1.label]
        return self._stage.state(JOB2.label) in FINAL and job1["state"] == "running"

    def _submit(self, job: DemoJob) -> None:
        self._screen.say(f"estimator.fit()  {job.label}, priority {job.priority}, {job.steps} steps")
        with _quietly():
            self._stage.name(job.label, self._submitter.fit(job))

    def _hold(self, job: DemoJob) -> Hold:
        return self._submitter.hold(job)

    def _facts(self, stored: dict[str, str]) -> dict[str, object]:
        stage = self._stage
        views = list(stage.views.values())
        checkpoints = {stage.names[job.label]: self._submitter.checkpoints(job) for job in JOBS}
        journal = stage.twin.records()
        made = evidence.attempts(views, checkpoints, stored)
        first = [attempt for attempt in made if attempt["job"] == stage.names[JOB1.label]]
        return {
            "transitions": transitions(views),
            "attempts": made,
            "steps_lost": evidence.steps_lost(first),
            "most_at_once": evidence.most_at_once(journal),
            "journal": journal,
        }
