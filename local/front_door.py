"""The one port of the twin: boto3, the SageMaker SDKs and the AWS CLI all come in here.

Other users of the machine and the pages that a browser shows reach the port, too. No page of another origin
gets an answer from any route, whatever it brings. What AWS has is for callers with keys; the twin's own parts
each lie behind a token in the path.
"""

import hmac
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from trainmaster_client.http.page_requests import foreign_page

from local.doors.aws import AwsDoor, Listener, Owns, Service, ServiceHandler
from local.doors.context import DoorContext
from local.doors.rest import RestApi, RestDoor, RestHandler
from local.engine.moto_engine import MotoEngine
from local.faults import Faults
from local.http_server import HttpServer
from local.identity.authorizer import Authorizer, TagsOf
from local.identity.identities import Identities
from local.journal import CallEntry, Journal
from local.wire import Request, Response

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Request], Response]

_TOKEN_BYTES = 32
_FOREIGN = CallEntry(
    principal=None,
    service=None,
    operation=None,
    params={},
    status=403,
    error_code="AccessDeniedException",
)
"""The journal's line of a call by a page of another origin: nothing else of it is read."""


class FrontDoor:
    """Bound to its port when made; serves from ``start`` to ``close``; mounting works at any time.

    A page of another origin, also under a name bound to this machine, is refused at every route.
    """

    def __init__(
        self, *, port: int, identities: Identities, engine: MotoEngine, journal: Journal, faults: Faults
    ) -> None:
        self.authorizer = Authorizer(
            identities,
            policies_of=engine.policies_of,
            key_of=engine.encryption_key_of,
            trust_of=engine.trust_of,
        )
        around = DoorContext(
            identities=identities,
            authorizer=self.authorizer,
            engine=engine,
            journal=journal,
            clock=engine.clock,
            faults=faults,
        )
        self._journal = journal
        self._aws, self._rest = AwsDoor(around), RestDoor(around)
        self._mounts: dict[str, tuple[str, Handler]] = {}
        self._apis: dict[str, RestApi] = {}
        self._server = HttpServer(port, self._answer, refusal=self._page_refused)
        self.endpoint_url = f"http://127.0.0.1:{self._server.port}"
        engine.endpoint_url = self.endpoint_url

    def mount(self, prefix: str, handler: Handler) -> str:
        """Serve a part of the twin itself, without keys and without a line in the journal.

        Returns:
            The URL of the part. It ends in a token that nobody can guess, which is its only key; the handler
            sees paths without it.
        """
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._mounts = {**self._mounts, prefix: (token, handler)}
        return f"{self.endpoint_url}{prefix}/{token}"

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return the paths below which something else than AWS's services answers."""
        return (*self._mounts, *self._apis)

    def mount_service(
        self, service: str, handler: ServiceHandler, *, owns: Owns = lambda _operation, _params: True
    ) -> None:
        """Mount a service that the twin answers; only calls that may be made reach the handler."""
        self._aws.services[service] = Service(handler=handler, owns=owns)

    def mount_rest_api(self, prefix: str, handler: RestHandler) -> None:
        """Mount an API behind IAM authorization under ``/<api id>/<stage>``."""
        self._apis = {**self._apis, prefix: RestApi(prefix=prefix, handler=handler)}

    def add_listener(self, service: str, operation: str, listener: Listener) -> None:
        """Tell ``listener`` the parameters after each call that succeeded, before its answer is sent."""
        self._aws.listeners.setdefault((service, operation), []).append(listener)

    def add_resource_tags(self, service: str, tags_of: TagsOf) -> None:
        """Register where conditions on the tags of this service's resources look (ARN -> tags)."""
        self.authorizer.add_resource_tags(service, tags_of)

    def start(self) -> None:
        self._server.start()

    def close(self) -> None:
        self._server.close()

    def _page_refused(self, headers: Mapping[str, str]) -> Response | None:
        problem = foreign_page(headers)
        if problem is None:
            return None
        self._journal.call(_FOREIGN)
        return _forbidden(f"The twin answers programs of this machine, not web pages. {problem}")

    def _answer(self, request: Request) -> Response:
        for prefix, (token, handler) in self._mounts.items():
            if _is_under(request.raw_path, prefix):
                return _admitted(prefix, token, handler, request)
        for prefix, api in self._apis.items():
            if _is_under(request.raw_path, prefix):
                return self._rest.answer(api, request)
        return self._aws.answer(request)


def _is_under(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")


def _admitted(prefix: str, token: str, handler: Handler, request: Request) -> Response:
    given, slash, path = request.raw_path.removeprefix(prefix).removeprefix("/").partition("/")
    if not hmac.compare_digest(given.encode(), token.encode()):
        return _forbidden("The path lacks this twin's token; that of the control calls is in the ready file.")
    return _guarded(handler, replace(request, raw_path=f"{prefix}{slash}{path}"))


def _forbidden(message: str) -> Response:
    body = json.dumps({"message": message}).encode()
    return Response(status=403, body=body, headers={"content-type": "application/json"})


def _guarded(handler: Handler, request: Request) -> Response:
    try:
        return handler(request)
    except Exception:  # the bulkhead around the twin's own parts: the connection must get an answer
        logger.exception("a mounted handler failed")
        return Response(status=500)
