"""What a story happens on: a twin whose clock is moved by hand, and teams that call its API.

Everything that a story does or looks at for a check is kept as a record, so that a reader can judge too.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.plane import INSTANCE_TYPE, Document, Plane, running_plane, tags, until_exists
from tests.e2e.signing import Answer, Keys, send, signed

ADMIN = "admin"
"""The twin's own user."""
A_MOMENT = 5.0
"""Of the twin's clock: longer than its own waits before Training at the default speed."""
HARSH_WORLD, LATER = "harsh", 6.0
_STEP = 1.0
_PATIENCE_SECONDS = 90.0
"""Of this machine."""
_POLL_SECONDS = 0.05
_KEPT_CALLS = frozenset({"CreateTrainingJob", "StopTrainingJob", "UpdateTrainingJob"})
"""Of the journal, beside what the API was asked to change."""


class StoryError(Exception):
    """The story cannot go on."""


@dataclass(kw_only=True)
class Stage:
    plane: Plane
    folder: Path
    checks: list[Document] = field(default_factory=list)
    """Each ``{"what", "expected", "actual", "ok"}``."""
    records: list[Document] = field(default_factory=list)
    late: float = 1.0
    """How many times later than in the kind world things may come about."""
    _keys: dict[str, Keys] = field(default_factory=dict)
    _clock: str = ""

    # ---- what people do

    def api(self, method: str, path: str, document: object = None, *, by: str = ADMIN) -> Answer:
        """A signed call that is kept as a record."""
        answer = self._send(method, path, document, by)
        self.records.append(
            {
                "kind": "api",
                "by": by,
                "call": f"{method} {path}",
                "document": document,
                "status": answer.status,
                "answer": json.loads(answer.body),
            }
        )
        return answer

    def did(self, method: str, path: str, document: object = None, *, by: str = ADMIN) -> Document:
        """As ``api``, for a call that has to work."""
        answer = self.api(method, path, document, by=by)
        if answer.status >= 400:
            raise StoryError(f"{method} {path} was answered with {answer.status}: {answer.document}")
        found: Document = answer.document
        return found

    def submit(self, name: str, *, by: str = ADMIN, priority: int = 0, **changes: Any) -> Document:
        """A job that trains until ``finish``; its JobView. ``changes`` as for ``request``."""
        request = self.request(name, priority=priority, **changes)
        view: Document = self.did("POST", "/add-job", request, by=by)["job"]
        return view

    def request(
        self,
        name: str,
        *,
        priority: int = 0,
        count: int = 1,
        minutes: int = 60,
        options: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> Document:
        """A CreateTrainingJob request; ``options`` are more tags, ``changes`` whole fields."""
        resources = {"InstanceType": INSTANCE_TYPE, "InstanceCount": count, "VolumeSizeInGB": 10}
        usual = {
            "ResourceConfig": resources | changes.pop("resources", {}),
            "StoppingCondition": {"MaxRuntimeInSeconds": 60 * minutes},
            "Tags": tags(priority=str(priority), **(options or {})),
        }
        return self.plane.request(name, until_exists(self._file(name)), **usual | changes)

    def finish(self, *names: str) -> None:
        """Let these jobs' programs end, and everything happen that follows at once."""
        self.advance(A_MOMENT)  # so that all of them train
        for name in names:
            self._await_late(name, "running")
            self._file(name).touch()
            view = self._peek(name)
            if view["state"] != "running":
                raise StoryError(f"{name} cannot end: it is {view['state']}")
            if self.late == 1:  # else a look of ours would use up the account's rate
                self.plane.await_status(view["training_job_name"], "Uploading", "Completed")
        self.advance(A_MOMENT)
        for name in names:
            self._await_late(name, "completed")

    def _await_late(self, name: str, state: str) -> None:
        """In the harsh world what follows at once is known later, and read later still."""
        if self.late > 1:
            self.until(lambda: self._peek(name)["state"] == state, f"{name} {state}")
            self.advance(2 * A_MOMENT)

    def save_checkpoint(self, name: str) -> None:
        """As the job's program would, now: its ``status.json`` in S3."""
        bucket, key = self.plane.twin.ready["bucket"], f"checkpoints/{name}/status.json"
        self.plane.client("s3").put_object(Bucket=bucket, Key=key, Body=b'{"step": 1}')
        self.records.append({"kind": "checkpoint", "job": name, "clock": self._clock})

    def checkpoints_of(self, name: str) -> Document:
        """A job's CheckpointConfig."""
        bucket = self.plane.twin.ready["bucket"]
        return {"CheckpointConfig": {"S3Uri": f"s3://{bucket}/checkpoints/{name}"}}

    def twin_fails(self, operation: str, error_code: str, *, times: int) -> None:
        fault = {"operation": operation, "error_code": error_code, "times": times}
        self.plane.control("/errors", fault)
        self.records.append({"kind": "fault", **fault})

    # ---- time

    def advance(self, seconds: float) -> None:
        """Everything due by then has happened."""
        self._clock = self.plane.control("/clock", {"advance_seconds": seconds})["clock"]

    def until(self, seen: Callable[[], bool], what: str, *, within: float = 120.0) -> None:
        """Move the clock on until it is so; programs end in this machine's time, so wait for those too."""
        within *= self.late
        deadline, moved = time.monotonic() + _PATIENCE_SECONDS * self.late, 0.0
        while not seen():
            if moved >= within or time.monotonic() > deadline:
                raise StoryError(f"{moved:g} s of the clock went by without: {what}")
            self.advance(_STEP)
            moved += _STEP
            time.sleep(_POLL_SECONDS)

    def until_state(self, **states: str) -> None:
        """By name, ``_`` for ``-``."""
        wanted = {name.replace("_", "-"): state for name, state in states.items()}
        self.until(
            lambda: all(self._peek(name)["state"] == state for name, state in wanted.items()),
            ", ".join(f"{name} {state}" for name, state in wanted.items()),
        )

    @property
    def now(self) -> datetime:
        """Of the twin's clock."""
        return datetime.fromisoformat(self._clock)

    @property
    def month(self) -> str:
        """``YYYY-MM`` of the twin's clock, as ledgers have it."""
        return self._clock[:7]

    # ---- what is seen

    def look(self, name: str, *, by: str = ADMIN) -> Document:
        """The JobView, as a record."""
        return self.did("GET", f"/jobs/{name}", by=by)

    def why(self, name: str, *, by: str = ADMIN) -> str | None:
        """The code of the reason why it waits; None when it does not."""
        waiting = self.look(name, by=by)["waiting"]
        return None if waiting is None else str(waiting["code"])

    def pool(self) -> Document:
        """The first pool of GET /pools, as a record."""
        found: Document = self.did("GET", "/pools")["pools"][0]
        return found

    def created(self, *, after: int = 0) -> list[str]:
        """Training jobs that were asked for, in their order, by name; not what the account's rate refused."""
        return [
            one["params"]["TrainingJobName"]
            for one in self.plane.calls("CreateTrainingJob", after=after)
            if one["error_code"] != "ThrottlingException"
        ]

    def stopped(self) -> list[str]:
        """Training jobs that were told to stop, by name; two passes at once may tell the same one twice."""
        told = (one["params"]["TrainingJobName"] for one in self.plane.calls("StopTrainingJob"))
        return list(dict.fromkeys(told))

    def described(self, training_job: str) -> Document:
        """What SageMaker says, as a record without what AWS's client adds."""
        found = self.plane.described(training_job)
        found.pop("ResponseMetadata", None)
        seen: Document = json.loads(json.dumps(found, default=str))
        self.records.append({"kind": "described", "training_job": training_job, "answer": seen})
        return seen

    def check(self, what: str, *, expected: Any, actual: Any, ok: bool | None = None) -> None:
        passed = expected == actual if ok is None else ok
        self.checks.append({"what": what, "expected": expected, "actual": actual, "ok": passed})

    def journal(self) -> list[Document]:
        """The journal's lines that a story is about: training jobs, their processes, changes by the API."""
        return [one for one in self.plane.twin.records() if _is_told(one)]

    # ---- below

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}-may-end"

    def _peek(self, name: str) -> Document:
        """The JobView, looked at so often that it is no record."""
        answer = self._send("GET", f"/jobs/{name}", None, ADMIN)
        if answer.status >= 400:
            raise StoryError(f"GET /jobs/{name} was answered with {answer.status}: {answer.document}")
        found: Document = answer.document
        return found

    def _send(self, method: str, path: str, document: object, by: str) -> Answer:
        return send(signed(self.plane.unsigned(method, path, document), self._keys_of(by), self.plane.scope))

    def _keys_of(self, who: str) -> Keys:
        if who == ADMIN:
            return self.plane.keys
        if who not in self._keys:
            sts = self.plane.client("sts")
            arn = f"arn:aws:iam::{self.plane.twin.ready['account_id']}:role/{who}"
            given = sts.assume_role(RoleArn=arn, RoleSessionName="story")["Credentials"]
            self._keys[who] = Keys(
                access_key_id=given["AccessKeyId"],
                secret_access_key=given["SecretAccessKey"],
                session_token=given["SessionToken"],
            )
        return self._keys[who]


def _is_told(record: Mapping[str, Any]) -> bool:
    if record["kind"] == "process":
        return True
    changes = str(record["operation"]).startswith(("POST /", "PATCH /", "PUT /", "DELETE /"))
    return record["operation"] in _KEPT_CALLS or (record["service"] == "execute-api" and changes)


@contextmanager
def on_stage(
    folder: Path,
    policy: Mapping[str, Any],
    *,
    world: str = "kind",
    but: Mapping[str, Any] | None = None,
    speed: int = 60,
) -> Iterator[Stage]:
    """``but``: values in which the account differs from the harsh world."""
    is_harsh = world == HARSH_WORLD
    flags = ("--clock", "manual", "--world", world, "--speed", str(speed))
    with running_plane(folder, *flags, policy=policy) as plane:
        stage = Stage(plane=plane, folder=folder, late=LATER if is_harsh else 1.0)
        if is_harsh and but:
            plane.control("/world", {"set": dict(but)})
        stage.advance(0)
        yield stage


def policy_of(
    *, teams: Sequence[str] = (), budgets: Mapping[str, Document] | None = None, **pool: Any
) -> Document:
    """One pool; each team is the role of its name.

    What the story does not write: a preemption has no price, and nothing is kept warm.
    """
    plain = {
        "name": "main",
        "capacity": {INSTANCE_TYPE: 1},
        "preemption": {"cost": {"enabled": False}},
        "warm_pool": {"keep_alive": "0s"},
    }
    document: Document = {"version": 1, "pools": [plain | pool]}
    if teams:
        document["teams"] = [
            {"name": team, "principals": [f"arn:aws:iam::123456789012:role/{team}"], "roles": "any"}
            | ({"budget": budgets[team]} if budgets and team in budgets else {})
            for team in teams
        ]
    return document
