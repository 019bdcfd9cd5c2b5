"""Routes below ``/ui/``: the dashboard's files for any of its pages, its data for callers who were let in."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from importlib import metadata
from typing import Any

import boto3
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from trainmaster_client.api import Document
from trainmaster_client.dashboard.array_data import ArrayData
from trainmaster_client.dashboard.gpu_metrics import gpu_use
from trainmaster_client.dashboard.job_readers import JobReaders, selection_of
from trainmaster_client.dashboard.policy_replays import PolicyReplays, unpacked
from trainmaster_client.dashboard.queue_data import PageApi, QueueData, states
from trainmaster_client.dashboard.web_files import INDEX, WebFile, web_files
from trainmaster_client.errors import (
    CredentialsError,
    InvalidArgumentError,
    LogsUnansweredError,
    LogsUnreadableError,
    RefusedError,
    TrainmasterClientError,
)
from trainmaster_client.gateway.gateway_server import MorePages, Parts
from trainmaster_client.gateway.json_protocol import CallRefusedError
from trainmaster_client.gateway.page_admission import refuse_changes
from trainmaster_client.gateway.web_app import body_of
from trainmaster_client.gateway.web_pages import GUARDS, METHODS, Pages, page, problem, refusal, shown_to
from trainmaster_client.jobs.instants import instant
from trainmaster_client.policies.policy_document import parse_policy


def dashboard_pages(parts: Parts) -> MorePages:
    """Return the dashboard's routes in the form the gateway takes."""

    def routes(pages: Pages) -> Iterator[BaseRoute]:
        clients = AwsClients(parts.session, parts.region)
        api = PageApi(parts.api_url, parts.session)
        api.credentials = parts.credentials
        return DashboardRoutes(
            pages=pages,
            files=web_files(),
            clients=clients,
            queue=QueueData(api),
            arrays=ArrayData(api, lambda: clients.of("sagemaker")),
            readers=JobReaders(lambda: clients.of("logs")),
            replays=PolicyReplays(api_url=parts.api_url),
        ).routes()

    return routes


REPLAY_HEADER, POLICY_HEADER = "trainmaster-replay", "trainmaster-policy"
"""Headers of a GET: the first starts or cancels a replay, the second carries the policy to start with.

A replay changes nothing, so it is no POST. But it takes minutes of a processor: what begins it is nothing
that a page of another origin, or a link, could send."""
REPLAY_DAYS = 14
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
"""The report brings its own styles and pictures. In a sandbox it has no origin and runs no script."""


class AwsClients:
    """Made once each. Threads may share it: boto3's clients are safe, making them is not."""

    def __init__(self, session: boto3.Session, region: str) -> None:
        self.region = region
        self._session = session
        self._making = threading.Lock()
        self._made: dict[str, Any] = {}

    def of(self, service: str) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        with self._making:
            if service not in self._made:
                self._made[service] = self._session.client(service, region_name=self.region)  # type: ignore[call-overload]
            return self._made[service]


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardRoutes:
    pages: Pages
    files: Mapping[str, WebFile]
    clients: AwsClients
    queue: QueueData
    arrays: ArrayData
    readers: JobReaders
    replays: PolicyReplays

    def routes(self) -> Iterator[BaseRoute]:
        for path, answer in (
            ("session", self._session),
            ("queue", self._queue),
            ("jobs/{name}", self._whole_job),
            ("arrays/{name}", self._array),
            ("gateway", self._gateway),
            ("jobs/{name}/logs", self._logs),
            ("jobs/{name}/curves", self._curves),
            ("jobs/{name}/gpu", self._gpu),
            ("replays/{replay_id}", self._replay),
        ):
            yield Route(f"/ui/data/{path}", self._answering(answer), methods=METHODS)
        yield Route("/ui/data/replays/{replay_id}/report", self._replay_report, methods=METHODS)
        yield Route("/ui/data/policy-document", self._policy_document, methods=METHODS)
        yield Route("/ui/{path:path}", self._file, methods=METHODS)

    async def _file(self, request: Request) -> Response:
        try:
            shown_to(request)
        except CallRefusedError as refused:
            return refusal(refused)
        file = self.files.get(request.path_params["path"] or INDEX)
        if file is None:
            return problem(HTTPStatus.NOT_FOUND, "There is no such page.")
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"etag": file.etag})
        response = page(file.content, file.kind)
        response.headers.update({"cache-control": "no-cache", "etag": file.etag})
        return response

    def _answering(self, answer: Callable[[Request], Document]) -> Callable[[Request], Any]:
        """Answer admitted callers with JSON, made in a thread, since it may ask AWS."""

        async def answered(request: Request) -> Response:
            try:
                self.pages.admit(request)
                document = await run_in_threadpool(answer, request)
            except CallRefusedError as refused:
                return refusal(refused)
            except TrainmasterClientError as trouble:
                return _problem(trouble)
            return JSONResponse(document, headers=dict(GUARDS))

        return answered

    def _replay(self, request: Request) -> Document:
        """Start, cancel or look at a replay, as the request's header says."""
        replay_id, wanted = request.path_params["replay_id"], request.headers.get(REPLAY_HEADER)
        if wanted is None:
            return self._with_key(self.replays.look(replay_id))
        if wanted == "cancel":
            return self.replays.cancel(replay_id)
        text = unpacked(request.headers.get(POLICY_HEADER, ""))
        question = {"text": text, "days": REPLAY_DAYS, "until": _clock(request).isoformat()}
        return self.replays.start(replay_id, question)

    def _with_key(self, replay: Document) -> Document:
        """Add what opens the report by a link."""
        if not replay["has_report"]:
            return replay
        return {**replay, "report_key": self.pages.keys.link_key(_report_name(replay["id"]))}

    async def _replay_report(self, request: Request) -> Response:
        """Answer with the report in HTML; a link with a key for this report alone opens it in its own tab."""
        replay_id, key = request.path_params["replay_id"], request.query_params.get("key")
        try:
            refuse_changes(request.method, are_allowed=False)
            if key is None:
                self.pages.admit(request)
            else:
                self.pages.keys.admit_link(_report_name(replay_id), key)
            report = self.replays.report(replay_id)
        except CallRefusedError as refused:
            return refusal(refused)
        response = page(report, "text/html; charset=utf-8")
        response.headers["content-security-policy"] = _REPORT_POLICY
        return response

    async def _policy_document(self, request: Request) -> Response:
        """POST ``{"text"}``: the document that a policy's text means. A browser reads no YAML."""
        try:
            self.pages.admit(request)
            document = await run_in_threadpool(_document_of, await body_of(request))
        except CallRefusedError as refused:
            return refusal(refused)
        return JSONResponse(document, headers=dict(GUARDS))

    def _session(self, _: Request) -> dict[str, Any]:
        """Tell the pages where they are and what they may change; none of it is a secret."""
        return {
            "changes": self.pages.are_changes_allowed,
            "region": self.clients.region,
            "api_url": self.pages.api.api_url,
            "version": _version(),
            "states": states(),
        }

    def _gateway(self, _: Request) -> dict[str, Any]:
        return {
            **self.pages.describe(),
            "changes": self.pages.are_changes_allowed,
            "operations": self.pages.counts.as_json(),
        }

    def _queue(self, request: Request) -> Document:
        return self.queue.queue(request.query_params, now=_clock(request))

    def _whole_job(self, request: Request) -> Document:
        return self.queue.job(request.path_params["name"], now=_clock(request))

    def _array(self, request: Request) -> Document:
        return self.arrays.array(request.path_params["name"])

    def _job(self, request: Request) -> Document:
        """Answer with the job as the API does: a caller who may not see it sees no log of it here either."""
        return self.pages.api.job(request.path_params["name"], estimate=False)

    def _logs(self, request: Request) -> Document:
        """Return the lines after ``after``; ``attempt`` and ``host`` choose among them."""
        given = request.query_params
        return self.readers.log(
            self._job(request), after=given.get("after", ""), selection=selection_of(given)
        )

    def _curves(self, request: Request) -> Document:
        return self.readers.curves(self._job(request))

    def _gpu(self, request: Request) -> Document:
        return gpu_use(self.clients.of("cloudwatch"), self._job(request), now=_clock(request))


def _clock(request: Request) -> datetime:
    """Return the instant on the clock of the page, else of this machine. Raises InvalidArgumentError."""
    now, given = datetime.now(UTC), request.query_params.get("now")
    return instant(given, now=now, option="now") if given else now


def _report_name(replay_id: str) -> str:
    return f"the report of replay {replay_id}"


def _problem(trouble: TrainmasterClientError) -> Response:
    response = problem(_status(trouble), str(trouble))
    if isinstance(trouble, RefusedError) and trouble.problem.retry_after:
        response.headers["retry-after"] = trouble.problem.retry_after
    return response


def _status(trouble: TrainmasterClientError) -> HTTPStatus:
    """Choose the page's status: 503 if a later call may succeed, 403 if the credentials may not read it."""
    match trouble:
        case RefusedError():
            return HTTPStatus(trouble.problem.status)
        case CredentialsError():
            return HTTPStatus.UNAUTHORIZED
        case InvalidArgumentError():
            return HTTPStatus.BAD_REQUEST
        case LogsUnansweredError():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case LogsUnreadableError():
            return HTTPStatus.FORBIDDEN
        case _:
            return HTTPStatus.SERVICE_UNAVAILABLE


def _document_of(body: bytes) -> dict[str, Any]:
    """Raises CallRefusedError with line and mistake."""
    try:
        text = json.loads(body)["text"]
        return {"policy": parse_policy(text.encode(), source="The text")}
    except InvalidArgumentError as error:
        raise CallRefusedError("ValidationException", str(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        message = 'Send the text of a policy as {"text": "..."}.'
        raise CallRefusedError("ValidationException", message) from error


def _version() -> str:
    try:
        return metadata.version("trainmaster")
    except metadata.PackageNotFoundError:
        return ""
