"""Train by six doors, boto3 to Airflow, each preempted once, and record what each client saw.

Six programs wait, train, are preempted by an urgent job, wait again, resume and end (``make demo-doors``).
"""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from trainmaster_client.report import Report

from demos.programs.sight import REQUEST_VARIABLE
from demos.stage.command import Telling, run
from demos.stage.courses import check_started_by_schedule, has_followed
from demos.stage.evidence import Document
from demos.stage.job_requests import Job, one_pool
from demos.stage.processes import ROOT, running_server
from demos.stage.twin_stage import Stage, opened_stage
from demos.stage.users import NothingToSeeError, UserProgram, created

COURSE = (
    ("InProgress", "Pending"),
    ("InProgress", "Training"),
    ("InProgress", "Pending"),
    ("InProgress", "Training"),
    ("Completed", "Completed"),
)
"""Statuses that a client must have seen in this order; others in between were in progress."""
_SECONDARIES = [secondary for _, secondary in COURSE]
STEPS = 20
"""Least steps after a job was resumed. The first attempt trains until it is preempted."""
SAVED_EVERY = 12
"""Steps. What is in S3 is what rested for two seconds."""
_STEP_SECONDS = 0.25
_PROGRAM = f"""
import os, time
saved = os.environ["SM_CHECKPOINT_DIR"] + "/step"
step = begin = int(open(saved).read()) if os.path.exists(saved) else 0
print(f"resumed from step={{begin}}" if begin else "begins", flush=True)
while not (begin and step >= begin + {STEPS} and os.path.exists(os.environ["END"])):
    time.sleep({_STEP_SECONDS})
    step += 1
    print(f"step={{step}}", flush=True)
    if step % {SAVED_EVERY} == 0:
        with open(saved + "~", "w") as draft:
            draft.write(str(step))
        os.replace(draft.name, saved)
"""
_RUN_PROGRAM = ["python", "-c", "import os; exec(os.environ['PROGRAM'])"]
"""A part of a command has at most 256 characters, a variable 512."""
_RESUMED = "resumed from step="

OWN, AIO, AIRFLOW = Path(sys.executable), ROOT / ".venv-aio/bin/python", ROOT / ".venv-airflow/bin/python"
AWS, PACKAGES = ROOT / ".venv-cli/bin/aws", ROOT / "tests/clients/javascript/node_modules"
_AIRFLOW = {
    "AIRFLOW__CORE__UNIT_TEST_MODE": "True",  # an operator may be executed without a task instance
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__METRICS__TIMER_UNIT_CONSISTENCY": "True",  # else its import warns
    "AIRFLOW_CONN_AWS_DEFAULT": "aws://",  # keys and endpoint as boto3 finds them
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    name: str
    title: str
    command: Sequence[str | Path]
    needs: Path
    """File without which the door cannot be tried."""
    is_gateway: bool = False
    """Whether the program uses the gateway, set by its variable alone."""

    def why_not(self) -> str | None:
        if self.needs.exists():
            return None
        return f"there is no {self.needs.relative_to(ROOT)}: make demo-doors makes it where its tools are"


def _python(python: Path, program: str, *arguments: str | Path) -> list[str | Path]:
    return [python, "-m", f"demos.programs.{program}", *arguments]


DOORS = (
    Door(
        name="boto3",
        title="boto3.Session() after install()",
        command=_python(OWN, "hooked_session", "boto3"),
        needs=OWN,
    ),
    Door(
        name="botocore",
        title="botocore's own session after install()",
        command=_python(OWN, "hooked_session", "botocore"),
        needs=OWN,
    ),
    Door(
        name="aiobotocore",
        title="aiobotocore after install()",
        command=_python(AIO, "aiobotocore_session"),
        needs=AIO,
    ),
    Door(
        name="cli",
        title="AWS CLI through the gateway",
        command=_python(OWN, "command_line", AWS),
        needs=AWS,
        is_gateway=True,
    ),
    Door(
        name="javascript",
        title="SDK for JavaScript v3 through the gateway",
        command=["node", ROOT / "demos/programs/javascript_sdk.cjs"],
        needs=PACKAGES,
        is_gateway=True,
    ),
    Door(
        name="airflow",
        title="Airflow's SageMakerTrainingOperator under trainmaster run",
        command=[AIRFLOW.with_name("trainmaster"), "run", "--", *_python(AIRFLOW, "airflow_operator")],
        needs=AIRFLOW,
    ),
)


def tell(telling: Telling) -> int:
    report = telling.report
    report.facts |= {"doors": [], "created": []}
    for door in DOORS:
        if (why := door.why_not()) is not None:
            report.skip(door.name, reason=why)
    doors = [door for door in DOORS if door.why_not() is None]
    pool = f"{len(doors)} instances, all of them somebody's"
    with opened_stage(telling, one_pool(len(doors)), pool=pool) as stage, ExitStack() as until_the_end:
        scene = _Scene(stage, until_the_end, doors)
        try:
            scene.play()
            report.facts["doors"] = scene.facts()
        except NothingToSeeError as missed:
            report.check("played", expected="the whole scene", actual=str(missed), ok=False)
            report.facts["outputs"] = {program.door: program.lines() for program in scene.programs}
        report.facts["created"] = created(stage.twin.records())
    check(report)
    return telling.finish()


class _Scene:
    def __init__(self, stage: Stage, until_the_end: ExitStack, doors: Sequence[Door]) -> None:
        self._stage, self._until_the_end, self._end = stage, until_the_end, stage.folder / "end"
        gateway = until_the_end.enter_context(running_server(stage.folder, "gateway"))["endpoint_url"]
        self.programs = [self._program(door, gateway) for door in doors]
        stage.vigil.evidence += [program.printed_bytes for program in self.programs]

    def _program(self, door: Door, gateway: str) -> UserProgram:
        stage, folder = self._stage, self._stage.folder / door.name
        folder.mkdir()
        request = folder / "request.json"
        job = Job(
            name=f"door-{door.name}",
            command=_RUN_PROGRAM,
            environment={"PROGRAM": _PROGRAM, "END": str(self._end)},
        )
        request.write_text(json.dumps(job.request(stage.twin.ready)), encoding="utf-8")
        env = {REQUEST_VARIABLE: str(request), "NODE_PATH": str(PACKAGES), "AIRFLOW_HOME": str(folder)}
        if door.is_gateway:
            env |= {"AWS_ENDPOINT_URL_SAGEMAKER": gateway, "NO_PROXY": "127.0.0.1"}
        return UserProgram(door.name, door.title, door.command, folder=folder, env=env | _AIRFLOW)

    def play(self) -> None:
        """Raises NothingToSeeError."""
        stage = self._stage
        self._occupy("earlier", priority=5)
        for program in self.programs:
            stage.screen.say(f"  door-{program.door}: {program.title}")
            self._until_the_end.enter_context(program)
        self._until("every program sees its job wait", lambda: self._have_seen(1))
        stage.api.cancel("earlier")
        self._until("every program sees its job train, and each has a checkpoint", self._have_checkpoints)
        stage.screen.say("Each has a checkpoint in S3. Somebody else has something urgent.")
        self._occupy("urgent", priority=9)
        self._until("every program sees its job wait again", lambda: self._have_seen(3))
        stage.api.cancel("urgent")
        self._until("every program sees its job train again", lambda: self._have_seen(4))
        self._end.touch()
        self._until(
            "all programs are over",
            lambda: all(program.exit_code is not None for program in self.programs),
        )

    def facts(self) -> list[Document]:
        """Tell of each door what happened to its job, as queue and logs have it and as its program saw it."""
        records = self._stage.twin.records()
        return [
            self._facts(program) | {"created": created(records, of=f"door-{program.door}")}
            for program in self.programs
        ]

    def _facts(self, program: UserProgram) -> Document:
        name, seen = f"door-{program.door}", program.seen()
        attempts = self._stage.api.job(name)["attempts"]
        keys = ("training_job_name", "status", "reason")
        return {
            "door": program.door,
            "title": program.title,
            "client": seen.get("client"),
            "exit_code": program.exit_code,
            "job": name,
            "attempts": [{key: attempt[key] for key in keys} for attempt in attempts],
            "statuses": seen.get("statuses", []),
            "log_lines": [
                line for attempt in attempts for line in self._stage.lines(attempt["training_job_name"])
            ],
            "output": program.lines(),
        }

    def _occupy(self, name: str, *, priority: int) -> None:
        """Take all instances, with a job that does nothing until it is cancelled."""
        self._stage.occupy(name, len(self.programs), priority=priority)
        self._until(f"{name} runs", lambda: self._stage.state(name) == "running")

    def _have_seen(self, number: int) -> bool:
        """Tell whether each program has seen so much of the course."""
        return all(program.has_seen(_SECONDARIES[:number]) for program in self.programs)

    def _have_checkpoints(self) -> bool:
        stage = self._stage
        names = [f"door-{program.door}" for program in self.programs]
        return self._have_seen(2) and all(stage.bucket.hashes(stage.checkpoints(name)) for name in names)

    def _until(self, what: str, holds: Callable[[], object]) -> None:
        def guard() -> None:
            if broken := [program.door for program in self.programs if program.exit_code]:
                raise NothingToSeeError(f"not seen: {what}; broken: {', '.join(broken)}")

        self._stage.guard = guard
        # These programs do not hear SIGTERM, and they save as they go.
        self._stage.until(what, holds, leaves_by_itself=False)


def check(report: Report) -> None:
    """Check what the demo must have shown of each door, from its facts alone."""
    for door in report.facts["doors"]:
        _check_door(report, door)
    check_started_by_schedule(report, [str(record["by"]) for record in report.facts["created"]])


def _check_door(report: Report, door: Document) -> None:
    name, lines = door["door"], door["log_lines"]
    report.check(f"{name}-ends-well", expected=0, actual=door["exit_code"])
    attempts = [attempt["status"] for attempt in door["attempts"]]
    report.check(f"{name}-attempts", expected=["Stopped", "Completed"], actual=attempts)
    seen = [tuple(status) for status in door["statuses"]]
    report.check(
        f"{name}-sees-it-wait-resume-and-complete",
        expected=" ".join("/".join(pair) for pair in COURSE),
        actual=" ".join("/".join(pair) for pair in seen),
        ok=has_followed(COURSE, seen) and {status for status, _ in seen[:-1]} == {"InProgress"},
    )
    by = [str(record["by"]).rpartition("/")[2] for record in door["created"]]
    report.check(f"{name}-started-by-schedule", expected=["schedule"] * len(attempts), actual=by)
    begun = next((line for line in lines if line.startswith(_RESUMED)), f"{_RESUMED}0")
    step = int(begun.removeprefix(_RESUMED))
    report.check(f"{name}-resumed", expected="after its checkpoint", actual=f"after step {step}", ok=step > 0)
    printed = {line for line in lines if line.startswith("step=")}
    last = max((int(line.removeprefix("step=")) for line in printed), default=0)
    report.check(
        f"{name}-log",
        expected=f"steps 1 to {step + STEPS} or later, none missing",
        actual=f"{len(printed)} steps, the last is {last}",
        ok=last >= step + STEPS and printed == {f"step={number}" for number in range(1, last + 1)},
    )


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="doors"))
