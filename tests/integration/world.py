"""The whole plane in one process: real handlers and adapters on moto, and a SageMaker that stands still."""

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import botocore.session
from trainmaster.bootstrap import QUICK, Wiring
from trainmaster.jobs import Job
from trainmaster.policy import parse_policy
from trainmaster.settings import Settings

from tests.builders import NOON, A
from tests.integration.conftest import TABLE
from tests.integration.sagemaker_stub import SageMakerStub

ACCOUNT = "123456789012"
STACK = "trainmaster"
USER = f"arn:aws:iam::{ACCOUNT}:user/ada"
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


class Cloud:
    """AWS clients that outlive the worlds: making one costs a hundred times what a call does."""

    def __init__(self) -> None:
        self.world: World | None = None
        self._clients: dict[str, Any] = {}
        self._session = botocore.session.get_session()
        self._session.set_credentials("testing", "testing")
        self._session.set_config_variable("region", "us-east-1")
        self._session.register("before-call", self._before)  # type: ignore[arg-type]
        self._session.register("after-call", self._after)  # type: ignore[arg-type]

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self._session.create_client(service, config=QUICK)
        return self._clients[service]

    def _before(self, model: Any, **call: Any) -> Any:
        """The crash comes first; then SageMaker answers without a network."""
        assert self.world is not None
        self.world.before(model.name)
        if model.service_model.service_name != "sagemaker":
            return None
        return self.world.sagemaker.answer(model=model, **call)

    def _after(self, model: Any, **_: Any) -> None:
        assert self.world is not None
        self.world.after(model.name)


@dataclass(slots=True)
class World:
    cloud: Cloud
    queue_url: str
    now: datetime = NOON
    calls: int = 0
    crash: Crash | None = None
    sagemaker: SageMakerStub = field(init=False)
    wiring: Wiring = field(init=False)

    def __post_init__(self) -> None:
        self.sagemaker = SageMakerStub(clock=lambda: self.now)
        self.wiring = self._fresh_process()
        policies = self.wiring.policies
        document = {"pools": [{"name": "main", "capacity": {A: 2}}]}
        policies.put(document, pools=["main"], replaces=policies.current())

    def _fresh_process(self) -> Wiring:
        """A function process as after a cold start."""
        settings = Settings(
            table=TABLE,
            doorbell_url=self.queue_url,
            stack=STACK,
            account_id=ACCOUNT,
            admin_principal_arns=(USER,),
            retention_days=90,
        )
        wiring = Wiring(settings)
        wiring.clock = lambda: self.now  # type: ignore[method-assign]
        wiring._client = self.cloud.client  # type: ignore[method-assign]
        self.cloud.world = self
        return wiring

    # ---- crashes

    def before(self, operation: str) -> None:
        if self.crash is not None and self.crash.strikes(self.calls, operation, "before"):
            raise CrashError
        self.calls += 1

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
            self.wiring = self._fresh_process()
        return False

    def count(self, act: Callable[[], Any]) -> int:
        """AWS calls that ``act`` makes."""
        self.calls = 0
        act()
        return self.calls

    # ---- what the outside does

    def call(self, function: str, event: dict[str, Any]) -> Any:
        app = importlib.import_module(f"functions.{function}.app")
        with mock.patch.object(app, "wiring", return_value=self.wiring):
            return app.handler(event, _Context())

    def submit(self, name: str, *, priority: int = 0, **changes: Any) -> dict[str, Any]:
        return self.api("POST", "/add-job", request(name, priority=priority, **changes))

    def api(
        self, method: str, path: str, body: Any = None, *, query: dict[str, str] | None = None
    ) -> dict[str, Any]:
        answer: dict[str, Any] = self.call("api", proxy_event(method, path, body, query=query))
        return {"status": answer["statusCode"], **json.loads(answer["body"] or "{}")}

    def schedule(self) -> None:
        """Deliver every ring of the doorbell."""
        while messages := self._rings():
            records = [{"messageId": one["MessageId"], "body": one["Body"]} for one in messages]
            failures = self.call("schedule", {"Records": records})["batchItemFailures"]
            assert failures == []
            for one in messages:
                self.cloud.client("sqs").delete_message(
                    QueueUrl=self.queue_url, ReceiptHandle=one["ReceiptHandle"]
                )

    def _rings(self) -> list[dict[str, Any]]:
        answer = self.cloud.client("sqs").receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10)
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def ring(self, pool: str = "main") -> None:
        self.call("schedule", {"Records": [{"messageId": "1", "body": json.dumps({"pool": pool})}]})

    def tell(self, name: str) -> None:
        """Deliver the state change event of a training job."""
        self.call("on_training_job_event", state_change(name, self.sagemaker))

    def reconcile(self) -> None:
        self.call("reconcile", {})

    def a_minute_passes(self) -> None:
        """Long enough for leases to run out; the reconciler and the doorbell do their work."""
        self.now += LEASE_AND_MORE
        self.reconcile()
        self.schedule()

    # ---- what a test asks

    def job(self, name: str) -> Job:
        found = self.wiring.reader.job(name)
        assert found is not None, f"{name} is lost"
        return found

    def states(self, *names: str) -> list[str]:
        return [self.job(name).state.value for name in names]

    def check(self, *names: str) -> None:
        """The invariants: counters are sums, slots are bounded, one training job a live job, nothing lost."""
        jobs = [self.job(name) for name in names]
        policy = parse_policy(self.wiring.policies.current().document)
        pool = policy.pool("main")
        assert pool is not None
        snapshot = self.wiring.reader.snapshot(pool, policy=policy, paused=False, now=self.now)
        live = [job for job in jobs if job.is_live]
        used = sum(sum(job.vector.values()) for job in live)
        assert sum(snapshot.used.values()) == used, "counters drifted"
        assert used <= 2, "over capacity"
        assert {job.name for job in snapshot.running} == {job.name for job in live}
        reader = self.wiring.reader
        waiting = (
            reader.waiting("main", after=None, limit=1000),
            reader.parked("main", after=None, limit=1000),
        )
        found = sorted(entry.name for entries in waiting for entry in entries)
        assert found == sorted(job.name for job in jobs if job.is_waiting), "the queue lost or doubled a job"
        expected = {job.live.training_job_name for job in live if job.live}
        assert set(self.sagemaker.live()) <= expected, "a training job without a job"
        assert len(set(self.sagemaker.creates)) == len(self.sagemaker.creates), "created twice"


class _Context:
    function_name = "function"
    memory_limit_in_mb = 512
    invoked_function_arn = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:function"
    aws_request_id = "request"


def request(name: str, *, priority: int = 0, **changes: Any) -> dict[str, Any]:
    """A CreateTrainingJob request as the SDK would send it."""
    body: dict[str, Any] = {
        "TrainingJobName": name,
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/training",
        "AlgorithmSpecification": {
            "TrainingImage": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/train:1",
            "TrainingInputMode": "File",
        },
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
        "ResourceConfig": {"InstanceType": A, "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "CheckpointConfig": {"S3Uri": f"s3://bucket/checkpoints/{name}"},
        "Tags": [{"Key": "priority", "Value": str(priority)}],
    }
    return body | changes


def proxy_event(
    method: str, path: str, body: Any = None, *, query: dict[str, str] | None = None, user: str | None = USER
) -> dict[str, Any]:
    """What a REST API hands to a Lambda proxy integration."""
    return {
        "resource": path,
        "path": path,
        "httpMethod": method,
        "headers": {"Content-Type": "application/json"},
        "multiValueHeaders": {"Content-Type": ["application/json"]},
        "queryStringParameters": query,
        "multiValueQueryStringParameters": {key: [value] for key, value in (query or {}).items()} or None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "accountId": ACCOUNT,
            "stage": "prod",
            "path": f"/prod{path}",
            "resourcePath": path,
            "httpMethod": method,
            "requestId": "request",
            "identity": {
                "userArn": user,
                "accountId": ACCOUNT,
                "caller": "caller",
                "user": "user",
                "sourceIp": "10.0.0.1",
            },
        },
        "body": body if body is None or isinstance(body, str) else json.dumps(body),
        "isBase64Encoded": False,
    }


def state_change(name: str, sagemaker: SageMakerStub) -> dict[str, Any]:
    job = sagemaker.jobs[name]
    return {
        "source": "aws.sagemaker",
        "detail-type": "SageMaker Training Job State Change",
        "detail": {
            "TrainingJobName": name,
            "TrainingJobStatus": job.status,
            "SecondaryStatus": job.secondary,
            "Tags": {tag["Key"]: tag["Value"] for tag in job.request.get("Tags", [])},
        },
    }
