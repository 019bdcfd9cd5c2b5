"""What stands below ``/ui/``: the dashboard's files for any own page, its data for who was let in."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from importlib import metadata
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from trainmaster_client.dashboard.web_files import INDEX, WebFile, web_files
from trainmaster_client.gateway.gateway_server import MorePages, Parts
from trainmaster_client.gateway.json_protocol import CallRefusedError
from trainmaster_client.gateway.web_pages import GUARDS, METHODS, Pages, page, problem, refusal, shown_to


def dashboard_pages(parts: Parts) -> MorePages:
    """As the gateway takes them."""

    def routes(pages: Pages) -> Iterator[BaseRoute]:
        return DashboardRoutes(pages=pages, files=web_files(), region=parts.region).routes()

    return routes


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardRoutes:
    pages: Pages
    files: Mapping[str, WebFile]
    region: str

    def routes(self) -> Iterator[BaseRoute]:
        yield Route("/ui/data/session", self._answering(self._session), methods=METHODS)
        yield Route("/ui/data/gateway", self._answering(self._gateway), methods=METHODS)
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

    def _answering(self, answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """JSON for who was let in; made in a thread, since it may ask AWS."""

        async def answered(request: Request) -> Response:
            try:
                self.pages.admit(request)
                document = await run_in_threadpool(answer, request)
            except CallRefusedError as refused:
                return refusal(refused)
            return JSONResponse(document, headers=dict(GUARDS))

        return answered

    def _session(self, _: Request) -> dict[str, Any]:
        """What the pages have to know of where they are; nothing of it is a key."""
        return {
            "changes": self.pages.are_changes_allowed,
            "region": self.region,
            "api_url": self.pages.api.api_url,
            "version": _version(),
        }

    def _gateway(self, _: Request) -> dict[str, Any]:
        return {
            **self.pages.describe(),
            "changes": self.pages.are_changes_allowed,
            "operations": self.pages.counts.as_json(),
        }


def _version() -> str:
    try:
        return metadata.version("trainmaster")
    except metadata.PackageNotFoundError:
        return ""
