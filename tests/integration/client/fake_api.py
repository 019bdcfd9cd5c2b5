"""An HTTP server in this process: answers as scripted, refuses what is not signed as SigV4 wants it."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ACCESS_KEY, SECRET_KEY, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI", "eu-west-1"
REQUEST: dict[str, Any] = {
    "TrainingJobName": "job1",
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "AlgorithmSpecification": {"TrainingImage": "image:1", "TrainingInputMode": "File"},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
}
"""A CreateTrainingJob as a program sends it."""
ARN = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/job1"
"""Of its first attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    status: int = 200
    document: Any = None
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    minutes_ahead: float = 0.0
    """The API's clock beside this machine's, when it answers."""

    @property
    def body(self) -> bytes:
        return json.dumps(self.document).encode() if self.raw is None else self.raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    port: int
    """Of the caller's end of the connection."""


class FakeApi:
    """Each route answers its script in order; the last answer repeats."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: list[Received] = []
        self.refusal: Scripted | None = None
        """To what is not signed as it must be; without it as API Gateway refuses."""
        self._scripts: dict[tuple[str, str], list[Scripted]] = defaultdict(list)

    def script(self, method: str, path: str, *answers: Scripted) -> None:
        self._scripts[method, path] = list(answers)

    def forget(self) -> None:
        self.received.clear()
        self._scripts.clear()

    def calls(self) -> list[str]:
        return [f"{one.method} {one.path}" for one in self.received]

    def answer(self, received: Received) -> Scripted:
        self.received.append(received)
        script = self._scripts[received.method, received.path]
        if not script:
            return Scripted(status=404, document={"title": "Not found", "detail": f"no {received.path}"})
        return script.pop(0) if len(script) > 1 else script[0]


@contextmanager
def running_fake_api() -> Iterator[FakeApi]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    api = FakeApi(f"http://127.0.0.1:{server.server_port}/prod")
    server.api = api  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        target = urlsplit(self.path)
        received = Received(
            method=self.command,
            path=target.path.removeprefix("/prod"),
            query=parse_qs(target.query),
            headers=headers,
            body=body,
            port=self.client_address[1],
        )
        if headers.get("authorization") == signature(self.command, self.path, headers, body):
            answer = self.server.api.answer(received)  # type: ignore[attr-defined]
        else:
            api = self.server.api  # type: ignore[attr-defined]
            answer = api.refusal or _refusal("authorization" in headers)
        self._send(answer)

    do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815  the base class's names

    def _send(self, answer: Scripted) -> None:
        self.send_response_only(answer.status)
        if "Date" not in answer.headers:
            self.send_header("Date", self.date_time_string(time.time() + 60 * answer.minutes_ahead))
        kind = "application/json" if answer.status < 400 else "application/problem+json"
        for name, value in {"content-type": kind, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *args: object) -> None:
        pass


def _refusal(is_signed: bool) -> Scripted:  # noqa: FBT001  says so itself
    """In API Gateway's words and with its header."""
    if is_signed:
        kind, message = "InvalidSignatureException", "The request signature does not match."
    else:
        kind, message = "MissingAuthenticationTokenException", "Missing Authentication Token"
    headers = {"content-type": "application/json", "x-amzn-ErrorType": kind}
    return Scripted(status=403, document={"message": message}, headers=headers)


def signature(method: str, target: str, headers: dict[str, str], body: bytes) -> str:
    """What the Authorization header must be for what arrived on the wire."""
    request = AWSRequest(method=method, url=f"http://{headers['host']}{target}", data=body or None)
    request.context["timestamp"] = headers.get("x-amz-date", "")
    signed = headers.get("authorization", "").partition("SignedHeaders=")[2].partition(",")[0]
    for name in signed.split(";"):
        request.headers[name] = headers.get(name, "")
    auth = SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "execute-api", REGION)
    canonical = auth.canonical_request(request)
    wanted = auth.signature(auth.string_to_sign(request, canonical), request)
    return f"AWS4-HMAC-SHA256 Credential={auth.scope(request)}, SignedHeaders={signed}, Signature={wanted}"


def view(name: str | None = "job1", **fields: Any) -> dict[str, Any]:
    """A JobView as the API answers it, waiting unless told otherwise."""
    waits = fields.get("state", "pending") in ("pending", "preempted", "held")
    why = {"code": "capacity", "message": "needs 1 ml.p5.48xlarge, 0 are free"}
    return {
        "name": name,
        "team": "default",
        "submitted_by": "arn:aws:iam::123456789012:user/ann",
        "pool": "p5",
        "state": "pending",
        "reason": None,
        "priority": 1,
        "effective_priority": 1,
        "instances": {"ml.p5.48xlarge": 1},
        "capacity_type": "on-demand",
        "submitted_at": "2026-11-21T01:00:00Z",
        "started_at": None,
        "ended_at": None,
        "position": 3,
        "waiting": why if waits else None,
        "attempt": 0,
        "training_job_name": name,
        "training_job_arn": None,
        "preemptions": 0,
        "retries": 0,
        "wasted_seconds": {},
        "cost_usd": None,
        "cost_is_estimate": True,
        **fields,
    }


def history(*steps: tuple[str, int, str]) -> list[dict[str, Any]]:
    """(to, attempt, reason message) for each step, a minute apart."""
    previous: list[str | None] = [None, *(to for to, _, _ in steps)]
    return [
        {
            "at": f"2026-11-21T01:{minute:02}:00Z",
            "attempt": attempt,
            "from": previous[minute],
            "to": to,
            "reason": {"code": "", "message": message} if message else None,
        }
        for minute, (to, attempt, message) in enumerate(steps)
    ]


def problem(status: int, title: str, detail: str, *errors: dict[str, str]) -> Scripted:
    document = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return Scripted(status=status, document={**document, "errors": list(errors)})
