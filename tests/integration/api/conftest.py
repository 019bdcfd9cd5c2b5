"""The API over the real adapters on an in-process table; SQS is a list, the clock stands still."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError
from trainmaster import __version__
from trainmaster.adapters.dynamodb import (
    DynamoFolders,
    DynamoJobStore,
    DynamoPolicyStore,
    DynamoReadCounts,
    DynamoReader,
    DynamoRegister,
    DynamoRepairStore,
)
from trainmaster.api import Outside, build_api
from trainmaster.core.errors import LostRaceError, UnavailableError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import settlement, steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.decision import End
from trainmaster.services.read_counts import ReadCounts

from tests.bodies import body, tag_list
from tests.builders import NOON, claimed, waiting
from tests.integration.cloud import Cloud
from tests.integration.conftest import make_table

OWN = "111122223333"
ADA = f"arn:aws:sts::{OWN}:assumed-role/vision-lead/ada"
BOB = f"arn:aws:sts::{OWN}:assumed-role/speech/bob"
BOTH = f"arn:aws:sts::{OWN}:assumed-role/floater/eve"
ADMIN = f"arn:aws:iam::{OWN}:user/admin"
STRANGER = f"arn:aws:sts::{OWN}:assumed-role/finance/mallory"
P5, G5 = "ml.p5.48xlarge", "ml.g5.12xlarge"
DOCUMENT: dict[str, Any] = {
    "pools": [{"name": "p5", "capacity": {P5: 2}}, {"name": "g5", "capacity": {G5: 1}}],
    "teams": [
        {
            "name": "vision",
            "roles": "any",
            "principals": [f"arn:aws:iam::{OWN}:role/vision-*", f"arn:aws:iam::{OWN}:role/floater"],
            "max_priority": 500,
        },
        {
            "name": "speech",
            "roles": "any",
            "principals": [f"arn:aws:iam::{OWN}:role/speech", f"arn:aws:iam::{OWN}:role/floater"],
        },
    ],
}
ON_G5 = {"InstanceType": G5, "InstanceCount": 1, "VolumeSizeInGB": 50}
_NUMBERS = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    content_type: str
    headers: dict[str, str]
    json: dict[str, Any]
    text: str = ""
    """The body as it went out."""

    @property
    def fields(self) -> list[str]:
        """What the errors are about; the answer must be a problem document."""
        assert self.content_type == "application/problem+json"
        assert set(self.json) == {"type", "title", "status", "detail", "errors"}
        assert self.json["status"] == self.status
        assert all(error["message"] and error["hint"] for error in self.json["errors"])
        return [error["field"] for error in self.json["errors"]]


@dataclass(slots=True)
class WakeUpLog:
    """A wake-up that can be out of order."""

    pools: list[str] = field(default_factory=list)
    is_broken: bool = False

    def send(self, pools: Iterable[str]) -> None:
        if self.is_broken:
            raise UnavailableError("no bell")
        self.pools += pools


class Untouchable:
    """Any use of it fails the test."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"used {name}")


class Api:
    def __init__(self, client: Any, document: dict[str, Any]) -> None:
        self.client = client
        self.table = f"table-{next(_NUMBERS)}"
        make_table(client, self.table)
        self.now = NOON
        self.wake_ups = WakeUpLog()
        self.store = DynamoJobStore(client, table=self.table, retention_days=90)
        self.repairs = DynamoRepairStore(client, table=self.table)
        self.register = DynamoRegister(client, table=self.table)
        self.reads = ReadCounts(DynamoReadCounts(lambda: client, table=self.table))
        self.reader = DynamoReader(client, table=self.table, report=self.register.see)
        self.policies = DynamoPolicyStore(client, table=self.table)
        pools = [pool["name"] for pool in document.get("pools", [])]
        self.policies.put(document, pools=pools, replaces=self.policies.current())
        self._chance = 0
        self.handle = build_api(self.outside())

    def outside(self, **other: Any) -> Outside:
        values: dict[str, Any] = {
            "store": self.store,
            "reader": self.reader,
            "policies": self.policies,
            "wake_ups": self.wake_ups,
            "clock": self.clock,
            "register": self.register,
            "repairs": self.repairs,
            "random_bytes": self.random_bytes,
            "account_id": OWN,
            "admin_principal_arns": (ADMIN,),
            "reads": self.reads,
            "folders": DynamoFolders(self.client, table=self.table),
        }
        return Outside(**values | other)

    def clock(self) -> datetime:
        return self.now

    def random_bytes(self, count: int) -> bytes:
        self._chance += 1
        return self._chance.to_bytes(count, "big")

    # ---- calls

    def call(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        user: str | None = ADA,
        query: dict[str, Any] | None = None,
        **event: Any,
    ) -> Answer:
        """``content`` is sent as JSON, text as it is; a query value may be a list."""
        multi = {name: value if isinstance(value, list) else [value] for name, value in (query or {}).items()}
        whole = {
            "resource": path,
            "path": path,
            "httpMethod": method,
            "headers": {"content-type": "application/json"},
            "queryStringParameters": {name: values[-1] for name, values in multi.items()} or None,
            "multiValueQueryStringParameters": multi or None,
            "requestContext": {"identity": {"userArn": user}},
            "body": content if content is None or isinstance(content, str) else json.dumps(content),
            "isBase64Encoded": False,
        }
        answer = self.handle(whole | event, None)
        headers = {name: values[0] for name, values in answer["multiValueHeaders"].items()}
        assert headers.pop("trainmaster-version") == __version__
        return Answer(
            status=answer["statusCode"],
            content_type=(kind := headers.pop("Content-Type", "")),
            headers=headers,
            json=json.loads(answer["body"]) if kind.endswith(("/json", "+json")) else {},
            text=answer["body"],
        )

    def submit(self, name: str, *, user: str = ADA, priority: int = 0, **changes: Any) -> Answer:
        options = changes.pop("tags", {}) | {"priority": str(priority)}
        request = body(TrainingJobName=name, Tags=tag_list(options), **changes)
        return self.call("POST", "/add-job", request, user=user)

    def get(self, path: str, *, user: str = ADA, **query: Any) -> Answer:
        return self.call("GET", path, user=user, query=query)

    def names(self, *, user: str = ADA, **query: Any) -> list[str | None]:
        answer = self.get("/jobs", user=user, **query)
        assert answer.status == 200, answer
        return [view["name"] for view in answer.json["jobs"]]

    # ---- what the other functions do meanwhile

    def job(self, name: str) -> Job:
        found = self.reader.job(name)
        assert found is not None, f"{name} is not stored"
        return found

    def change(self, name: str, after: Job) -> Job:
        (written,) = self.store.commit([Change(before=self.job(name), after=after)], at=self.now)
        return written

    def start(self, name: str) -> Job:
        self.change(name, claimed(self.job(name), name, now=self.now))
        return self.change(name, steps.recorded(self.job(name), training_job_arn="arn:x", now=self.now))

    def put_back(self, name: str) -> Job:
        reason = Reason(code=ReasonCode.UNAVAILABLE, message="come back")
        self.change(name, claimed(self.job(name), name, now=self.now))
        return self.change(name, steps.put_back(self.job(name), reason=reason, now=self.now))

    def preempt(self, name: str) -> Job:
        return self.change(name, steps.preempted_for(self.job(name), waiting("x")))

    def end(self, name: str, becomes: JobState = JobState.COMPLETED) -> Job:
        """Preempted or final, with the attempt over."""
        job = self.start(name) if self.job(name).is_waiting else self.job(name)
        if becomes is JobState.PREEMPTED:
            job = self.preempt(name)
        code = ReasonCode.PREEMPTION if becomes is JobState.PREEMPTED else ReasonCode.COMPLETED
        end = End(becomes=becomes, reason=Reason(code=code, message="it is over"))
        change = settlement.settled(job, end, None, now=self.now)
        (written,) = self.store.commit([change], at=self.now)
        return written


class Racing:
    """A store in which somebody else is faster, so many times."""

    def __init__(self, api: Api, losses: int, *, meanwhile: Callable[[], object] | None = None) -> None:
        self._api = api
        self._losses = losses
        self._meanwhile = meanwhile

    def count_change(self, *counted: Any, **rest: Any) -> bool:
        return self._api.store.count_change(*counted, **rest)

    def commit(self, *changes: Any, **rest: Any) -> Any:
        if not self._losses:
            return self._api.store.commit(*changes, **rest)
        self._losses -= 1
        if self._meanwhile is not None:
            self._meanwhile()
        raise LostRaceError("too late")


class SpeedsThrottled:
    """A client of DynamoDB that refuses each Query of a partition of speeds."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def query(self, **query: Any) -> Any:
        if query["ExpressionAttributeValues"][":pk"]["S"].startswith("KW#"):
            raise ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "Query")
        return self._client.query(**query)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def throttled(api: Api) -> DynamoReader:
    """A reader of a table whose rows of speeds are throttled, and no others."""
    return DynamoReader(SpeedsThrottled(api.client), table=api.table)


@pytest.fixture(scope="module")
def cloud() -> Any:
    """One in-process DynamoDB for a module: each test has a table of its own.

    That of the twin: its transactions copy the items that they name, moto's every table there is.
    """
    cloud = Cloud()
    cloud.empty()
    return cloud.client("dynamodb")


@pytest.fixture
def api(cloud: Any) -> Iterator[Api]:
    api = Api(cloud, DOCUMENT)
    yield api
    cloud.delete_table(TableName=api.table)
