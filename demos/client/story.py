"""The scene: a user's program per door, and meanwhile somebody with a more urgent job."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from trainmaster_client.report import Report

from demos.client import evidence
from demos.client.checks import check
from demos.client.doors.settings import CHECKPOINT_EVERY, INSTANCE_TYPE
from demos.client.programs import DOORS, Program, why_not
from demos.stage.command import Telling
from demos.stage.evidence import Document, log_lines
from demos.stage.job_requests import urgent_request
from demos.stage.twin_stage import Stage, opened_twin

POLICY = {"version": 1, "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: 1}}]}
STOPPED_AT, RESUMED_TO = 23, 45
"""Steps at which the training waits until the user's program has seen what the story wants it to see."""
_COURSE = ("Training", "Pending", "Training")
"""Secondary statuses that each program sees, in this order; others may come in between."""


def tell(telling: Telling, python_v3: Path) -> int:
    """Run the demo; the exit code."""
    report, screen = telling.report, telling.screen
    report.facts["doors"] = []
    with tempfile.TemporaryDirectory(prefix="trainmaster-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with opened_twin(folder, policy=POLICY) as twin:
            os.environ.update(twin.environment())
            screen.say(f"The twin is up at {twin.ready['endpoint_url']}: one pool with one instance.")
            for door in DOORS:
                if (why := why_not(door, python_v3)) is not None:
                    report.skip(door.name, reason=why)
                    continue
                program = Program(door, folder, twin, python_v3 if door.needs_v3 else None)
                program.hold.at(STOPPED_AT)
                with program:
                    _play(_Scene(Stage(twin, screen), program), program, report)
            report.facts["journal"] = evidence.calls(twin.records())
    check(report)
    screen.console.print()
    return telling.finish()


class NothingToSeeError(Exception):
    """The program ended before the scene was over."""


def _play(scene: "_Scene", program: Program, report: Report) -> None:
    try:
        report.facts["doors"].append(scene.play())
    except NothingToSeeError:
        report.facts.setdefault("broken_doors", {})[program.door.name] = program.output().splitlines()
        last = next(reversed(program.output().split("\n")[:-1]), "nothing")
        report.check(f"{program.door.name}-played", expected="the whole scene", actual=last, ok=False)


class _Scene:
    """Plays one door from the start of its program to its end."""

    def __init__(self, stage: Stage, program: Program) -> None:
        self._stage, self._program = stage, program
        self._label = program.door.name
        self._stage.vigil.evidence += [program.printed_bytes, program.seen]

    def play(self) -> Document:
        stage, door = self._stage, self._program.door
        stage.screen.say(f"\n{door.title}")
        self._until(f"{door.name} has a checkpoint in S3, and sees it train", self._has_checkpoint)
        stage.screen.say("It has a checkpoint in S3. Somebody else has something urgent.")
        urgent = f"urgent-{door.name}"
        stage.api.add_job(urgent_request(urgent, stage.twin))
        self._until(f"{door.name} is preempted, and sees it wait", lambda: self._has_seen(2))
        stage.api.cancel(urgent)
        self._program.hold.at(RESUMED_TO)
        self._until(f"{door.name} sees it train again", lambda: self._has_seen(3))
        self._program.hold.release()
        stage.until(f"{door.name}'s program is over", lambda: self._program.is_over)
        job = stage.api.job(stage.names[self._label])
        written = [
            line
            for attempt in job["attempts"]
            for line in log_lines(stage.logs, attempt["training_job_name"])
        ]
        return evidence.door(self._program, job, written)

    def _has_checkpoint(self) -> bool:
        return self._stage.bucket.step(self._program.checkpoints) >= CHECKPOINT_EVERY and self._has_seen(1)

    def _has_seen(self, number: int) -> bool:
        """Tell whether the program has seen so much of the course."""
        rest = iter(self._program.seen_secondary_statuses())
        return all(status in rest for status in _COURSE[:number])

    def _until(self, what: str, holds: Callable[[], object]) -> None:
        """Raises NothingToSeeError: the program has ended."""

        def looked() -> object:
            if self._program.is_over:
                raise NothingToSeeError
            self._find_job()
            return holds()

        # Two of the three doors start in script mode, which keeps SIGTERM to itself.
        self._stage.until(what, looked, leaves_by_itself=False)

    def _find_job(self) -> None:
        """Find the job in the queue, as the SDKs choose a name themselves."""
        if self._label not in self._stage.names:
            name = self._program.job_among(self._stage.api.jobs()["jobs"])
            if name:
                self._stage.name(self._label, name)
