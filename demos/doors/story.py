"""The scene: six programs wait, train, are preempted by somebody more urgent, wait again, resume and end."""

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from demos.stage.command import Telling
from demos.doors import waiting_jobs
from demos.doors.checks import check
from demos.doors.door_programs import DOORS, Door, Program, running_gateway
from demos.stage.evidence import Document, log_lines
from demos.stage.job_requests import INSTANCE_TYPE, urgent_request
from demos.stage.twin_stage import Stage, opened_twin

_COURSE = ("Pending", "Training", "Pending", "Training")
"""Secondary statuses that each program sees before its job may end; others may come in between."""


class NothingToSeeError(Exception):
    """A program ended before the scene was over; the checks say which."""


def tell(telling: Telling) -> int:
    """Run the demo; the exit code."""
    report = telling.report
    report.facts |= {"doors": [], "created": []}
    for door in DOORS:
        if (why := door.why_not()) is not None:
            report.skip(door.name, reason=why)
    doors = [door for door in DOORS if door.why_not() is None]
    policy = {"version": 1, "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: len(doors)}}]}
    with (
        tempfile.TemporaryDirectory(prefix="trainmaster-doors-", ignore_cleanup_errors=True) as name,
        opened_twin(Path(name), policy=policy) as twin,
        ExitStack() as until_the_end,
    ):
        os.environ.update(twin.environment())
        scene = _Scene(Stage(twin, telling.screen), Path(name), doors)
        try:
            scene.play(Path(name), until_the_end)
            report.facts["doors"] = scene.facts()
        except NothingToSeeError as missed:
            report.check("played", expected="the whole scene", actual=str(missed), ok=False)
            report.facts["outputs"] = scene.outputs()
        report.facts["created"] = created(twin.records())
    check(report)
    telling.screen.console.print()
    return telling.finish()


class _Scene:
    def __init__(self, stage: Stage, folder: Path, doors: Sequence[Door]) -> None:
        self._stage, self._end = stage, folder / "end"
        self._programs = [
            Program(door, folder, waiting_jobs.job_of(f"door-{door.name}", stage.twin, ends_with=self._end))
            for door in doors
        ]
        stage.vigil.evidence += [program.printed_bytes for program in self._programs]

    def play(self, folder: Path, until_the_end: ExitStack) -> None:
        """Raises NothingToSeeError."""
        stage, count = self._stage, len(self._programs)
        gateway = until_the_end.enter_context(running_gateway(folder, stage.until))
        stage.screen.say(f"The twin is up with {count} instances, and a gateway. Somebody has them all.")
        self._occupy("earlier", priority=5)
        for program in self._programs:
            stage.screen.say(f"  {program.job}: {program.door.title}")
            until_the_end.enter_context(program.running(gateway))
        self._until("every program sees its job wait", lambda: self._have_seen(1))
        stage.api.cancel("earlier")
        self._until("every program sees its job train, and each has a checkpoint", self._have_checkpoints)
        stage.screen.say("Each has a checkpoint in S3. Somebody else has something urgent.")
        self._occupy("urgent", priority=9)
        self._until("every program sees its job wait again", lambda: self._have_seen(3))
        stage.api.cancel("urgent")
        self._until("every program sees its job train again", lambda: self._have_seen(4))
        self._end.touch()
        self._until("all programs are over", self._are_over)

    def facts(self) -> list[Document]:
        """Tell of each door what happened to its job, as queue and logs have it and as its program saw it."""
        records = self._stage.twin.records()
        return [
            self._facts(program) | {"created": created(records, of=program.job)} for program in self._programs
        ]

    def outputs(self) -> dict[str, list[str]]:
        """Return what each program printed."""
        return {program.door.name: program.output() for program in self._programs}

    def _facts(self, program: Program) -> Document:
        job = self._stage.api.job(program.job)
        names = [attempt["training_job_name"] for attempt in job["attempts"]]
        return {
            "door": program.door.name,
            "title": program.door.title,
            "client": program.seen().get("client"),
            "exit_code": program.exit_code,
            "job": program.job,
            "attempts": [
                {key: attempt[key] for key in ("training_job_name", "status", "reason")}
                for attempt in job["attempts"]
            ],
            "statuses": program.seen().get("statuses", []),
            "log_lines": [line for name in names for line in log_lines(self._stage.logs, name)],
            "output": program.output(),
        }

    def _occupy(self, name: str, *, priority: int) -> None:
        """Take all instances, with a job that does nothing until it is cancelled."""
        instances = len(self._programs)
        self._stage.api.add_job(
            urgent_request(name, self._stage.twin, instances=instances, priority=priority)
        )
        self._until(f"{name} runs", lambda: self._stage.api.job(name)["state"] == "running")

    def _have_seen(self, number: int) -> bool:
        """Tell whether each program has seen so much of the course."""
        return all(followed(program.statuses(), number) for program in self._programs)

    def _have_checkpoints(self) -> bool:
        return self._have_seen(2) and all(
            self._stage.bucket.hashes(waiting_jobs.checkpoints(program.job, self._stage.twin))
            for program in self._programs
        )

    def _are_over(self) -> bool:
        return all(program.exit_code is not None for program in self._programs)

    def _until(self, what: str, holds: Callable[[], object]) -> None:
        def looked() -> object:
            if broken := [program.door.name for program in self._programs if program.exit_code]:
                raise NothingToSeeError(f"not seen: {what}; broken: {', '.join(broken)}")
            return holds()

        # These programs do not hear SIGTERM, and they save as they go.
        self._stage.until(what, looked, leaves_by_itself=False)


def followed(statuses: Iterable[str], number: int) -> bool:
    """Tell whether the first ``number`` statuses of the course are among these, in order."""
    rest = iter(statuses)
    return all(status in rest for status in _COURSE[:number])


def created(records: Iterable[Document], *, of: str = "") -> list[Document]:
    """Return each CreateTrainingJob of the twin's journal, for one job or all, with its caller."""
    return [
        {
            "at": record["at"],
            "training_job": record["params"]["TrainingJobName"],
            "by": record["principal"],
            "status": record["status"],
        }
        for record in records
        if record["kind"] == "call"
        and record["operation"] == "CreateTrainingJob"
        and record["params"]["TrainingJobName"].startswith(of)
    ]
