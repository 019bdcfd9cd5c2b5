"""SageMaker training on a port of its own: the training twin alone, its buckets and logs in MiniStack."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demos.deployed.ministack import ACCOUNT, REGION
from local.clock import TwinClock
from local.doors.aws import json_response
from local.engine.calls import Protocol
from local.engine.errors import error_response
from local.http_server import HttpServer
from local.identity.sigv4 import read_claim
from local.journal import Journal
from local.sagemaker import Outside, SageMakerTwin
from local.sagemaker.adapters import CloudWatchLogSink, S3Store
from local.sagemaker.loads import Sample
from local.sagemaker.ports import EventSink
from local.wire import AwsError, Principal, Request, Response

if TYPE_CHECKING:
    from boto3 import Session

Document = dict[str, Any]

_UNKNOWN_KEY = "none"


class SageMakerService:
    """Bound to its port when made; ``opened`` puts the twin behind it, once there is a MiniStack."""

    def __init__(self, journal: Path) -> None:
        """Start the service; ``journal`` takes the process events of the containers."""
        self._journal = journal
        self._server = HttpServer(0, self._answer)
        self.url = f"http://127.0.0.1:{self._server.port}"
        self._twin: SageMakerTwin | None = None
        self._lock = threading.Lock()
        self._calls: list[Document] = []

    @contextmanager
    def opened(
        self, session: "Session", events: EventSink, *, work: Path, reach: Mapping[str, str]
    ) -> Iterator[SageMakerTwin]:
        """Serve within the block; at its end every container is gone.

        Args:
            session: Whose S3 and logs the containers use.
            events: Hears of each change.
            work: Folder of the running containers.
            reach: Variables that let a container reach AWS.
        """
        clock = TwinClock(manual=False)
        journal = Journal(self._journal, clock)
        outside = Outside(
            clock=clock,
            journal=journal,
            store=S3Store(session.client("s3")),
            logs=CloudWatchLogSink(session.client("logs")),
            metrics=NoMetrics(),
            region=REGION,
            work_dir=work,
            environment=lambda _: reach,
        )
        twin = self._twin = SageMakerTwin(outside, events=events, account_id=ACCOUNT, seed=0)
        self._server.start()
        try:
            yield twin
        finally:
            self.close()
            twin.close()
            clock.close()
            journal.close()

    def close(self) -> None:
        """Give the port back, also where ``opened`` never came."""
        self._server.close()

    def calls(self) -> list[Document]:
        """Return every call so far: when, which operation, under whose access key, for which job, its end."""
        with self._lock:
            return list(self._calls)

    def processes(self) -> list[Document]:
        """Return the process events so far."""
        return [json.loads(line) for line in self._journal.read_text(encoding="utf-8").splitlines()]

    def _answer(self, request: Request) -> Response:
        operation = request.headers.get("x-amz-target", "").rpartition(".")[2]
        claim = read_claim(request)
        key = _UNKNOWN_KEY if claim is None else claim.access_key_id
        code = None
        params: Document = {}
        try:
            params = json.loads(request.body or b"{}")
            answer = json_response(self._call(operation, params, key), request)
        except AwsError as error:
            code = error.code
            answer = error_response(error, Protocol.JSON, "sagemaker")
        self._note(operation, params, key, code)
        return answer

    def _call(self, operation: str, params: Document, key: str) -> Document:
        if key == _UNKNOWN_KEY:
            code = "MissingAuthenticationToken"
            raise AwsError(code, "Request is missing Authentication Token", status=403)
        assert self._twin is not None
        caller = Principal(arn=f"arn:aws:iam::{ACCOUNT}:{key}", account_id=ACCOUNT, access_key_id=key)
        return self._twin.call(operation, params, caller)

    def _note(self, operation: str, params: Document, key: str, code: str | None) -> None:
        line = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "operation": operation,
            "access_key_id": key,
            "training_job": params.get("TrainingJobName"),
            "error_code": code,
        }
        with self._lock:
            self._calls.append(line)


class NoMetrics:
    """A ``MetricSink`` for a check too short for an alarm's period."""

    def put(self, sample: Sample, *, at: datetime) -> None: ...
