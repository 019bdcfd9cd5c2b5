"""Register our handlers for the events of boto3 clients, once each, and make the answers that they give.

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
"""Called by botocore with keyword arguments; a handler names those it needs."""

Answer: TypeAlias = tuple[AWSResponse, dict[str, Any]]

_CODES: tuple[tuple[type[errors.TrainmasterClientError], str, int], ...] = (
    (errors.InvalidRequestError, "ValidationException", 400),
    (errors.PolicyViolationError, "ValidationException", 400),
    (errors.InvalidArgumentError, "ValidationException", 400),
    (errors.InvalidOptionsError, "ValidationException", 400),
    (errors.UnsupportedTuningError, "ValidationException", 400),
    (errors.ForbiddenError, "AccessDeniedException", 403),
    (errors.CredentialsError, "UnrecognizedClientException", 403),
    (errors.NotFoundError, "ResourceNotFound", 404),
    (errors.ConflictError, "ResourceInUse", 409),
    (errors.TooManyRequestsError, "ThrottlingException", 429),
    (errors.ApiUnreachableError, "ServiceUnavailable", 503),
)
"""SageMaker's code and HTTP status for each of our errors. The first class that fits counts."""

_EXPIRED = ("ExpiredTokenException", 403)
_ELSE = ("InternalFailure", 500)

_SDK_V3_LOGS = "sagemaker.core.utils.logs"


def register(events: Any, event: str, handler: Handler) -> None:  # noqa: ANN401  botocore's emitters
    """Register a handler, replacing ours for the same event; the handlers of others stay.

    Args:
        events: The events of a boto3 session, or a client's ``meta.events``.
        event: A name like ``before-call.sagemaker.CreateTrainingJob``.
        handler: Called with the event's keyword arguments.
    """
    events.unregister(event, unique_id=handler_id(event))
    events.register(event, handler, unique_id=handler_id(event))


def plain_client(boto_session: boto3.Session, service: str, **options: Any) -> Any:  # noqa: ANN401  boto3's
    """Make a client that none of our handlers sees: its calls go to AWS.

    ``options`` are those of ``boto3.Session.client``.
    """
    client: Any = boto_session.client(service, **options)  # type: ignore[call-overload]
    for event in HOOKED_EVENTS:
        client.meta.events.unregister(event, unique_id=handler_id(event))
    PLAIN_CLIENTS.add(client)
    return client


def like_the_default() -> boto3.Session:
    """Make a session with the profile, region and credentials of boto3's default one, and its own events."""
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
    """Make a separate session that signs with the credentials it is given.

    Args:
        credentials: Returns them, or None if there are none.
        region: The session's region.
        profile: The session's profile.
        source: Session to ask again for credentials when they expire; None: they are not renewed.
    """
    own = botocore.session.Session(profile=profile)
    own.register_component("credential_provider", _Given(credentials, source))
    return boto3.Session(botocore_session=own, region_name=region)


def lent(frozen: Callable[[], ReadOnlyCredentials | None]) -> Credentials | None:
    """Return credentials that follow what ``frozen`` returns; None while it returns None."""
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
    """A credential provider that takes the place of botocore's chain of providers."""

    credentials: Callable[[], Any]
    source: boto3.Session | None
    """Session where ``http.expiry`` reads the credentials again."""

    def load_credentials(self) -> Any:  # noqa: ANN401  botocore's; None where there are none
        return self.credentials()


class SessionOf(boto3.Session):
    """Presents a botocore session to our code as a boto3 session.

    boto3's own way would change its user agent and its events. ``region`` is for a session that has none.
    """

    def __init__(self, session: botocore.session.Session, *, region: str | None) -> None:
        self._session = session
        self._region = region

    @property
    def region_name(self) -> str:
        region: Any = self._session.get_config_variable("region") or self._region
        return region  # type: ignore[no-any-return]  # None where there is none, whatever the stubs say


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The region and endpoint of a call."""

    region: str
    endpoint_url: str | None
    """The endpoint of the call; None for the endpoint that the session uses for such calls."""

    @classmethod
    def called(cls, url: str | None, context: Mapping[str, Any]) -> Self:
        """Read where a call goes.

        Args:
            url: The URL of the request; None where a stub answered.
            context: The call's context as handlers get it.
        """
        parts = urlsplit(url or "")
        endpoint_url = f"{parts.scheme}://{parts.netloc}" if parts.netloc else None
        return cls(region=context["client_region"], endpoint_url=endpoint_url)


class PlainClients:
    """Makes a session's plain clients when they are first needed, one for each place that callers call.

    boto3 sessions make one client at a time, hence the lock. A forked process must not read from its parent's
    sockets, hence the process id in the key.
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
    """Make the answer of a call that succeeded.

    Args:
        parsed: The answer's members.
        request_id: That of the API's answer which this one is made from, if there is one.
    """
    return _pair(200, parsed, request_id)


def refusal(error: errors.TrainmasterClientError) -> Answer:
    """Make the answer that botocore raises as ClientError, of the client's own class for its code if any."""
    codes = ((code, status) for kind, code, status in _CODES if isinstance(error, kind))
    is_expired = error.trouble is Trouble.EXPIRED_CREDENTIALS
    code, status = _EXPIRED if is_expired else next(codes, _ELSE)
    return refused_as(code, error, status=status)


def refused_as(code: str, error: errors.TrainmasterClientError, *, status: int = 400) -> Answer:
    """Make a refusal with the given code, for an operation whose own code differs from the usual one."""
    return _pair(status, {"Error": {"Code": code, "Message": str(error)}}, error.request_id)


def _pair(status: int, parsed: dict[str, Any], request_id: str) -> Answer:
    headers = {"x-amzn-requestid": request_id} if request_id else {}
    metadata = {"RequestId": request_id, "HTTPStatusCode": status, "HTTPHeaders": headers, "RetryAttempts": 0}
    return AWSResponse("", status, HTTPHeaders(), None), {**parsed, "ResponseMetadata": metadata}


class SdkV3Logs:
    """Hooks, once, the client that the log loop of the SDK v3 reads with.

    The SDK makes one client for the process, from a session of its own, so no hook of the user's session
    reaches it. It is read from where the SDK keeps it; it is there before the SDK first looks at a job that
    is waited for with its logs.

    Args:
        register: Registers the handlers that join the logs of attempts with the events of a client.
        region: The region whose log groups they know; a client for another one is left alone.
    """

    def __init__(self, register: Callable[[Any], None], *, region: str) -> None:
        self._register = register
        self._region = region
        self._joined: object = None

    def join(self) -> None:
        """Hook the SDK's client if it exists by now. This is cheap: call it at every look at a job."""
        client = _made_client()
        if client is None or client is self._joined or client.meta.region_name != self._region:
            return
        self._register(client.meta.events)
        self._joined = client


def _made_client() -> Any:  # noqa: ANN401  boto3's
    """Return the SDK's client; None where the SDK is not in use, or has not made it yet."""
    kept = getattr(sys.modules.get(_SDK_V3_LOGS), "CloudWatchLogsClient", None)
    made = getattr(type(kept), "_instances", {}).get(kept)
    return getattr(made, "client", None)
