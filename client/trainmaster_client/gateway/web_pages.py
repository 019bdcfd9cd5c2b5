"""The browser of the gateway's user: its session, and ``/api/``, the queue's REST API, signed."""

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from trainmaster_client.errors import ApiUnreachableError, CredentialsError, UnexpectedAnswerError
from trainmaster_client.gateway.call_counts import CallCounts
from trainmaster_client.gateway.json_protocol import CallRefusedError
from trainmaster_client.gateway.page_admission import PageKeys, refuse_changes
from trainmaster_client.gateway.queued_calls import RenewingApi
from trainmaster_client.gateway.web_app import body_of, refusal_of_a_call
from trainmaster_client.http.answers import PROBLEM_JSON, Answer
from trainmaster_client.http.page_requests import foreign_name, foreign_origin, foreign_site

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""All are answered, most of them with 403."""
_PASSED_HEADERS = ("accept", "if-none-match", "idempotency-key")
_ANSWERED_HEADERS = ("content-type", "etag", "retry-after", "trainmaster-version", "x-amzn-requestid")
_PLAIN_PATH = re.compile(r"(/[\w.~%@:+-]+)+")
_UP = re.compile(r"/(\.|%2[eE]){1,2}(/|$)")
"""A segment that names another place than it says."""
_PAGES = re.compile(r"/(ui|api)(/.*)?")
_SHELL = frozenset({"/ui", "/ui/"})
"""The document of all pages. It holds no secret, so a link to it may be followed from anywhere."""
_PREFIX_PARTS = r"(?P<prefix>/(?:[^?]+/)?proxy/(?:absolute/)?{port})(?P<rest>/(?:ui|api)(?:/.*)?)"
GUARDS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_PAGE_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REFUSED_HEADER = "trainmaster-refused-by"
"""Header of a refusal by the gateway itself, so that its pages do not take it for the API's answer."""
_API_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"


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
            ("/ui/session", self._session),
            ("/api{path:path}", self._api),
        ):
            yield Route(path, answer, methods=METHODS)

    def admit(self, request: Request) -> None:
        """Let in a caller who may see secrets. Raises CallRefusedError."""
        self.keys.admit(request.headers)
        refuse_changes(request.method, are_allowed=self.are_changes_allowed)

    async def _session(self, request: Request) -> Response:
        """Exchange, by POST, the token of a link for the session of the page that sends it."""
        if request.method != "POST":
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, "A session is opened by POST.")
        try:
            session = self.keys.exchange(request.headers)
        except CallRefusedError as refused:
            return refusal(refused)
        return JSONResponse({"session": session}, headers=dict(GUARDS))

    async def _api(self, request: Request) -> Response:
        began = time.perf_counter()
        response = await self._api_answer(request)
        code = str(response.status_code) if response.status_code >= HTTPStatus.BAD_REQUEST else ""
        self.counts.add(f"{request.method} /api", code=code, seconds=time.perf_counter() - began)
        return response

    async def _api_answer(self, request: Request) -> Response:
        try:
            self.admit(request)
            target = _target(request)
            answer = await run_in_threadpool(self._passed_on, request, target, await body_of(request))
        except CallRefusedError as refused:
            return refusal(refused)
        except (ApiUnreachableError, UnexpectedAnswerError) as error:
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except CredentialsError as error:
            return problem(HTTPStatus.UNAUTHORIZED, str(error))
        except ClientDisconnect:
            return problem(HTTPStatus.BAD_REQUEST, "The caller left.")
        kept = {name: value for name, value in answer.headers.items() if name in _ANSWERED_HEADERS}
        headers = {**kept, **GUARDS, "content-security-policy": _API_POLICY}
        return Response(answer.body, status_code=answer.status, headers=headers)

    def _passed_on(self, request: Request, target: str, body: bytes) -> Answer:
        headers = {name: request.headers[name] for name in _PASSED_HEADERS if name in request.headers}
        return self.api.passed_on(request.method, target, body or None, headers)


async def _to_folder(request: Request) -> Response:
    """Redirect by a relative path, so that it is right behind any prefix; browsers keep the fragment."""
    try:
        shown_to(request)
    except CallRefusedError as refused:
        return refusal(refused)
    return Response(status_code=HTTPStatus.TEMPORARY_REDIRECT, headers={"location": "ui/"})


def shown_to(request: Request) -> None:
    """Let any page of the gateway read what holds no secret. Raises CallRefusedError."""
    refuse_changes(request.method, are_allowed=False)


def _target(request: Request) -> str:
    """Return the REST API's path and query, as they came. Raises CallRefusedError."""
    path = request.scope["raw_path"].decode("ascii").partition("?")[0].partition("/api")[2]
    if not _PLAIN_PATH.fullmatch(path) or _UP.search(path):
        raise CallRefusedError(
            "NotFound", f"{path or '/'} is not a path of the API.", status=HTTPStatus.NOT_FOUND
        )
    query = urlencode(parse_qsl(request.url.query, keep_blank_values=True))
    return f"{path}?{query}" if query else path


def page(content: bytes | str, kind: str, *, status: HTTPStatus = HTTPStatus.OK) -> Response:
    headers = {**GUARDS, "content-security-policy": _PAGE_POLICY, "content-type": kind}
    return Response(content, status_code=status, headers=headers)


def problem(status: HTTPStatus, detail: str) -> Response:
    document = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    return page(json.dumps(document), PROBLEM_JSON, status=status)


def refusal(refused: CallRefusedError) -> Response:
    response = problem(HTTPStatus(refused.status), str(refused))
    response.headers[REFUSED_HEADER] = "gateway"
    return response


class OwnPagesAlone:
    """Refuses what pages of other origins send, at every path, before any route sees it.

    Args:
        proxies: Host names, in lower case, under which proxies of the user show the pages.
    """

    def __init__(self, app: ASGIApp, *, proxies: Collection[str]) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (why := self._why_refused(scope)) is not None:
            await _refused_page(scope["path"], why)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _why_refused(self, scope: Scope) -> str | None:
        headers = _headers_of(scope)
        name = foreign_name(headers, proxies=self._proxies)
        if name is not None:
            return f"{name} Where a proxy shows the pages, start the gateway with --behind-proxy HOST."
        origin = foreign_origin(headers, proxies=self._proxies)
        return origin or (None if _is_followed_link(scope, headers) else foreign_site(headers))


def _headers_of(scope: Scope) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def _is_followed_link(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Tell whether somebody followed a link to the pages; frames and scripts name another destination."""
    asks_for = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return asks_for == ("navigate", "document") and scope["method"] == "GET" and scope["path"] in _SHELL


def _refused_page(path: str, why: str) -> Response:
    """Refuse in the caller's form: a problem document below the pages, else SageMaker's error."""
    refused = CallRefusedError("AccessDeniedException", why, status=HTTPStatus.FORBIDDEN)
    return refusal(refused) if _PAGES.fullmatch(path) else refusal_of_a_call(refused)


class AnyPrefix:
    """Removes what a proxy leaves before the pages' paths: ``/proxy/absolute/PORT/ui/`` is ``/ui/``."""

    def __init__(self, app: ASGIApp, *, port: int) -> None:
        self._app = app
        self._path = re.compile(_PREFIX_PARTS.format(port=port))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts = self._path.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if parts is not None:
            raw = scope["raw_path"].decode("ascii")
            rest = raw[raw.index(parts["prefix"]) + len(parts["prefix"]) :] if parts["prefix"] in raw else raw
            scope = {**scope, "path": parts["rest"], "raw_path": rest.encode()}
        await self._app(scope, receive, send)
