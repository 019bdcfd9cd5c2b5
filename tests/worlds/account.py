"""An AWS account in virtual time: boto3's clients, whose calls take time, are throttled and are counted.

The clients are botocore's own, cut off where they would make a request: paginators, error classes and
configured retries are real, nothing is serialized.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from random import Random
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError
from botocore.retries.standard import ThrottledRetryableChecker
from trainmaster.adapters.client_settings import QUICK

from local.clock import TwinClock
from local.engine.dynamodb.values import as_bytes
from local.engine.moto_engine import MotoEngine
from local.wire import AwsError
from local.worlds import World, latency
from tests.integration.conftest import TABLE, make_table
from tests.worlds.sagemaker import THROTTLED, SageMaker
from tests.worlds.timeline import Timeline

REGION = "us-east-1"
ELSEWHERE_SECONDS = 0.01
"""One call of anything but SageMaker. Source: DynamoDB Developer Guide, "single-digit millisecond"."""
RETRIED = frozenset(vars(ThrottledRetryableChecker)["_THROTTLED_ERROR_CODES"])
"""What botocore sends again."""
SERVER_FAULT = 500
LONGEST_BACKOFF_SECONDS = 20.0
"""Source: botocore, ExponentialBackoff of the mode "standard"."""


@dataclass(slots=True)
class Calls:
    """Requests by operation, repetitions included."""

    sent: Counter[str] = field(default_factory=Counter)
    throttled: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """Any other error, by operation and code."""

    def as_json(self) -> dict[str, Any]:
        return {
            operation: {"sent": self.sent[operation], "throttled": self.throttled[operation]}
            for operation in sorted(self.sent)
        } | {"refused": dict(self.refused)}


@dataclass(slots=True)
class Account:
    timeline: Timeline
    world: World
    draw: Random
    clock: Callable[[], datetime]
    sagemaker: SageMaker
    ring: Callable[[list[str]], None]
    """Gets the bodies of wake-ups."""
    calls: Calls = field(default_factory=Calls)
    alarms: dict[str, dict[str, Any]] = field(default_factory=dict)
    notices: int = 0
    _engine: MotoEngine = field(default_factory=lambda: MotoEngine(clock=TwinClock(manual=False)))

    def __post_init__(self) -> None:
        make_table(self._engine.client("dynamodb"), TABLE)

    # ---- clients

    def client(self, service: str, *, config: Config = QUICK) -> Any:
        made = _client(service, _patience(config), _tries(config))
        client = object.__new__(type(made))
        client.__dict__.update(
            made.__dict__
        )  # one of our own: making one costs a hundred times what a call does

        def call(operation: str, params: Mapping[str, Any]) -> Any:
            return self._call(client, service, operation, params)

        client._make_api_call = call  # the one place that all of its methods come to
        return client

    def _call(self, client: Any, service: str, operation: str, params: Mapping[str, Any]) -> Any:
        tries = client.meta.config.retries["total_max_attempts"]
        for number in range(1, tries + 1):
            try:
                answer = self._once(client, service, operation, params)
            except AwsError as error:
                if number < tries and (error.code in RETRIED or error.status >= SERVER_FAULT):
                    backoff = self.draw.random() * 2 ** (number - 1)
                    self._wait(min(backoff, LONGEST_BACKOFF_SECONDS))
                    continue
                raise _client_error(client, operation, error) from None
            return {**answer, "ResponseMetadata": {"HTTPStatusCode": 200, "RetryAttempts": number - 1}}
        raise AssertionError("every try returns or raises")

    def _once(self, client: Any, service: str, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """One request: it takes effect when half of its time has passed, as on the twin.

        One too many is turned away at the door.
        """
        self.calls.sent[operation] += 1
        try:
            if service == "sagemaker":
                self.sagemaker.admit(operation)
        except AwsError as error:
            self._count(operation, error)
            self._wait(ELSEWHERE_SECONDS)
            raise
        seconds = self._seconds(service)
        patience = client.meta.config.read_timeout
        self._wait(min(seconds, patience) / 2)
        try:
            answer = self._answer(service, operation, params)
        except AwsError as error:
            self._count(operation, error)
            self._wait(min(seconds, patience) / 2)
            raise
        self._wait(min(seconds, patience) / 2)
        if seconds > patience:
            raise ReadTimeoutError(endpoint_url=client.meta.endpoint_url)
        return answer

    def _wait(self, seconds: float) -> None:
        if self.timeline.life is not None:  # a scene that is being set costs no time
            self.timeline.wait(seconds)

    def _seconds(self, service: str) -> float:
        drawn = latency(self.world, self.draw).total_seconds() if service == "sagemaker" else 0.0
        return drawn or ELSEWHERE_SECONDS

    def _count(self, operation: str, error: AwsError) -> None:
        if error.code == THROTTLED:
            self.calls.throttled[operation] += 1
        else:
            self.calls.refused[f"{operation}: {error.code}"] += 1

    # ---- what answers

    def _answer(self, service: str, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        match service:
            case "dynamodb":
                return self._table(operation, params)
            case "sagemaker":
                return self.sagemaker.call(operation, params)
            case "sqs":
                self.ring([entry["MessageBody"] for entry in params["Entries"]])
                return {"Successful": params["Entries"], "Failed": []}
            case "cloudwatch":
                return self._cloudwatch(operation, params)
            case "events" | "sns":
                self.notices += 1
                return {"FailedEntryCount": 0, "MessageId": str(self.notices)}
            case _:
                return _empty(service, operation)

    def _table(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        answer = self._engine._data_plane.answer(operation, REGION, dict(params))
        assert answer is not None, operation
        for item in _items(answer):
            for value in item.values():
                if "B" in value:
                    value["B"] = as_bytes(value["B"])
        return answer

    def _cloudwatch(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        match operation:
            case "PutMetricAlarm" | "PutCompositeAlarm":
                self.alarms[params["AlarmName"]] = {"StateUpdatedTimestamp": self.clock(), **params}
                return {}
            case "DeleteAlarms":
                for name in params["AlarmNames"]:
                    self.alarms.pop(name, None)
                return {}
            case "DescribeAlarms":
                wanted = params.get("AlarmNames")
                prefix = params.get("AlarmNamePrefix", "")
                shown = [
                    {"StateValue": "INSUFFICIENT_DATA", **alarm}
                    for name, alarm in self.alarms.items()
                    if (name in wanted if wanted is not None else name.startswith(prefix))
                ]
                return {
                    "MetricAlarms": [one for one in shown if "AlarmRule" not in one],
                    "CompositeAlarms": [one for one in shown if "AlarmRule" in one],
                }
            case _:
                raise LookupError(f"nothing here answers {operation}")


def _empty(service: str, operation: str) -> dict[str, Any]:
    """Nobody writes checkpoints or logs here."""
    match service, operation:
        case "s3", "GetObject":
            raise AwsError("NoSuchKey", "The specified key does not exist.", status=404)
        case "s3", _:
            return {}
        case "logs", _:
            raise AwsError("ResourceNotFoundException", "The specified log group does not exist.")
        case _:
            raise LookupError(f"nothing here answers {service} {operation}")


def _items(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = [answer[name] for name in ("Item", "Attributes") if name in answer]
    return [
        *found,
        *answer.get("Items", ()),
        *(one for of in answer.get("Responses", {}).values() for one in of),
    ]


def _patience(config: Config) -> float:
    return float(vars(config)["read_timeout"])


def _tries(config: Config) -> int:
    retries: Mapping[str, Any] = vars(config)["retries"] or {}
    return int(retries.get("total_max_attempts", 3))


@cache
def _client(service: str, read_timeout: float, tries: int) -> Any:
    session = botocore.session.get_session()
    session.set_credentials("testing", "testing")
    config = Config(read_timeout=read_timeout, retries={"mode": "standard", "total_max_attempts": tries})
    return session.create_client(service, region_name=REGION, config=config)


def _client_error(client: Any, operation: str, error: AwsError) -> Exception:
    response = {
        "Error": {"Code": error.code, "Message": error.message},
        "ResponseMetadata": {"HTTPStatusCode": error.status},
        **error.members,
    }
    raised: Exception = client.exceptions.from_code(error.code)(response, operation)
    return raised
