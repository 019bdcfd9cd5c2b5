"""The HTTP/1.1 server under the front door: a thread for each connection, connections kept alive."""

import contextlib
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, TypeAlias

from local.wire import Request, Response

logger = logging.getLogger(__name__)

_BACKLOG = 256
_GRACE_SECONDS = 5.0
"""Seconds a close waits for the accepting thread."""


_OURS = frozenset({"connection", "content-length", "date", "transfer-encoding"})
"""Headers that this server writes itself."""

Refusal: TypeAlias = Callable[[Mapping[str, str]], Response | None]
"""Reads the headers of a request, names in lower case; None lets the request in."""


class HttpServer:
    """Serves ``answer`` on the loopback interface; bound when made, serving after ``start``.

    What ``refusal`` answers for the headers of a request is sent before its body is read.
    """

    def __init__(
        self,
        port: int,
        answer: Callable[[Request], Response],
        *,
        refusal: Refusal = lambda _headers: None,
    ) -> None:
        self._server = _Server(port, answer, refusal)
        self.port: int = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), name="front-door", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop accepting and end the open connections."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(_GRACE_SECONDS)
        self._server.end_connections()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    request_queue_size = _BACKLOG
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, answer: Callable[[Request], Response], refusal: Refusal) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer = answer
        self.refusal = refusal
        self._lock = Lock()
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  socketserver's types
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  socketserver's types
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002  socketserver's
        """Log a lost connection quietly: clients may go away in the middle."""
        logger.debug("connection lost: %s", sys.exception())


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        headers = self._received_headers()
        response = self.server.refusal(headers)
        if response is not None:
            self.close_connection = True  # its body, which nobody reads, is not the next request
        else:
            response = self.server.answer(self._received(headers))
        self.wfile.write(self._head(response) + (b"" if self.command == "HEAD" else response.body))

    def _received_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            key = name.lower()
            headers[key] = f"{headers[key]},{value}" if key in headers else value
        return headers

    def _received(self, headers: dict[str, str]) -> Request:
        raw_path, _, query = self.path.partition("?")
        return Request(
            method=self.command, raw_path=raw_path, query=query, headers=headers, body=self._body(headers)
        )

    def _body(self, headers: dict[str, str]) -> bytes:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return b"".join(iter(self._chunk, b""))
        return self.rfile.read(int(headers.get("content-length") or 0))

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        chunk = self.rfile.read(size)
        while self.rfile.readline().strip():  # the end of the chunk; after the last one trailers
            pass
        return chunk

    def _head(self, response: Response) -> bytes:
        headers = {name: value for name, value in response.headers.items() if name.lower() not in _OURS}
        headers["Content-Length"] = self._content_length(response)
        headers["Date"] = self.date_time_string()
        headers["Connection"] = "close" if self.close_connection else "keep-alive"
        reason = self.responses.get(response.status, ("",))[0]
        lines = [f"HTTP/1.1 {response.status} {reason}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _content_length(self, response: Response) -> str:
        """Return the body's length; the answer to a HEAD has that of the body that it leaves out."""
        length = str(len(response.body))
        if self.command != "HEAD":
            return length
        return next(
            (value for name, value in response.headers.items() if name.lower() == "content-length"), length
        )

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401  the base class's names
        logger.debug(format, *args)
