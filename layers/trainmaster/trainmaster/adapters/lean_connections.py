"""Open connections for small whole requests and answers, in the pools of a botocore client.

Pool, time-outs, TLS, proxies and errors stay urllib3's and botocore's, reading a body (chunked, cut short)
http.client's. Two things are replaced: a request is one write (urllib3's two are two packets and two process
switches), and the header lines of an answer are not parsed as those of an e-mail.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from http.client import CONTINUE, HTTPResponse, LineTooLong, UnknownProtocol
from typing import Any, BinaryIO

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)

_LONGEST_LINE = 65_536
"""Bytes of a header line. Source: http.client."""
_MOST_LINES = 100
"""Header lines of one answer. Source: http.client."""
_WITHOUT_BODY = frozenset({204, 304})


def use_lean_connections(http_session: Any) -> None:
    """Make new direct connections lean; connections through a proxy remain botocore's."""
    manager = http_session._manager  # noqa: SLF001  botocore is pinned
    manager.pool_classes_by_scheme = _pools()
    manager.connection_from_url = cache(
        manager.connection_from_url
    )  # a client has one, and looks it up each time


class _LeanConnection:
    """Sends headers from a plain dictionary as they are; requests of botocore's own pipeline go its way."""

    sock: Any
    timeout: Any
    _is_lean = False

    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **options: Any) -> None:
        self._is_lean = isinstance(headers, dict)  # botocore's are an HTTPHeaders, with bytes in it
        if not self._is_lean:
            super().request(method, url, body, headers, **options)  # type: ignore[misc]
            return
        if self.sock is not None:
            self.sock.settimeout(self.timeout)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        self.send(f"{method} {url} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body)  # type: ignore[attr-defined]

    def getresponse(self) -> Any:
        if not self._is_lean:
            return super().getresponse()  # type: ignore[misc]
        self.sock.settimeout(self.timeout)
        with LeanResponse(self.sock, method="POST") as response:
            response.begin()
            answer = _Answer(response, response.read())
        if response.will_close:
            self.close()  # type: ignore[attr-defined]
        return answer


class LeanResponse(HTTPResponse):
    """Replaces the header parser of http.client's response; header names are in lower case."""

    def begin(self) -> None:
        while True:
            version, status, reason = self._read_status()  # type: ignore[attr-defined]
            headers = head_lines(self.fp)
            if status != CONTINUE:
                break
        if not version.startswith("HTTP/1."):
            raise UnknownProtocol(version)
        self.version = 10 if version == "HTTP/1.0" else 11
        self.code = self.status = status
        self.reason = reason.strip()
        self.headers = self.msg = headers  # type: ignore[assignment]  # only its get() is used
        self.chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self.chunk_left = None
        self.length = 0 if status in _WITHOUT_BODY else self._declared_length(headers)
        unbounded = self.length is None and not self.chunked
        self.will_close = unbounded or self._check_close()  # type: ignore[attr-defined]

    def _declared_length(self, headers: Mapping[str, str]) -> int | None:
        length = headers.get("content-length", "")
        return int(length) if length.isdecimal() and not self.chunked else None


def head_lines(stream: BinaryIO) -> dict[str, str]:
    """Read header lines up to the empty one.

    A line that begins with a space continues the one before; values of the same name are joined by a comma.
    """
    headers: dict[str, str] = {}
    name = ""
    for _ in range(_MOST_LINES + 1):
        line = stream.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise LineTooLong("header line")
        if line in {b"\r\n", b"\n", b""}:
            return headers
        text = line.decode("latin-1")
        if text[0] in " \t":
            headers[name] = f"{headers.get(name, '')} {text.strip()}"
            continue
        name, _, value = text.partition(":")
        name = name.strip().lower()
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    raise LineTooLong(f"more than {_MOST_LINES} headers")


class _Answer:
    """Holds the whole content, and as much of urllib3's response as its pool and botocore's session use."""

    retries: Any = None
    _pool: Any = None
    _connection: Any = None
    length_remaining = 0

    def __init__(self, response: LeanResponse, content: bytes) -> None:
        self.status, self.headers, self._content = response.status, response.headers, content
        self.version_string = f"HTTP/{response.version / 10}"

    def get_redirect_location(self) -> None:
        """Return None: AWS does not redirect a POST, and botocore follows no redirect by itself."""

    def stream(self, *_: object) -> Iterator[bytes]:
        """Yield the whole content at once; nothing is left on the connection, which returns to its pool."""
        if self._connection is not None:
            self._pool._put_conn(self._connection)  # noqa: SLF001  as urllib3's response does
            self._connection = None
        yield self._content


@cache
def _pools() -> Mapping[str, type]:
    def pool(scheme: type, connection: type) -> type:
        lean = type(connection.__name__, (_LeanConnection, connection), {})
        return type(scheme.__name__, (scheme,), {"ConnectionCls": lean})

    return {
        "http": pool(AWSHTTPConnectionPool, AWSHTTPConnection),
        "https": pool(AWSHTTPSConnectionPool, AWSHTTPSConnection),
    }
