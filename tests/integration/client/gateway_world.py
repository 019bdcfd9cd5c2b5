"""The gateway in this process, between boto3 and a fake API beside a fake SageMaker."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import uvicorn
from botocore.config import Config
from botocore.credentials import Credentials, ReadOnlyCredentials
from trainmaster_client.gateway.admission import Received, check_signature
from trainmaster_client.gateway.gateway_server import application_of, assembled, listening_on, server_of
from trainmaster_client.gateway.json_protocol import CallRefusedError

from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, FakeApi, running_fake_api

Document = dict[str, Any]
TOKEN = "the-token-of-this-gateway"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayWorld:
    api: FakeApi
    sagemaker: FakeSageMaker
    port: int
    ui_url: str
    """Good once."""
    _clients: dict[tuple[str, ...], Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{TOKEN}"

    def client(
        self, key: str = "AKIAOFANOTHER", secret: str = "any", *, url: str = "", region: str = REGION
    ) -> Any:
        """Plain boto3, which calls once."""
        name = (key, secret, url, region)
        if name not in self._clients:
            self._clients[name] = boto3.client(
                "sagemaker",
                endpoint_url=url or self.url,
                region_name=region,
                aws_access_key_id=key,
                aws_secret_access_key=secret,
                config=Config(retries={"total_max_attempts": 1}),
            )
        return self._clients[name]


@contextmanager
def running_gateway(
    load: Callable[[], Credentials | None] = lambda: Credentials(ACCESS_KEY, SECRET_KEY),
    *,
    are_changes_allowed: bool = False,
    api_url: str = "",
) -> Iterator[GatewayWorld]:
    with running_fake_api() as api, running_sagemaker() as sagemaker:
        env = {"TRAINMASTER_API_URL": api_url or api.url, "AWS_DEFAULT_REGION": REGION}
        parts = assembled({**env, **_endpoint(sagemaker.url)}, load)
        with listening_on(0) as listening:
            port = listening.getsockname()[1]
            app, ui_url = application_of(
                parts, port=port, token=TOKEN, are_changes_allowed=are_changes_allowed
            )
            server = server_of(app)
            thread = threading.Thread(target=_run, args=(server, listening), daemon=True)
            thread.start()
            try:
                yield GatewayWorld(api=api, sagemaker=sagemaker, port=port, ui_url=ui_url)
            finally:
                server.should_exit = True
                thread.join()


def _run(server: uvicorn.Server, listening: Any) -> None:
    server.run(sockets=[listening])


def _endpoint(url: str) -> dict[str, str]:
    """As a shell that has the exports of a gateway, and for the rest a twin."""
    return {"AWS_ENDPOINT_URL": url, "AWS_ENDPOINT_URL_SAGEMAKER": "http://127.0.0.1:4600/a-token"}
