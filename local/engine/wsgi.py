"""A request to a WSGI application in this process."""

import io
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes

from moto.core.request import (
    PRESERVED_HEADER_NAMES_ENVIRON_KEY,
    environ_key_for_header,
    should_preserve_original_header_name,
)

from local.wire import Request, Response


class Application(Protocol):
    def __call__(self, environ: dict[str, Any], start_response: Any, /) -> Iterable[bytes]: ...  # noqa: ANN401


def call(application: Application, request: Request) -> Response:
    status, headers = 500, dict[str, str]()

    def start_response(line: str, items: list[tuple[str, str]], _exc_info: object = None) -> None:
        nonlocal status, headers
        status, headers = int(line.split(" ", 1)[0]), dict(items)

    chunks = application(_environ(request), start_response)
    try:
        body = b"".join(chunks)
    finally:
        getattr(chunks, "close", _nothing)()
    return Response(status=status, body=body, headers=headers)


def _environ(request: Request) -> dict[str, Any]:
    host, _, port = request.headers.get("host", "127.0.0.1").partition(":")
    return {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": unquote_to_bytes(request.raw_path).decode("latin-1"),
        "RAW_URI": request.raw_path,
        "QUERY_STRING": request.query,
        "SERVER_NAME": host,
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SCRIPT_NAME": "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        **_header_variables(request.headers),
        "CONTENT_LENGTH": str(len(request.body)),
    }


def _header_variables(headers: Mapping[str, str]) -> dict[str, Any]:
    """Convert headers, without the agent, which moto searches for a region, and the transfer coding."""
    kept = {name: value for name, value in headers.items() if name not in {"user-agent", "transfer-encoding"}}
    spelled = {
        environ_key_for_header(name): name for name in kept if should_preserve_original_header_name(name)
    }
    variables: dict[str, Any] = {environ_key_for_header(name): value for name, value in kept.items()}
    return {**variables, PRESERVED_HEADER_NAMES_ENVIRON_KEY: spelled}


def _nothing() -> None:
    """Do nothing: an application that gives a plain list has nothing to close."""
