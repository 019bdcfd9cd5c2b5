"""Plays planned jobs on a twin whose clock is moved by hand: real submissions, real processes, no real work.

A job's program waits for a word in a pipe and ends with it. The twin's own journal says when it began; from
then on this computes in the twin's clock when it is to end, and says so then.
"""

import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from tests.e2e.plane import Document, Plane, tags
from tests.e2e.signing import Keys, send, signed
from tests.simulate_twin.planned_jobs import ACCOUNT, PlannedHistory, PlannedJob

LONGEST_STEP_S = 60.0
"""Of the twin's clock: shorter than any training, so that an end never comes too late."""
_LEAST_STEP_S = 0.001
"""What the twin says of its clock is no finer."""
LONGEST_S = 14 * 86400.0
"""A history that is not over by then does not move any more."""
_PATIENCE_S = 30.0
"""Of this machine, for a process to come or go."""
_POLL_S = 0.002
SERVICE_FAULT = "InternalServerError: We encountered an internal error. Please try again."
PROGRAM = ("sh", "-c", "trap '' TERM; read code < \"$0.$SM_CURRENT_HOST\"; exit $code")
"""Hears SIGTERM no more than a program that is busy with its last checkpoint."""


def training_role(team: str | None) -> str:
    """Each team trains under its own: warm pools are for jobs of one role."""
    return f"arn:aws:iam::{ACCOUNT}:role/{team or 'local'}-training"


class PlayError(Exception):
    """The history cannot go on."""


@dataclass(slots=True, kw_only=True)
class _Process:
    """A training job's containers, from their start."""

    training_job: str
    began_s: float
    hosts: set[str] = field(default_factory=set)
    asked_to_stop: bool = False


@dataclass(slots=True, kw_only=True)
class _Course:
    """How far a job has come."""

    plan: PlannedJob
    done_s: float = 0.0
    """Training that is in a checkpoint."""
    trained_s: float = 0.0
    """Furthest that it ever came, for breaks that happen once."""
    process: _Process | None = None
    broken: int = 0
    interrupted: bool = False
    saved: int = 0

    def came_to(self, now_s: float) -> float:
        assert self.process is not None
        return self.done_s + now_s - self.process.began_s


@dataclass(slots=True, kw_only=True)
class Player:
    plane: Plane
    folder: Path
    history: PlannedHistory
    begins: datetime
    _courses: dict[str, _Course] = field(default_factory=dict)
    _of: dict[str, str] = field(default_factory=dict)
    """Job by training job."""
    _entries: dict[str, str] = field(default_factory=dict)
    """Job by entry id."""
    _due: list[tuple[float, int, str, str, _Process | None]] = field(default_factory=list)
    """Second, number, what, job, and the start of its containers in which it holds."""
    _count: int = 0
    _now_s: float = 0.0
    _read: int = 0
    _keys: dict[str, Keys] = field(default_factory=dict)
    _bucket: str = ""

    def play(self) -> None:
        """Until every job is over."""
        self._bucket = self.plane.twin.ready["bucket"]
        for job in self.history.jobs:
            self._at(job.submit_s, "submit", job.name)
        plans = {job.name: job for job in self.history.jobs}
        while self._now_s < LONGEST_S:
            while self._due and self._due[0][0] <= self._now_s:
                _, _, what, name, process = heappop(self._due)
                self._do(what, plans[name], process)
            if not self._due and not self._unfinished():
                return
            next_s = self._due[0][0] - self._now_s if self._due else LONGEST_STEP_S
            self._advance(max(min(next_s, LONGEST_STEP_S), _LEAST_STEP_S))
        raise PlayError(f"after {LONGEST_S:g} s of the clock there are still {self._unfinished()}")

    def _unfinished(self) -> list[str]:
        answer = self.plane.call("GET", "/jobs")
        return [job["name"] for job in answer.document["jobs"]]

    def _at(self, second: float, what: str, name: str, process: _Process | None = None) -> None:
        self._count += 1
        heappush(self._due, (max(second, self._now_s), self._count, what, name, process))

    def _advance(self, seconds: float) -> None:
        clock = self.plane.control("/clock", {"advance_seconds": seconds})["clock"]
        self._now_s = self._second(clock)
        self._follow()

    def _second(self, clock: str) -> float:
        return (datetime.fromisoformat(clock) - self.begins).total_seconds()

    # ---- what the journal says

    def _follow(self) -> None:
        for record in self._new_records():
            if record["kind"] == "process":
                self._follow_process(record)
            elif record["operation"] == "CreateTrainingJob" and record["error_code"] is None:
                entry = {one["Key"]: one["Value"] for one in record["params"]["Tags"]}["trainmaster:job"]
                name = record["params"]["TrainingJobName"]
                self._of[name] = self._entries.setdefault(entry, name)

    def _new_records(self) -> Iterator[Document]:
        with self.plane.twin.journal.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                yield json.loads(line)

    def _follow_process(self, record: Mapping[str, Any]) -> None:
        training_job, second = record["training_job"], self._second(record["clock"])
        course = self._courses[self._of[training_job]]
        process, host = course.process, record["host"]
        if record["event"] == "start" and process is None:
            course.process = _Process(training_job=training_job, began_s=second, hosts={host})
            self._plan_ahead(course)
        elif process is None or process.training_job != training_job:
            return
        elif record["event"] == "start":
            process.hosts.add(host)
        elif record["signal"] == "SIGTERM" and not process.asked_to_stop:
            process.asked_to_stop = True
            self._at(second + course.plan.stops_in_s, "stopped", course.plan.name, process)
        elif record["event"] == "exit":
            process.hosts.discard(host)
            if not process.hosts:
                course.process = None

    def _plan_ahead(self, course: _Course) -> None:
        """What is to happen in this attempt."""
        plan, process = course.plan, course.process
        assert process is not None
        ahead = [(float(plan.trains_s), "end")]
        ahead += [(float(one), "break") for one in plan.breaks_s[course.broken :]]
        if plan.interrupted_s is not None and not course.interrupted:
            ahead.append((float(plan.interrupted_s), "interrupt"))
        if plan.saves_every_s is not None:
            done, every = int(course.done_s // plan.saves_every_s), plan.saves_every_s
            ahead += [(float(at), "save") for at in range((done + 1) * every, plan.trains_s, every)]
        for came_to, what in ahead:
            if came_to > course.done_s or what == "end":
                second = process.began_s + came_to - course.done_s
                self._at(second, what, plan.name, process)

    # ---- what happens

    def _do(self, what: str, plan: PlannedJob, process: _Process | None) -> None:
        if what == "submit":
            self._submit(plan)
        elif what == "cancel":
            self.plane.call("DELETE", f"/jobs/{plan.name}")
            self._follow()
        else:
            course = self._courses[plan.name]
            if process is None or process is not course.process:
                return
            if what == "stopped":
                self._leave(process, 0)
            elif not process.asked_to_stop:
                self._train_on(what, course, process)

    def _train_on(self, what: str, course: _Course, process: _Process) -> None:
        match what:
            case "end":
                self._leave(process, course.plan.exit_code)
            case "break":
                course.broken += 1
                self.plane.control("/fail", {"training_job": process.training_job, "reason": SERVICE_FAULT})
                self._until_gone(process)
            case "interrupt":
                course.interrupted = True
                self.plane.control("/spot", {"training_job": process.training_job, "action": "interrupt"})
                self._until_gone(process)
            case _:
                self._save(course, process)

    def _save(self, course: _Course, process: _Process) -> None:
        every = course.plan.saves_every_s
        assert every is not None
        came_to = round(course.came_to(self._now_s)) // every * every
        process.began_s += came_to - course.done_s
        course.done_s = float(came_to)
        key = f"checkpoints/{course.plan.name}/status.json"
        self.plane.client("s3").put_object(Bucket=self._bucket, Key=key, Body=b'{"step": 1}')

    def _submit(self, plan: PlannedJob) -> None:
        self._courses[plan.name] = _Course(plan=plan)
        for host in range(1, plan.count + 1):
            os.mkfifo(self._pipe(plan.name, f"algo-{host}"))
        call = self.plane.unsigned("POST", "/add-job", self._request(plan))
        answer = send(signed(call, self._keys_of(plan.team), self.plane.scope))
        if answer.status != 201:
            raise PlayError(f"{plan.name} was answered with {answer.status}: {answer.body!r}")
        if plan.cancelled_after_s is not None:
            self._at(self._now_s + plan.cancelled_after_s, "cancel", plan.name)
        self._follow()

    def _request(self, plan: PlannedJob) -> Document:
        resources = {"InstanceType": plan.instance_type, "InstanceCount": plan.count, "VolumeSizeInGB": 10}
        stopping = {"MaxRuntimeInSeconds": plan.max_runtime_s}
        changes: Document = {
            "RoleArn": training_role(plan.team),
            "ResourceConfig": resources,
            "StoppingCondition": stopping,
            "Tags": tags(priority=str(plan.priority)),
        }
        if plan.is_spot:
            changes["EnableManagedSpotTraining"] = True
            stopping["MaxWaitTimeInSeconds"] = plan.max_runtime_s + 12 * 3600
        if plan.saves_every_s is not None:
            changes["CheckpointConfig"] = {"S3Uri": f"s3://{self._bucket}/checkpoints/{plan.name}"}
        return self.plane.request(plan.name, [*PROGRAM, str(self.folder / plan.name)], **changes)

    def _leave(self, process: _Process, exit_code: int) -> None:
        """Each of its programs gets the word."""
        for host in sorted(process.hosts):
            self._tell(self._pipe(self._of[process.training_job], host), exit_code)
        self._until_gone(process)

    def _until_gone(self, process: _Process) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while process.hosts:
            if time.monotonic() > deadline:
                raise PlayError(f"{process.training_job} still runs on {sorted(process.hosts)}")
            time.sleep(_POLL_S)
            self._follow()

    def _tell(self, pipe: Path, exit_code: int) -> None:
        """A program that has only just been started may not listen yet."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO or time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)
                continue
            os.write(end, f"{exit_code}\n".encode())
            os.close(end)
            return

    def _pipe(self, name: str, host: str) -> Path:
        return self.folder / f"{name}.{host}"

    def _keys_of(self, team: str | None) -> Keys:
        if team is None:
            return self.plane.keys
        if team not in self._keys:
            sts = self.plane.client("sts")
            arn = f"arn:aws:iam::{self.plane.twin.ready['account_id']}:role/{team}"
            given = sts.assume_role(RoleArn=arn, RoleSessionName="history")["Credentials"]
            self._keys[team] = Keys(
                access_key_id=given["AccessKeyId"],
                secret_access_key=given["SecretAccessKey"],
                session_token=given["SessionToken"],
            )
        return self._keys[team]
