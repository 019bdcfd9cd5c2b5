"""The whole plane in one process: real handlers and adapters on moto, and a SageMaker that stands still."""

import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any
from unittest import mock
from urllib.parse import urlsplit
from uuid import uuid4

from botocore.awsrequest import AWSPreparedRequest
from trainmaster.bootstrap import Wiring
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import Job
from trainmaster.settings import Settings

from local.cloudwatch.alarms import Alarm
from local.engine.client import received
from local.wire import Response
from tests.builders import NOON, A
from tests.integration import invariants, rows
from tests.integration.cloud import Cloud, Wire
from tests.integration.conftest import TABLE
from tests.integration.messages import ACCOUNT, USER, proxy_event, request, state_change
from tests.integration.rows import Item
from tests.integration.sagemaker_stub import SageMakerStub
from tests.integration.told import Messages
from tests.memory.edges import one_by_one

STACK = "trainmaster"
APPS = tuple(
    importlib.import_module(f"functions.{name}.app")
    for name in ("api", "schedule", "on_training_job_event", "on_idle_alarm", "reconcile", "queue_widget")
)
LEASE_AND_MORE = timedelta(minutes=6)


class CrashError(BaseException):
    """The process is gone; no ``except Exception`` sees it."""


@dataclass(frozen=True, slots=True)
class Crash:
    """Dies at the n-th AWS call (0-based) or at the first of an operation."""

    at: int | str
    phase: str
    """``before`` or ``after``: whether the call had its effect."""

    def strikes(self, number: int, operation: str, phase: str) -> bool:
        return phase == self.phase and self.at in (number, operation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A world at rest, to go back to."""

    table: tuple[Item, ...]
    wake_ups_by_pool: tuple[str, ...]
    sagemaker: SageMakerStub
    alarms: Mapping[str, Alarm]
    now: datetime


@dataclass(slots=True)
class World:
    cloud: Cloud
    queue_url: str
    policy: dict[str, Any] | None = None
    """The document; None: two instances of A."""
    now: datetime = NOON
    calls: int = 0
    called: list[str] = field(default_factory=list)
    crash: Crash | None = None
    meanwhile: dict[str, Callable[[], Any]] = field(default_factory=dict)
    """What somebody else does just before the next call of an operation."""
    between_calls: Callable[[], None] | None = None
    """Done before each AWS call while several functions work at once."""
    checkpoints: dict[str, datetime] = field(default_factory=dict)
    """When a checkpoint was written, by CheckpointConfig.S3Uri."""
    listed: dict[str, datetime] = field(default_factory=dict)
    """When what a listing shows was written, by key; the same in every bucket."""
    messages: Messages = field(default_factory=Messages)
    remaining_ms: Callable[[], int] = lambda: 120_000
    """Time that an invocation has left."""
    sagemaker: SageMakerStub = field(init=False)
    wiring: Wiring = field(init=False)

    def __post_init__(self) -> None:
        self.sagemaker = SageMakerStub(clock=lambda: self.now)
        self.cloud.plane = self
        self.wiring = self.fresh_process()
        policies = self.wiring.policies
        document = self.policy or {"pools": [{"name": "main", "capacity": {A: 2}}]}
        pools = [pool["name"] for pool in document["pools"]]
        policies.put(document, pools=pools, replaces=policies.current())

    @property
    def wire(self) -> Wire:
        return self.cloud.wire

    def fresh_process(self) -> Wiring:
        """A function process as after a cold start."""
        settings = Settings(
            table=TABLE,
            wake_up_queue_url=self.queue_url,
            stack=STACK,
            account_id=ACCOUNT,
            admin_principal_arns=(USER,),
            retention_days=90,
            alarm_topic_arn="arn:aws:sns:us-east-1:123456789012:alarms",
            mail_topic_arn="arn:aws:sns:us-east-1:123456789012:mail",
        )
        wiring = Wiring(settings)
        wiring.clock = lambda: self.now  # type: ignore[method-assign]
        wiring.pause = self.wire.waits.append  # type: ignore[assignment,method-assign]
        wiring.beside = one_by_one
        wiring._client = self.cloud.client  # type: ignore[method-assign]
        wiring.store._transactions._pause = self.wire.waits.append
        return wiring

    def answer(self, service: str, operation: str, request: AWSPreparedRequest) -> Response | None:
        match service:
            case "sagemaker":
                return self.sagemaker.answer(operation, received(request).body)
            case "s3":
                return self._checkpoint(request)
            case "eventbridge":
                return self.messages.put_events(received(request).body)
            case "sns":
                return self.messages.publish(received(request).body)
            case _:
                return None

    def _checkpoint(self, request: AWSPreparedRequest) -> Response:
        """Only ``status.json`` is ever there, beside what is listed."""
        url = urlsplit(request.url)
        uri = f"s3://{url.netloc.partition('.')[0]}{url.path.removesuffix('/status.json')}"
        if not url.path.endswith("/status.json"):
            return Response(status=200, body=self._listing().encode())
        if uri not in self.checkpoints:
            return Response(status=404, body=b"<Error><Code>NoSuchKey</Code></Error>")
        written = self.checkpoints[uri]
        body = json.dumps({"checkpoint_at": written.isoformat()}).encode()
        return Response(status=200, body=body, headers={"Last-Modified": format_datetime(written)})

    def _listing(self) -> str:
        objects = (
            f"<Contents><Key>{key}</Key><LastModified>{at.isoformat()}</LastModified></Contents>"
            for key, at in self.listed.items()
        )
        return f"<ListBucketResult>{''.join(objects)}</ListBucketResult>"

    # ---- going back

    def save(self) -> Saved:
        return Saved(
            table=self.items(),
            wake_ups_by_pool=tuple(ring["Body"] for ring in self._wake_ups(again_in_seconds=0)),
            sagemaker=self.sagemaker.copy(),
            alarms=dict(self.cloud.cloudwatch._alarms),
            now=self.now,
        )

    def restore(self, saved: Saved) -> None:
        """Everything as it was, in a fresh process."""
        sqs = self.cloud.client("sqs")
        self.queue_url = sqs.create_queue(QueueName=f"again-{uuid4()}")["QueueUrl"]
        for ring in saved.wake_ups_by_pool:
            sqs.send_message(QueueUrl=self.queue_url, MessageBody=ring)
        self.put_back(saved.table)
        self.cloud.cloudwatch._alarms = dict(saved.alarms)
        self.sagemaker, self.now = saved.sagemaker.copy(), saved.now
        self.wiring = self.fresh_process()

    def items(self) -> tuple[Item, ...]:
        """The whole table."""
        return rows.all_items(self.cloud.client("dynamodb"), TABLE)

    def put_back(self, items: Sequence[Item]) -> None:
        """The table as it was, as a restore to a point in time makes it."""
        rows.put_back(self.cloud.client("dynamodb"), TABLE, items)

    # ---- crashes

    def before(self, operation: str) -> None:
        if operation in self.meanwhile:
            self.meanwhile.pop(operation)()
        if self.between_calls is not None:
            self.between_calls()
        if self.crash is not None and self.crash.strikes(self.calls, operation, "before"):
            raise CrashError
        self.calls += 1
        self.called.append(operation)

    def after(self, operation: str) -> None:
        if self.crash is not None and self.crash.strikes(self.calls - 1, operation, "after"):
            raise CrashError

    def dies(self, act: Callable[[], Any], crash: Crash) -> bool:
        """Run ``act`` in a process that dies at the given call; True when it came to that."""
        self.calls, self.crash = 0, crash
        try:
            act()
        except CrashError:
            return True
        finally:
            self.crash = None
            self.wiring = self.fresh_process()
        return False

    def calls_of(self, act: Callable[[], Any]) -> list[str]:
        """The operations that ``act`` calls, in order."""
        self.calls = 0
        self.called.clear()
        act()
        return list(self.called)

    # ---- what the outside does

    @contextmanager
    def wired(
        self,
        *,
        between_calls: Callable[[], None] | None = None,
        process: Callable[[], Wiring] | None = None,
    ) -> Iterator[None]:
        """The functions work for this world; several of them at once, if they hand over between calls.

        ``process`` says in which process the function is that asks; without, all are in that of the world.
        """
        outer, self.between_calls = self.between_calls, between_calls or self.between_calls
        with ExitStack() as stack:
            for app in APPS:
                stack.enter_context(mock.patch.object(app, "wiring", process or (lambda: self.wiring)))
            yield
        self.between_calls = outer

    def call(self, function: str, event: dict[str, Any]) -> Any:
        app = importlib.import_module(f"functions.{function}.app")
        with nullcontext() if self.between_calls else self.wired():
            return app.handler(event, _Context(self.remaining_ms))

    def submit(self, name: str, *, priority: int = 0, **changes: Any) -> dict[str, Any]:
        return self.api("POST", "/add-job", request(name, priority=priority, **changes))

    def api(
        self, method: str, path: str, body: Any = None, *, query: dict[str, str] | None = None
    ) -> dict[str, Any]:
        answer: dict[str, Any] = self.call("api", proxy_event(method, path, body, query=query))
        return {"status": answer["statusCode"], **json.loads(answer["body"] or "{}")}

    def schedule(self) -> None:
        """Deliver every ring of the wake-up queue."""
        while messages := self._wake_ups():
            records = [{"messageId": one["MessageId"], "body": one["Body"]} for one in messages]
            failures = self.call("schedule", {"Records": records})["batchItemFailures"]
            assert failures == []
            for one in messages:
                self.cloud.client("sqs").delete_message(
                    QueueUrl=self.queue_url, ReceiptHandle=one["ReceiptHandle"]
                )

    def _wake_ups(self, *, again_in_seconds: int = 30) -> list[dict[str, Any]]:
        answer = self.cloud.client("sqs").receive_message(
            QueueUrl=self.queue_url, MaxNumberOfMessages=10, VisibilityTimeout=again_in_seconds
        )
        return list(answer.get("Messages", []))

    def wake(self, pool: str = "main", *, hops: int = 0) -> None:
        body = json.dumps({"pool": pool, "hops": hops})
        self.call("schedule", {"Records": [{"messageId": "1", "body": body}]})

    def cancel(self, name: str) -> int:
        """The status of the answer."""
        return int(self.api("DELETE", f"/jobs/{name}")["status"])

    def patch(self, name: str, **wish: Any) -> dict[str, Any]:
        return self.api("PATCH", f"/jobs/{name}", wish)

    def tell(self, name: str) -> None:
        """Deliver the state change event of a training job."""
        self.call("on_training_job_event", state_change(name, self.sagemaker))

    def reconcile(self) -> None:
        self.call("reconcile", {})

    def a_minute_passes(self) -> None:
        """Long enough for leases to run out; the reconciler and the wake-up queue do their work."""
        self.now += LEASE_AND_MORE
        self.reconcile()
        self.schedule()

    # ---- what a test asks

    def job(self, name: str) -> Job:
        found = self.wiring.reader.job(name)
        assert found is not None, f"{name} is lost"
        return found

    def check(self, *names: str, capacity: Vector | None = None) -> Vector:
        """See ``invariants.check``."""
        return invariants.check(self, names, capacity=capacity)

    def capacity(self) -> dict[Capacity, int]:
        return invariants.capacity_of(self)

    def states(self, *names: str) -> list[str]:
        return [self.job(name).state.value for name in names]


class _Context:
    function_name = "function"
    memory_limit_in_mb = 512
    invoked_function_arn = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:function"
    aws_request_id = "request"

    def __init__(self, remaining_ms: Callable[[], int]) -> None:
        self.get_remaining_time_in_millis = remaining_ms
