"""SageMaker as an HTTP server in this process, for clients that are not to be told from AWS's own."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from botocore.credentials import ReadOnlyCredentials
from trainmaster_client.gateway.admission import Received, check_signature
from trainmaster_client.gateway.json_protocol import CallRefusedError

from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY

Document = dict[str, Any]
EXPIRED = (400, {"__type": "ExpiredTokenException", "message": "The security token has expired"})


@dataclass(slots=True)
class FakeSageMaker:
    """What is not scripted is an error; what is not signed with a key that it knows, too."""

    url: str = ""
    calls: list[tuple[str, Document]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    answers: dict[str, Callable[[Document], Document | tuple[int, Document]]] = field(default_factory=dict)
    keys: ReadOnlyCredentials = field(default=ReadOnlyCredentials(ACCESS_KEY, SECRET_KEY, None))

    def forget(self) -> None:
        self.calls.clear()
        self.bodies.clear()
        self.answers.clear()

    def answer(self, operation: str, headers: dict[str, str], body: bytes) -> tuple[int, Document]:
        self.bodies.append(body)
        self.calls.append((operation, json.loads(body)))
        if f"Credential={self.keys.access_key}/" not in headers.get("authorization", ""):
            return EXPIRED
        try:
            received = Received(path="/", headers=headers, body=body)
            check_signature(received, [self.keys], region=REGION, now=datetime.now(UTC))
        except CallRefusedError as refused:
            return 403, {"__type": refused.code, "message": str(refused)}
        if operation not in self.answers:
            return 400, {"__type": "ValidationException", "message": "Requested resource not found."}
        found = self.answers[operation](json.loads(body))
        return found if isinstance(found, tuple) else (200, found)


@contextmanager
def running_sagemaker() -> Iterator[FakeSageMaker]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    found = FakeSageMaker(f"http://127.0.0.1:{server.server_port}")
    server.sagemaker = found  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        operation = headers["x-amz-target"].removeprefix("SageMaker.")
        status, document = self.server.sagemaker.answer(operation, headers, body)  # type: ignore[attr-defined]
        said = json.dumps(document).encode()
        self.send_response_only(status)
        self.send_header("content-type", "application/x-amz-json-1.1")
        self.send_header("x-amzn-RequestId", "sagemakers-own")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *args: object) -> None:
        pass
