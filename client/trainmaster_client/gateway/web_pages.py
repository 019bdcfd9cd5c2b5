"""Pages for the browser of the gateway's user: ``/ui/``, and ``/api/``, the queue's REST API, signed."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from trainmaster_client.errors import ApiUnreachableError, CredentialsError
from trainmaster_client.gateway.call_counts import CallCounts
from trainmaster_client.gateway.json_protocol import CallRefusedError
from trainmaster_client.gateway.page_admission import QUERY_NAME, PageKeys, PageRequest, refuse_changes
from trainmaster_client.gateway.queued_calls import RenewingApi
from trainmaster_client.gateway.web_app import body_of
from trainmaster_client.http.answers import PROBLEM_JSON, Answer

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""All are answered, most of them with 403."""
_READ_HEADERS = ("accept", "if-none-match")
_ANSWERED_HEADERS = ("content-type", "etag", "retry-after", "trainmaster-version", "x-amzn-requestid")
_PLAIN_PATH = re.compile(r"(/[\w.~%@:+-]+)+")
_UP = re.compile(r"/(\.|%2[eE]){1,2}(/|$)")
"""A segment that names another place than it says."""
_PREFIX_PARTS = r"(?P<prefix>/(?:[^?]+/)?proxy/(?:absolute/)?{port})(?P<rest>/(?:ui|api)(?:/.*)?)"
_GUARDS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_API_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
_LINKS = (
    ("../api/jobs", "Jobs: running, waiting in the order of the queue, held"),
    ("../api/pools", "Pools: capacity, use, quotas"),
    ("../api/usage", "What your team's month was spent on"),
    ("../api/violations", "What bypassed the queue or breaks an audited rule"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    keys: PageKeys
    api: RenewingApi
    are_changes_allowed: bool
    describe: Callable[[], dict[str, Any]]
    counts: CallCounts

    def routes(self) -> Iterator[BaseRoute]:
        for path, answer in (
            ("/ui", _to_folder),
            ("/ui/{page:path}", self._ui),
            ("/api{path:path}", self._api),
        ):
            yield Route(path, answer, methods=METHODS)

    async def _ui(self, request: Request) -> Response:
        try:
            cookie = self._admitted(request)
        except CallRefusedError as refused:
            return _page(HTTPStatus(refused.status), f"{refused}\n", "text/plain; charset=utf-8")
        if request.path_params["page"]:
            return _page(HTTPStatus.NOT_FOUND, "There is no such page.\n", "text/plain; charset=utf-8")
        described = await run_in_threadpool(self.describe)
        text = status_page({**described, "changes": self.are_changes_allowed}, self.counts.as_json())
        return _page(HTTPStatus.OK, text, "text/html; charset=utf-8", cookie=cookie)

    async def _api(self, request: Request) -> Response:
        began = time.perf_counter()
        response = await self._api_answer(request)
        code = str(response.status_code) if response.status_code >= HTTPStatus.BAD_REQUEST else ""
        self.counts.add(f"{request.method} /api", code=code, seconds=time.perf_counter() - began)
        return response

    async def _api_answer(self, request: Request) -> Response:
        try:
            cookie = self._admitted(request)
            target = _target(request)
            answer = await run_in_threadpool(self._passed_on, request, target, await body_of(request))
        except CallRefusedError as refused:
            return _problem(HTTPStatus(refused.status), str(refused))
        except ApiUnreachableError as error:
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except CredentialsError as error:
            return _problem(HTTPStatus.UNAUTHORIZED, str(error))
        except ClientDisconnect:
            return _problem(HTTPStatus.BAD_REQUEST, "The caller left.")
        kept = {name: value for name, value in answer.headers.items() if name in _ANSWERED_HEADERS}
        headers = {**kept, **_GUARDS, "content-security-policy": _API_POLICY, **_cookie_header(cookie)}
        return Response(answer.body, status_code=answer.status, headers=headers)

    def _admitted(self, request: Request) -> str:
        """The Set-Cookie of the answer. Raises CallRefusedError."""
        asked = PageRequest(
            method=request.method,
            headers=dict(request.headers),
            token=request.query_params.get(QUERY_NAME, ""),
            prefix=request.scope.get("trainmaster_prefix", ""),
        )
        cookie = self.keys.admit(asked)
        refuse_changes(request.method, are_allowed=self.are_changes_allowed)
        return cookie

    def _passed_on(self, request: Request, target: str, body: bytes) -> Answer:
        headers = {name: request.headers[name] for name in _READ_HEADERS if name in request.headers}
        return self.api.passed_on(request.method, target, body or None, headers)


async def _to_folder(request: Request) -> Response:
    """Relative, so that it is right behind any prefix."""
    if request.method != "GET":
        return _page(HTTPStatus.FORBIDDEN, "This is read alone.\n", "text/plain; charset=utf-8")
    query = request.url.query
    return Response(
        status_code=HTTPStatus.TEMPORARY_REDIRECT, headers={"location": f"ui/{query and '?'}{query}"}
    )


def _target(request: Request) -> str:
    """Of the REST API: path and query as they came, without the token. Raises CallRefusedError."""
    path = request.scope["raw_path"].decode("ascii").partition("?")[0].partition("/api")[2]
    if not _PLAIN_PATH.fullmatch(path) or _UP.search(path):
        raise CallRefusedError(
            "NotFound", f"{path or '/'} is no path of the API.", status=HTTPStatus.NOT_FOUND
        )
    asked = parse_qsl(request.url.query, keep_blank_values=True)
    query = urlencode([(name, value) for name, value in asked if name != QUERY_NAME])
    return f"{path}?{query}" if query else path


def _page(status: HTTPStatus, text: str, kind: str, *, cookie: str = "") -> Response:
    headers = {
        **_GUARDS,
        "content-security-policy": _PAGE_POLICY,
        "content-type": kind,
        **_cookie_header(cookie),
    }
    return Response(text, status_code=status, headers=headers)


def _problem(status: HTTPStatus, detail: str) -> Response:
    document = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    return _page(status, json.dumps(document), PROBLEM_JSON)


def _cookie_header(cookie: str) -> dict[str, str]:
    return {"set-cookie": cookie} if cookie else {}


class AnyPrefix:
    """Takes away what a proxy leaves before the pages' paths: ``/proxy/absolute/PORT/ui/`` is ``/ui/``."""

    def __init__(self, app: ASGIApp, *, port: int) -> None:
        self._app = app
        self._path = re.compile(_PREFIX_PARTS.format(port=port))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._path.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is not None:
            raw = scope["raw_path"].decode("ascii")
            rest = raw[raw.index(found["prefix"]) + len(found["prefix"]) :] if found["prefix"] in raw else raw
            scope = {**scope, "path": found["rest"], "raw_path": rest.encode()}
            scope["trainmaster_prefix"] = found["prefix"]
        await self._app(scope, receive, send)


def status_page(described: Mapping[str, Any], operations: Mapping[str, Mapping[str, Any]]) -> str:
    """What the gateway is and did so far; it stands here until there is a dashboard."""
    changes = (
        "passed on" if described["changes"] else "refused; start it with --allow-changes to pass them on"
    )
    facts = {
        "Queue": described["api_url"],
        "SageMaker": f"{described['sagemaker_url']} ({described['region']})",
        "Acts as": described["credentials"],
        "Memory": f"{described['memory_mb']} MB",
        "Changes by this page": changes,
    }
    links = "".join(f'<li><a href="{href}">{escape(text)}</a>' for href, text in _LINKS)
    counted = "".join(_row(name, *map(str, _figures(one))) for name, one in operations.items())
    table = f"<table>{_row('Call', 'Times', 'Errors', 'Half within', '95 % within')}{counted}</table>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>trainmaster gateway</title>'
        "<h1>trainmaster gateway</h1><p>SageMaker's endpoint on this machine, with the queue behind it. "
        "There is no dashboard yet: here is the gateway's state, with links to the queue's own answers.</p>"
        f"<table>{''.join(_row(name, str(said)) for name, said in facts.items())}</table>"
        f"<h2>The queue</h2><ul>{links}</ul><h2>Calls so far</h2>{table if counted else 'None.'}</html>\n"
    )


def _figures(counted: Mapping[str, Any]) -> tuple[Any, ...]:
    errors = sum(counted["errors"].values())
    return counted["calls"], errors, f"{counted['p50_ms']} ms", f"{counted['p95_ms']} ms"


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
