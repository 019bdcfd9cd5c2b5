"""The scene: six programs wait, train, are preempted by somebody more urgent, wait again, resume and end."""

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

import boto3
from rich.console import Console
from trainmaster_client.api import ApiClient
from trainmaster_client.report import Report

from demos.doors import waiting_jobs
from demos.doors.checks import check
from demos.doors.door_programs import DOORS, Program, running_gateway
from demos.evidence import Bucket, Document, log_lines
from demos.requests import INSTANCE_TYPE, urgent_request
from demos.screen import Screen
from local.twin_process import TwinProcess, running_twin

LOOK_SECONDS = 0.7
LOOKS_WAITING_SECONDS = 4.0
"""How long a job waits at least: each program looks at it meanwhile."""
LONGEST_SECONDS = 240.0


class NothingToSeeError(Exception):
    """What should have happened by now did not; the checks say what."""


def tell(path: Path, console: Console) -> int:
    """Run the demo; the exit code."""
    report, screen = Report(name="doors"), Screen(console)
    report.facts |= {"doors": [], "created": []}
    for door in DOORS:
        if (why := door.why_not()) is not None:
            report.skip(door.name, reason=why)
    doors = [door for door in DOORS if door.why_not() is None]
    policy = {"version": 1, "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: len(doors)}}]}
    with tempfile.TemporaryDirectory(prefix="trainmaster-doors-") as name, ExitStack() as until_the_end:
        twin = until_the_end.enter_context(running_twin(Path(name), policy=policy))
        os.environ.update(twin.environment())
        programs = [
            Program(door, Path(name), waiting_jobs.job_of(f"door-{door.name}", twin)) for door in doors
        ]
        scene = _Scene(twin, screen, programs)
        try:
            scene.play(Path(name), until_the_end)
            report.facts["doors"] = [scene.facts(program) for program in programs]
            for door in report.facts["doors"]:
                door["created"] = created(twin.records(), of=door["job"])
        except NothingToSeeError as missed:
            report.check("played", expected="the whole scene", actual=str(missed), ok=False)
            report.facts["outputs"] = {program.door.name: program.output() for program in programs}
        report.facts["created"] = created(twin.records())
    check(report)
    console.print()
    return report.finish(path)


class _Scene:
    def __init__(self, twin: TwinProcess, screen: Screen, programs: list[Program]) -> None:
        self._twin = twin
        self._screen = screen
        self._programs = programs
        self._api = ApiClient(twin.ready["api_url"], boto3.Session())
        self._bucket = Bucket()
        self._deadline = time.monotonic() + LONGEST_SECONDS

    def play(self, folder: Path, until_the_end: ExitStack) -> None:
        gateway = until_the_end.enter_context(
            running_gateway(folder, lambda seen: self._until(seen, "the gateway answers"))
        )
        count = len(self._programs)
        self._screen.say(f"The twin is up with {count} instances, and a gateway. Somebody has them all.")
        self._occupy("earlier", priority=5)
        for program in self._programs:
            self._screen.say(f"  {program.job}: {program.door.title}")
            until_the_end.enter_context(program.running(gateway))
        self._until(lambda: self._are({"pending"}), "all jobs wait")
        self._wait_and_see()
        self._api.cancel("earlier")
        self._until(self._have_checkpoints, "each job has a checkpoint")
        self._screen.say("Each has a checkpoint in S3. Somebody else has something urgent.")
        self._occupy("urgent", priority=9)
        self._until(lambda: self._are({"preempted"}), "all jobs were preempted")
        self._wait_and_see()
        self._api.cancel("urgent")
        self._until(self._are_over, "all programs ended")

    def facts(self, program: Program) -> Document:
        """What happened to one door's job, as queue and logs have it, and as its program saw it."""
        job, logs = self._api.job(program.job), boto3.client("logs")
        names = [one["training_job_name"] for one in job["attempts"]]
        return {
            "door": program.door.name,
            "title": program.door.title,
            "client": program.seen().get("client"),
            "exit_code": program.exit_code,
            "job": program.job,
            "attempts": [
                {key: one[key] for key in ("training_job_name", "status", "reason")}
                for one in job["attempts"]
            ],
            "statuses": program.seen().get("statuses", []),
            "log_lines": [line for name in names for line in log_lines(logs, name)],
            "output": program.output(),
        }

    def _occupy(self, name: str, *, priority: int) -> None:
        instances = len(self._programs)
        self._api.add_job(urgent_request(name, self._twin, instances=instances, priority=priority))
        self._until(lambda: self._api.job(name)["state"] == "running", f"{name} runs")

    def _are(self, states: set[str]) -> bool:
        queue = {str(job["name"]): job["state"] for job in self._api.jobs()["jobs"]}
        return {queue.get(program.job) for program in self._programs} == states

    def _have_checkpoints(self) -> bool:
        return all(
            self._bucket.hashes(waiting_jobs.checkpoints(one.job, self._twin)) for one in self._programs
        )

    def _are_over(self) -> bool:
        return all(program.exit_code is not None for program in self._programs)

    def _wait_and_see(self) -> None:
        seen_at = time.monotonic() + LOOKS_WAITING_SECONDS
        self._until(lambda: time.monotonic() >= seen_at, "")

    def _until(self, seen: Callable[[], object], what: str) -> None:
        while not seen():
            broken = [one.door.name for one in self._programs if one.exit_code]
            if broken or time.monotonic() > self._deadline:
                raise NothingToSeeError(f"not seen: {what}; broken: {', '.join(broken) or 'none'}")
            self._screen.show(self._api.jobs()["jobs"], [])
            time.sleep(LOOK_SECONDS)


def created(records: Iterable[Document], *, of: str = "") -> list[Document]:
    """Each CreateTrainingJob of the twin's journal, for one job or all: who asked for what."""
    return [
        {
            "at": one["at"],
            "training_job": one["params"]["TrainingJobName"],
            "by": one["principal"],
            "status": one["status"],
        }
        for one in records
        if one["kind"] == "call"
        and one["operation"] == "CreateTrainingJob"
        and one["params"]["TrainingJobName"].startswith(of)
    ]
