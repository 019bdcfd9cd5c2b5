"""Train by SDK v2, SDK v3 and boto3, each preempted once, and record what the user saw."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster_client.report import Report

from demos.programs.training_settings import CHECKPOINT_EVERY, STEPS
from demos.stage.command import Telling, run
from demos.stage.courses import check_started_by_schedule, has_followed
from demos.stage.directions import Hold
from demos.stage.evidence import Document, losses_of, resumed_from
from demos.stage.job_requests import IMAGE, INSTANCE_TYPE, one_pool
from demos.stage.twin_stage import Stage, opened_stage
from demos.stage.users import NothingToSeeError, UserProgram
from local.namespace import namespaces_refused

STOPPED_AT, RESUMED_TO = 23, 45
"""Steps at which the training waits until the user's program has seen what the story wants it to see."""
COURSE = ("Training", "Pending", "Training")
"""Secondary statuses that each program sees, in this order; others may come in between."""
_CALLS = frozenset({"CreateTrainingJob", "StopTrainingJob", "POST /add-job"})
_METRIC = "metric step="


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    name: str
    title: str
    program: str
    needs_v3: bool = False

    def why_not(self, python_v3: Path) -> str | None:
        """Say why it cannot be tried here; None if it can."""
        if not self.needs_v3:
            return None
        if not python_v3.exists():
            return f"no SDK v3: there is no {python_v3}; make demo-client makes it"
        refused = namespaces_refused()
        return refused and f"this machine refuses the namespaces that jobs of the SDK v3 need: {refused}"


DOORS = (
    Door(name="v2", title="SDK v2: estimator.fit(wait=True)", program="sdk_v2"),
    Door(name="v3", title="SDK v3: ModelTrainer.train(wait=True)", program="sdk_v3", needs_v3=True),
    Door(
        name="boto3",
        title="boto3: create_training_job, describe_training_job, get_log_events",
        program="plain_boto3",
    ),
)


def _options(parser: ArgumentParser) -> None:
    what = "the Python that has SDK v3; without it that door is skipped"
    parser.add_argument("--python-v3", type=Path, default=Path(".venv-v3/bin/python"), help=what)


def tell(telling: Telling) -> int:
    report, python_v3 = telling.report, telling.options.python_v3
    report.facts["doors"] = []
    with opened_stage(telling, one_pool(1), pool="one pool with one instance") as stage:
        for door in DOORS:
            if (why := door.why_not(python_v3)) is not None:
                report.skip(door.name, reason=why)
                continue
            scene = _Scene(stage, door, python_v3 if door.needs_v3 else Path(sys.executable))
            try:
                report.facts["doors"].append(scene.play())
            except NothingToSeeError:
                printed = scene.program.lines()
                report.facts.setdefault("broken_doors", {})[door.name] = printed
                last = printed[-1] if printed else "nothing"
                report.check(f"{door.name}-played", expected="the whole scene", actual=last, ok=False)
        report.facts["journal"] = calls(stage.twin.records())
    check(report)
    return telling.finish()


class _Scene:
    """Plays one door from the start of its program to its end."""

    def __init__(self, stage: Stage, door: Door, python: Path) -> None:
        self._stage, self._door, self._label = stage, door, f"door-{door.name}"
        self._checkpoints, self._hold = stage.checkpoints(self._label), Hold(stage.folder, self._label)
        env = {
            "DEMO_LABEL": self._label,
            "DEMO_BUCKET": stage.twin.ready["bucket"],
            "DEMO_ROLE": stage.twin.ready["role_arn"],
            "DEMO_HOLD": str(self._hold.path),
            "DEMO_IMAGE": IMAGE,
            "DEMO_INSTANCE_TYPE": INSTANCE_TYPE,
        }
        command: list[str | Path] = [python, "-m", f"demos.programs.{door.program}"]
        self.program = UserProgram(door.name, door.title, command, folder=stage.folder, env=env)
        stage.vigil.evidence += [self.program.printed_bytes, self.program.seen]

    def play(self) -> Document:
        """Raises NothingToSeeError: the program has ended."""
        stage, name, urgent = self._stage, self._door.name, f"urgent-{self._door.name}"
        stage.screen.say(f"\n{self._door.title}")
        self._hold.at(STOPPED_AT)
        with self.program:
            self._until(f"{name} has a checkpoint in S3, and sees it train", self._has_checkpoint)
            stage.screen.say("It has a checkpoint in S3. Somebody else has something urgent.")
            stage.occupy(urgent)
            self._until(f"{name} is preempted, and sees it wait", lambda: self.program.has_seen(COURSE[:2]))
            stage.api.cancel(urgent)
            self._hold.at(RESUMED_TO)
            self._until(f"{name} sees it train again", lambda: self.program.has_seen(COURSE))
            self._hold.release()
            stage.guard = lambda: None
            stage.until(f"{name}'s program is over", lambda: self.program.exit_code is not None)
        return self._facts()

    def _has_checkpoint(self) -> bool:
        step = self._stage.bucket.step(self._checkpoints)
        return step >= CHECKPOINT_EVERY and self.program.has_seen(COURSE[:1])

    def _until(self, what: str, holds: Callable[[], object]) -> None:
        def guard() -> None:
            if self.program.exit_code is not None:
                raise NothingToSeeError
            self._find_job()

        self._stage.guard = guard
        # Two of the three doors start in script mode, which keeps SIGTERM to itself.
        self._stage.until(what, holds, leaves_by_itself=False)

    def _find_job(self) -> None:
        """Find the job in the queue, as the SDKs choose a name themselves."""
        if self._door.name not in self._stage.names:
            names = [str(job["name"]) for job in self._stage.api.jobs()["jobs"]]
            name = next((name for name in names if name.startswith(self._label)), None)
            if name is not None:
                self._stage.name(self._door.name, name)

    def _facts(self) -> Document:
        """Gather what happened from the queue, from the job's logs, and from its user's program."""
        stage, seen, output = self._stage, self.program.seen(), self.program.lines()
        job = stage.api.job(stage.names[self._door.name])
        written = [line for attempt in job["attempts"] for line in stage.lines(attempt["training_job_name"])]
        return {
            "door": self._door.name,
            "sdk_version": seen.get("client"),
            "exit_code": self.program.exit_code,
            "job": job["name"],
            "attempts": job["attempts"],
            "log_lines": [line for line in output if steps([line])],
            "log_lines_written": [line for line in written if steps([line])],
            "resumed_from": resumed_from(output, self._checkpoints),
            "model_artifacts": seen.get("model_artifacts"),
            "describe_statuses": seen.get("statuses", []),
            "output": output,
        }


def steps(lines: Iterable[str]) -> list[int]:
    """Return the steps that lines of metrics are about, wherever in its line a metric begins."""
    metrics = ["".join(line.partition(_METRIC)[1:]) for line in lines]
    return [step for step, _ in losses_of(metrics)]


def calls(journal: Iterable[Document]) -> list[Document]:
    """Return the calls that started and stopped jobs, in the order of the twin's journal."""
    wanted = ("seq", "at", "principal", "service", "operation", "status", "error_code")
    return [
        {key: record[key] for key in wanted}
        | {"training_job": (record["params"] or {}).get("TrainingJobName")}
        for record in journal
        if record["kind"] == "call" and record["operation"] in _CALLS
    ]


def check(report: Report) -> None:
    """Check what the demo must have shown of each door, from its facts alone."""
    for door in report.facts["doors"]:
        _check_door(report, door)
    started = [record for record in report.facts["journal"] if record["service"] == "sagemaker"]
    check_started_by_schedule(report, [str(record["principal"]) for record in started])


def _check_door(report: Report, door: Document) -> None:
    name = door["door"]
    report.check(f"{name}-ends-well", expected=0, actual=door["exit_code"])
    statuses = [attempt["status"] for attempt in door["attempts"]]
    report.check(f"{name}-attempts", expected=["Stopped", "Completed"], actual=statuses)
    resumed = (door["resumed_from"] or {}).get("step")
    report.check(f"{name}-resumed", expected="after step 0", actual=f"after step {resumed}", ok=bool(resumed))
    shown, written = steps(door["log_lines"]), steps(door["log_lines_written"])
    report.check(
        f"{name}-log-lines",
        expected=f"the {len(written)} lines of both attempts, each once and in order",
        actual=f"{len(shown)} lines, the last of step {max(shown, default=None)}",
        ok=shown == written and STEPS in shown,
    )
    last = door["attempts"][-1]["training_job_name"]
    report.check(
        f"{name}-model-artifacts",
        expected=f"those of {last}",
        actual=door["model_artifacts"],
        ok=f"/{last}/" in str(door["model_artifacts"]),
    )
    _check_statuses(report, name, [tuple(status) for status in door["describe_statuses"]])


def _check_statuses(report: Report, name: str, seen: Sequence[tuple[str, ...]]) -> None:
    """Check that the status is InProgress until the end, with a second wait in between."""
    course = [("InProgress", secondary) for secondary in COURSE]
    is_underway = bool(seen) and {status for status, *_ in seen[:-1]} == {"InProgress"}
    report.check(
        f"{name}-statuses",
        expected="InProgress throughout, Pending again after Training, at last Completed",
        actual=" ".join("/".join(pair) for pair in seen),
        ok=is_underway and seen[-1] == ("Completed", "Completed") and has_followed(course, seen),
    )


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="client", options=_options))
