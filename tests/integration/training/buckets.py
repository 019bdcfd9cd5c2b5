"""S3 in this process: moto behind a port, with what may go wrong on the way to it."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


RESET = 0
"""In place of a status: the connection ends without an answer."""
CUT = -1
"""Likewise: the connection ends in the middle of the body."""
SHIFTED = -2
"""Likewise: the range of the answer begins a byte later."""
WHOLE = -3
"""Likewise: the answer is the whole object."""


@dataclass(kw_only=True)
class Fault:
    """The next ``times`` such requests are answered with an error and do nothing."""

    method: str
    key_has: str
    code: str
    status: int
    times: int = 1_000_000


@dataclass
class S3Server:
    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    served: list[tuple[str, str]] = field(default_factory=list)
    """(method, path) of each request, those that failed included."""

    @property
    def env(self) -> dict[str, str]:
        """For a client in another process."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": self.url}

    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )

    def new_bucket(self) -> str:
        """An empty one; its name."""
        name = f"bucket-{len(self.client().list_buckets()['Buckets'])}"
        self.client().create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str) -> list[str]:
        return [one["Key"] for one in self.client().list_objects_v2(Bucket=bucket).get("Contents", [])]

    def fault(self, method: str, path: str) -> Fault | None:
        for one in self.faults:
            if one.times and one.method == method and one.key_has in path:
                one.times -= 1
                return one
        return None


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002  werkzeug's name
        pass


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Empty at first; ``fault`` and ``served`` are the test's to change and read."""
    moto_api_backend.reset()
    served = S3Server()
    server = make_server("127.0.0.1", 0, _application(served), threaded=True, request_handler=_Quiet)
    served.url = f"http://127.0.0.1:{server.port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _application(server: S3Server) -> Callable[..., list[bytes]]:
    moto = create_backend_app("s3")
    lock = threading.Lock()  # moto is not safe under concurrent requests

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with lock:
            server.served.append((method, path))
            fault = server.fault(method, path)
            if fault is None or fault.status in {SHIFTED, WHOLE}:
                if fault is not None:
                    _change_range(environ, fault.status)
                return [b"".join(moto(environ, start))]
            if fault.status == CUT:
                _cut(environ, moto)
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = f"<Error><Code>{fault.code}</Code><Message>so it was told</Message></Error>".encode()
        if fault.status == RESET:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        start(f"{fault.status} X", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]

    return answer


def _change_range(environ: dict[str, Any], to: int) -> None:
    asked = environ.pop("HTTP_RANGE")
    if to == SHIFTED:
        first, last = asked.removeprefix("bytes=").split("-")
        environ["HTTP_RANGE"] = f"bytes={int(first) + 1}-{int(last) + 1}"


def _cut(environ: dict[str, Any], moto: Callable[..., Any]) -> None:
    """All of the head and half of the body."""
    head: list[str] = []

    def start(status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
        head[:] = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]

    body = b"".join(moto(environ, start))
    connection = environ["werkzeug.socket"]
    connection.sendall("\r\n".join([*head, "", ""]).encode() + body[: len(body) // 2])
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError
