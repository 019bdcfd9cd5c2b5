"""The state of the twin's AWS: moto behind one lock; before it our own DynamoDB data plane and CloudWatch.

moto is not safe under concurrent requests, so one is served at a time. Its state is one for the process: a
second engine in the same process starts the first one's state again.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from threading import Condition, RLock
from typing import Any
from urllib.parse import parse_qsl, urlencode

from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import create_backend_app

from local.clock import TwinClock
from local.cloudwatch.cloudwatch_twin import CloudWatchTwin
from local.engine import moto_iam, moto_light, moto_logs, moto_sagemaker, moto_time, wsgi
from local.engine.answers import serialized
from local.engine.calls import AwsCall
from local.engine.client import in_process_client
from local.engine.dynamodb.data_plane import DataPlane
from local.identity.checks import Operation
from local.wire import AwsError, Principal, Request, Response

logger = logging.getLogger(__name__)

SERVICES = (
    "cloudwatch",
    "dynamodb",
    "dynamodbstreams",
    "events",
    "iam",
    "kms",
    "logs",
    "s3",
    "sagemaker",
    "sns",
    "sqs",
    "ssm",
)
"""Services that are answered here; their names are the same in moto and in boto3."""

DASHBOARDS = frozenset({"DeleteDashboards", "GetDashboard", "ListDashboards", "PutDashboard"})
"""Operations of CloudWatch that are left to moto."""

MAX_LONG_POLL_SECONDS = 20
"""Source: SQS API reference, ReceiveMessage, WaitTimeSeconds."""
_AWS_POLICIES = "arn:aws:iam::aws:policy/"
_MESSAGES = (b'"Messages"', b"<Message>")
"""Marks of an answer to ReceiveMessage that holds a message."""
_POLL_SECONDS = 0.2
"""Seconds a message that becomes visible by itself may go unseen by a long poll."""


class MotoEngine:
    def __init__(self, *, clock: TwinClock, region: str = "us-east-1") -> None:
        self.clock = clock
        self.region = region
        self.account_id: str = DEFAULT_ACCOUNT_ID
        self.endpoint_url = "http://127.0.0.1"
        """The host in requests of ``client``; moto repeats it in queue URLs, so the front door sets it."""
        self._lock = RLock()
        self._queues_changed = Condition()
        self._apps: dict[str, wsgi.Application] = {}
        self._clients: dict[str, Any] = {}
        self._data_plane = DataPlane(self.account_id, clock.now)
        self.cloudwatch = CloudWatchTwin(account_id=self.account_id, region=region, now=clock.now)
        moto_api_backend.reset()
        moto_sagemaker.accept_all_instance_types()
        self._undo_time = moto_time.install(clock.now) if clock.manual else _nothing

    def close(self) -> None:
        self._undo_time()
        moto_api_backend.reset()

    def policies_of(self, arn: str) -> Sequence[Mapping[str, Any]] | None:
        """Return policy documents of a user or role made through IAM; None if it does not exist."""
        with self._lock:
            return moto_iam.policies_of(self.account_id, arn)

    def trust_of(self, arn: str) -> Mapping[str, Any] | None:
        """Return the trust policy of a role made through IAM; None if the role or its policy is missing."""
        with self._lock:
            return moto_iam.trust_of(self.account_id, arn)

    def user_of_key(self, access_key_id: str) -> tuple[Principal, str] | None:
        """Return the IAM user whose key this is, and the secret of the key; None if it is unknown."""
        with self._lock:
            return moto_iam.user_of_key(self.account_id, access_key_id)

    def encryption_key_of(self, operation: Operation) -> str | None:
        """Return the ARN of the customer's key that encrypts the resource of this call; None without one."""
        with self._lock:
            return moto_iam.encryption_key_of(operation)

    def client(self, service: str) -> Any:  # noqa: ANN401  boto3's clients are typed by their service
        """Return a boto3 client for the twin's own parts: no network, no rights, no journal."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = in_process_client(
                    service, region=self.region, endpoint_url=self.endpoint_url, serve=self.call
                )
            return self._clients[service]

    def call(self, call: AwsCall, request: Request) -> Response:
        """Answer an authorised call. Raises AwsError for what the twin refuses itself."""
        if call.service not in SERVICES:
            raise AwsError("NotImplemented", f"the twin does not serve {call.service}", status=501)
        if call.service == "sqs" and call.operation == "ReceiveMessage":
            return self._receive(call, request)
        with self._lock:
            response = self._answer(call, request)
        if call.service in {"sqs", "sns", "events"}:
            with self._queues_changed:
                self._queues_changed.notify_all()
        return response

    def _answer(self, call: AwsCall, request: Request) -> Response:
        if call.service == "iam" and str(call.params.get("PolicyArn")).startswith(_AWS_POLICIES):
            moto_iam.know_aws_policies(self.account_id)
        if call.service == "logs" and call.operation == "FilterLogEvents":
            request = moto_logs.with_streams_named(request, call, self.account_id)
        if call.service == "sagemaker":
            return self._ask_sagemaker(call, request)
        if call.service == "cloudwatch" and call.operation not in DASHBOARDS:
            return serialized(call, self.cloudwatch.call(call.operation, dict(call.params)), request)
        if call.service != "dynamodb":
            return self._ask_moto(call, request)
        answer = self._data_plane.answer(call.operation, call.region, call.params)
        if answer is not None:
            return _json_response(answer)
        response = self._ask_moto(call, request)
        self._data_plane.moto_answered(call.operation)
        return response

    def _ask_sagemaker(self, call: AwsCall, request: Request) -> Response:
        moto_sagemaker.check(call, self.account_id)
        response = self._ask_moto(call, request)
        is_description = call.operation.startswith("Describe")
        return moto_sagemaker.without_empty(response) if is_description else response

    def _receive(self, call: AwsCall, request: Request) -> Response:
        """Receive messages: a long poll releases the lock, and ends although a manual clock stands still."""
        wait = min(int(call.params.get("WaitTimeSeconds", 0)), MAX_LONG_POLL_SECONDS)
        deadline = time.monotonic() + wait
        at_once = _without_wait(request)
        while True:
            with self._lock:
                response = self._ask_moto(call, at_once)
            left = deadline - time.monotonic()
            if left <= 0 or any(mark in response.body for mark in _MESSAGES):
                return response
            with self._queues_changed:
                self._queues_changed.wait(min(left, _POLL_SECONDS))

    def _ask_moto(self, call: AwsCall, request: Request) -> Response:
        app = self._apps.get(call.service)
        if app is None:
            moto_light.load(call.service)
            app = self._apps[call.service] = create_backend_app(call.service)
        try:
            return wsgi.call(app, request)
        except NotImplementedError as error:
            message = f"the twin has no {call.service}:{call.operation}: {error}"
            raise AwsError("NotImplemented", message, status=501) from error
        except Exception as error:  # the bulkhead around moto: its bugs are answers, not ends
            logger.exception("moto failed")
            message = f"{type(error).__name__} in {call.service}:{call.operation}: {error}"
            raise AwsError("InternalFailure", message, status=500) from error


def _json_response(answer: Mapping[str, Any]) -> Response:
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-RequestId": token_hex(16)}
    return Response(status=200, body=json.dumps(answer).encode(), headers=headers)


def _without_wait(request: Request) -> Request:
    if "x-amz-target" in request.headers:
        body = json.dumps(json.loads(request.body) | {"WaitTimeSeconds": 0}).encode()
    else:
        body = urlencode(dict(parse_qsl(request.body.decode())) | {"WaitTimeSeconds": "0"}).encode()
    return replace(request, body=body)


_nothing: Callable[[], None] = lambda: None  # noqa: E731
