"""Our handlers among the events of boto3 clients, each there once, and what they answer in a call's place.

botocore copies a session's handlers into each client that is made from it. So a handler that is registered
later does not reach a client that exists, and one that a client loses stays with the session.
"""

import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials, ReadOnlyCredentials

from trainmaster_client import errors
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.hooks.hooked_events import HOOKED_EVENTS, PLAIN_CLIENTS, handler_id

Handler: TypeAlias = Callable[..., Any]
"""As botocore calls it: with keyword arguments, of which a handler names those it needs."""

Answer: TypeAlias = tuple[AWSResponse, dict[str, Any]]

_CODES: tuple[tuple[type[errors.TrainmasterClientError], str, int], ...] = (
    (errors.InvalidRequestError, "ValidationException", 400),
    (errors.PolicyViolationError, "ValidationException", 400),
    (errors.InvalidArgumentError, "ValidationException", 400),
    (errors.UnsupportedTuningError, "ValidationException", 400),
    (errors.ForbiddenError, "AccessDeniedException", 403),
    (errors.CredentialsError, "UnrecognizedClientException", 403),
    (errors.NotFoundError, "ResourceNotFound", 404),
    (errors.ConflictError, "ResourceInUse", 409),
    (errors.TooManyRequestsError, "ThrottlingException", 429),
    (errors.ApiUnreachableError, "ServiceUnavailable", 503),
)
"""Error -> the code that SageMaker has for it, and the status. The first that fits counts."""

_EXPIRED = ("ExpiredTokenException", 403)
_ELSE = ("InternalFailure", 500)

_SDK_V3_LOGS = "sagemaker.core.utils.logs"


def register(events: Any, event: str, handler: Handler) -> None:  # noqa: ANN401  botocore's emitters
    """Instead of what we registered for this event before; the handlers of others stay.

    Args:
        events: Of a boto3 session, or a client's ``meta.events``.
        event: As in ``before-call.sagemaker.CreateTrainingJob``.
        handler: What is called.
    """
    events.unregister(event, unique_id=handler_id(event))
    events.register(event, handler, unique_id=handler_id(event))


def plain_client(boto_session: boto3.Session, service: str, **options: Any) -> Any:  # noqa: ANN401  boto3's
    """A client that none of our handlers sees: what it asks is asked of AWS.

    ``options`` are those of ``boto3.Session.client``.
    """
    client: Any = boto_session.client(service, **options)  # type: ignore[call-overload]
    for event in HOOKED_EVENTS:
        client.meta.events.unregister(event, unique_id=handler_id(event))
    PLAIN_CLIENTS.add(client)
    return client


def like_the_default() -> boto3.Session:
    """A session with the profile, region and credentials of boto3's default one, and events of its own."""
    default = boto3.DEFAULT_SESSION
    if default is None:
        return boto3.Session()
    profile = None if default.profile_name == "default" else default.profile_name
    return signing_with(default.get_credentials, region=default.region_name, profile=profile, source=default)


def signing_with(
    credentials: Callable[[], Any],
    *,
    region: str | None,
    profile: str | None = None,
    source: boto3.Session | None = None,
) -> boto3.Session:
    """A session of its own that signs with what it is given.

    Args:
        credentials: Answers None for none.
        region: Of the session.
        profile: Of the session.
        source: Whose chain gives the credentials; None: they are not looked for again when they expire.
    """
    own = botocore.session.Session(profile=profile)
    own.register_component("credential_provider", _Given(credentials, source))
    return boto3.Session(botocore_session=own, region_name=region)


def lent(frozen: Callable[[], ReadOnlyCredentials | None]) -> Credentials | None:
    """Credentials whose owner sets what they are; None as long as there are none."""
    return None if frozen() is None else _Lent(frozen)


class _Lent(Credentials):
    def __init__(self, frozen: Callable[[], ReadOnlyCredentials | None]) -> None:
        now = frozen()
        assert now is not None
        super().__init__(str(now.access_key), str(now.secret_key), now.token)
        self._frozen = frozen

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        return self._frozen() or super().get_frozen_credentials()


@dataclass(frozen=True, slots=True)
class _Given:
    """In the place of botocore's chain of providers."""

    credentials: Callable[[], Any]
    source: boto3.Session | None
    """``http.expiry`` reads them there again."""

    def load_credentials(self) -> Any:  # noqa: ANN401  botocore's; None where there are none
        return self.credentials()


class SessionOf(boto3.Session):
    """A botocore session as our code takes it; boto3's own way would change its user agent and its events.

    ``region`` is for one that has none.
    """

    def __init__(self, session: botocore.session.Session, *, region: str | None) -> None:
        self._session = session
        self._region = region

    @property
    def region_name(self) -> str:
        found: Any = self._session.get_config_variable("region") or self._region
        return found  # type: ignore[no-any-return]  # None where there is none, whatever the stubs say


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Region and endpoint of a call."""

    region: str
    endpoint_url: str | None
    """None: where the session sends such calls."""

    @classmethod
    def called(cls, url: str | None, context: Mapping[str, Any]) -> Self:
        """``url`` is that of the request, none where a stub answered; ``context`` is as handlers get it."""
        parts = urlsplit(url or "")
        endpoint_url = f"{parts.scheme}://{parts.netloc}" if parts.netloc else None
        return cls(region=context["client_region"], endpoint_url=endpoint_url)


class PlainClients:
    """The plain clients of a session, each made at its first need, for the place that the caller's was.

    boto3 sessions make one client at a time, and a forked process must not read from its parent's sockets.
    """

    def __init__(self, boto_session: boto3.Session) -> None:
        self._session = boto_session
        self._made: dict[tuple[int, str, Where], Any] = {}
        self._making = threading.Lock()

    def of(self, service: str, where: Where) -> Any:  # noqa: ANN401  boto3's
        key = (os.getpid(), service, where)
        if key in self._made:
            return self._made[key]
        with self._making:
            if key not in self._made:
                self._made[key] = plain_client(
                    self._session, service, region_name=where.region, endpoint_url=where.endpoint_url
                )
            return self._made[key]


def answered(parsed: dict[str, Any], *, request_id: str = "") -> Answer:
    """As if the service had said so. ``request_id``: of the API's answer that it is made of."""
    return _pair(200, parsed, request_id)


def refusal(error: errors.TrainmasterClientError) -> Answer:
    """Raised by botocore as ClientError, of the client's own class for the code where it has one."""
    found = ((code, status) for kind, code, status in _CODES if isinstance(error, kind))
    is_expired = error.trouble is Trouble.EXPIRED_CREDENTIALS
    code, status = _EXPIRED if is_expired else next(found, _ELSE)
    return refused_as(code, error, status=status)


def refused_as(code: str, error: errors.TrainmasterClientError, *, status: int = 400) -> Answer:
    """For an operation whose own code for it is another one."""
    return _pair(status, {"Error": {"Code": code, "Message": str(error)}}, error.request_id)


def _pair(status: int, parsed: dict[str, Any], request_id: str) -> Answer:
    headers = {"x-amzn-requestid": request_id} if request_id else {}
    metadata = {"RequestId": request_id, "HTTPStatusCode": status, "HTTPHeaders": headers, "RetryAttempts": 0}
    return AWSResponse("", status, HTTPHeaders(), None), {**parsed, "ResponseMetadata": metadata}


class SdkV3Logs:
    """Hooks the client that the log loop of the SDK v3 reads with, once.

    The SDK makes one for the process, from a session of its own, so no hook of the user's session reaches it.
    It is found where the SDK keeps it once it is there, which is before the first look at a job that is
    waited for with its logs.

    Args:
        register: Puts the handlers that join the logs of attempts at the events of a client.
        region: Whose log groups they know; a client for another one is left alone.
    """

    def __init__(self, register: Callable[[Any], None], *, region: str) -> None:
        self._register = register
        self._region = region
        self._joined: object = None

    def join(self) -> None:
        """Cheap: to be called at every look at a job."""
        client = _made_client()
        if client is None or client is self._joined or client.meta.region_name != self._region:
            return
        self._register(client.meta.events)
        self._joined = client


def _made_client() -> Any:  # noqa: ANN401  boto3's
    """None where the SDK is not in use, or did not make it yet."""
    kept = getattr(sys.modules.get(_SDK_V3_LOGS), "CloudWatchLogsClient", None)
    made = getattr(type(kept), "_instances", {}).get(kept)
    return getattr(made, "client", None)
