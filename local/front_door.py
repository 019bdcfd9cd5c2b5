"""The one port of the twin: boto3, the SageMaker SDKs and the AWS CLI all come in here."""

import logging
from collections.abc import Callable

from local.doors.aws import AwsDoor, Listener, Owns, Service, ServiceHandler
from local.doors.context import DoorContext
from local.doors.rest import RestApi, RestDoor, RestHandler
from local.engine.moto_engine import MotoEngine
from local.faults import Faults
from local.http_server import HttpServer
from local.identity.authorizer import Authorizer, TagsOf
from local.identity.identities import Identities
from local.journal import Journal
from local.wire import Request, Response

logger = logging.getLogger(__name__)

Handler = Callable[[Request], Response]


class FrontDoor:
    """Bound to its port when made; serves from ``start`` to ``close``; mounting works at any time."""

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
        self._aws, self._rest = AwsDoor(around), RestDoor(around)
        self._mounts: dict[str, Handler] = {}
        self._apis: dict[str, RestApi] = {}
        self._server = HttpServer(port, self._answer)
        self.endpoint_url = f"http://127.0.0.1:{self._server.port}"
        engine.endpoint_url = self.endpoint_url

    def mount(self, prefix: str, handler: Handler) -> None:
        """For the twin's own parts: no authentication, no journal."""
        self._mounts = {**self._mounts, prefix: handler}

    def mount_service(
        self, service: str, handler: ServiceHandler, *, owns: Owns = lambda _operation, _params: True
    ) -> None:
        """A service that is answered by the twin; only calls that may be made reach the handler."""
        self._aws.services[service] = Service(handler=handler, owns=owns)

    def mount_rest_api(self, prefix: str, handler: RestHandler) -> None:
        """An API behind IAM authorization under ``/<api id>/<stage>``."""
        self._apis = {**self._apis, prefix: RestApi(prefix=prefix, handler=handler)}

    def add_listener(self, service: str, operation: str, listener: Listener) -> None:
        """Tell ``listener`` the parameters after each call that succeeded, before its answer is sent."""
        self._aws.listeners.setdefault((service, operation), []).append(listener)

    def add_resource_tags(self, service: str, tags_of: TagsOf) -> None:
        """Where conditions on the tags of this service's resources look (ARN -> tags)."""
        self.authorizer.add_resource_tags(service, tags_of)

    def start(self) -> None:
        self._server.start()

    def close(self) -> None:
        self._server.close()

    def _answer(self, request: Request) -> Response:
        for prefix, handler in self._mounts.items():
            if _is_under(request.raw_path, prefix):
                return _guarded(handler, request)
        for prefix, api in self._apis.items():
            if _is_under(request.raw_path, prefix):
                return self._rest.answer(api, request)
        return self._aws.answer(request)


def _is_under(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")


def _guarded(handler: Handler, request: Request) -> Response:
    try:
        return handler(request)
    except Exception:  # the bulkhead around the twin's own parts: the connection must get an answer
        logger.exception("a mounted handler failed")
        return Response(status=500)
