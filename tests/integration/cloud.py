"""AWS below botocore: moto's table, queue and bus as the twin serves them, and a SageMaker that stands still.

Requests are answered where botocore would send them, so its retries, time-outs and tokens are the real ones;
only its waits between retries are noted instead of waited for.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Protocol
from unittest import mock

import botocore.session
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from moto.moto_api._internal.models import moto_api_backend
from trainmaster.adapters.client_settings import QUICK

from local.clock import TwinClock
from local.cloudwatch.cloudwatch_twin import CloudWatchTwin
from local.engine.client import answered, as_botocore, received
from local.engine.moto_engine import MotoEngine
from local.wire import Response

ANY = "*"
"""Every operation."""


@dataclass(frozen=True, slots=True)
class Refused:
    """AWS answers with an error; nothing has happened."""

    code: str
    status: int = 400
    members: dict[str, Any] = field(default_factory=dict)
    """What the error's shape has besides its message."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Connection refused, or no such host; nothing has happened."""


@dataclass(frozen=True, slots=True)
class AnswerLost:
    """It has happened, and nobody hears of it."""


Trouble = Refused | Unreachable | AnswerLost
THROTTLED = Refused("ThrottlingException")
CONFLICT = Refused(
    "TransactionCanceledException", members={"CancellationReasons": [{"Code": "TransactionConflict"}]}
)
OUTAGE = Refused("ServiceUnavailable", 503)


class Plane(Protocol):
    """What lives on the cloud."""

    now: datetime

    def before(self, operation: str) -> None: ...

    def after(self, operation: str) -> None: ...

    def answer(self, service: str, operation: str, request: AWSPreparedRequest) -> Response | None:
        """None: moto answers."""


@dataclass(slots=True)
class Wire:
    """What goes wrong between botocore and AWS, and what was sent."""

    troubles: dict[str, list[Trouble]] = field(default_factory=lambda: defaultdict(list))
    """By operation, for its next requests in turn."""
    lasting: dict[str, Trouble] = field(default_factory=dict)
    """By operation or ``ANY``, for all requests until it is taken away."""
    sent: list[str] = field(default_factory=list)
    """Operations of all requests, repetitions included."""
    waits: list[float] = field(default_factory=list)
    """Seconds that botocore would have waited between tries."""

    def strike(self, operation: str, times: int, trouble: Trouble) -> None:
        self.troubles[operation] += [trouble] * times

    def trouble(self, operation: str) -> Trouble | None:
        if self.troubles.get(operation):
            return self.troubles[operation].pop(0)
        return self.lasting.get(operation) or self.lasting.get(ANY)

    def heal(self) -> None:
        self.troubles.clear()
        self.lasting.clear()


class Cloud:
    """Outlives the planes on it: making a client costs a hundred times what a call does."""

    def __init__(self) -> None:
        self.plane: Plane | None = None
        self.wire = Wire()
        self._clients: dict[str, Any] = {}
        self._engine = MotoEngine(clock=TwinClock(manual=False))
        self._session = botocore.session.get_session()
        self._session.set_credentials("testing", "testing")
        self._session.set_config_variable("region", "us-east-1")
        for event, handler in (
            ("before-call", self._before),
            ("before-send", self._send),
            ("after-call", self._after),
        ):
            self._session.register(event, handler)  # type: ignore[arg-type]

    @contextmanager
    def open(self) -> Iterator[None]:
        """Without waits between tries."""
        with mock.patch("botocore.endpoint.time", SimpleNamespace(sleep=self.wire.waits.append)):
            yield

    def empty(self) -> None:
        """For the next plane: no table, no queue, nothing wrong."""
        self.plane = None
        moto_api_backend.reset()
        self._engine.cloudwatch = CloudWatchTwin(
            account_id=self._engine.account_id, region="us-east-1", now=self._now
        )
        self.wire.heal()
        self.wire.sent.clear()
        self.wire.waits.clear()

    @property
    def cloudwatch(self) -> CloudWatchTwin:
        return self._engine.cloudwatch

    def _now(self) -> datetime:
        assert self.plane is not None, "nobody lives here yet"
        return self.plane.now

    def client(self, service: str, *, config: Config = QUICK, **keys: Any) -> Any:
        name = service + keys.get("aws_access_key_id", "")
        if name not in self._clients:
            self._clients[name] = self._session.create_client(service, config=config, **keys)
        return self._clients[name]

    def forget_clients(self) -> None:
        """As in a new process: a client that saw many failures stops retrying."""
        self._clients.clear()

    def _before(self, model: Any, **_: object) -> None:
        if self.plane is not None:
            self.plane.before(model.name)

    def _after(self, model: Any, **_: object) -> None:
        if self.plane is not None:
            self.plane.after(model.name)

    def _send(self, request: AWSPreparedRequest, event_name: str, **_: object) -> AWSResponse:
        service, operation = event_name.split(".")[1:]
        self.wire.sent.append(operation)
        match self.wire.trouble(operation):
            case Refused(code=code, status=status, members=members):
                message = f"{operation} was told to fail"
                body = {"__type": code, "message": message, **members}
                return as_botocore(request, json_response(body, status=status))
            case Unreachable():
                raise EndpointConnectionError(endpoint_url=request.url)
            case AnswerLost():
                self._answer(request, service, operation)
                raise ReadTimeoutError(endpoint_url=request.url)
            case _:
                return as_botocore(request, self._answer(request, service, operation))

    def _answer(self, request: AWSPreparedRequest, service: str, operation: str) -> Response:
        own = self.plane.answer(service, operation, request) if self.plane is not None else None
        return own if own is not None else answered(received(request), self._engine.call)


def refusal(code: str, message: str, status: int = 400) -> Response:
    """An error as the services with a JSON protocol write it."""
    return json_response({"__type": code, "message": message}, status=status)


def json_response(body: dict[str, Any], *, status: int = 200) -> Response:
    text = json.dumps(body, default=lambda instant: instant.timestamp())
    return Response(status=status, body=text.encode(), headers={"Content-Type": "application/x-amz-json-1.1"})
