"""A proxy as JupyterLab's: takes a prefix from the path and asks this machine's port."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@contextmanager
def running_proxy(port: int, *, says_so: bool) -> Iterator[str]:
    """The URL, with the prefix, below which the server of ``port`` is found.

    ``says_so``: by the headers of jupyter-server-proxy; others keep quiet about what they took.
    """
    prefix = f"/proxy/{port}"

    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404, "outside of the prefix")
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            asked = HTTPConnection("127.0.0.1", port, timeout=60)
            said = {"X-Forwarded-Prefix": prefix, "X-Forwarded-Context": prefix} if says_so else {}
            asked.request(self.command, self.path.removeprefix(prefix), body, dict(self.headers) | said)
            answer = asked.getresponse()
            content = answer.read()
            asked.close()
            with suppress(ConnectionError):  # a browser that loads a page anew leaves what it asked for
                self.pass_on(answer, content)

        def pass_on(self, answer: HTTPResponse, content: bytes) -> None:
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815  names of http.server

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{prefix}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
