"""Signed HTTP requests: timeouts, retries, pauses. SigV4, proxies and certificates as botocore does them."""

import errno
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSPreparedRequest, AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
    SSLError,
)
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies
from urllib3.exceptions import HTTPError as Urllib3Error
from urllib3.exceptions import NameResolutionError

from trainmaster_client.errors import (
    BROKEN_ROWS,
    ApiUnreachableError,
    CredentialsError,
    InvalidApiUrlError,
    UnexpectedAnswerError,
)
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import Answer, document_of, kind_of, trouble_of
from trainmaster_client.http.bounded_answers import UnboundedAnswerError, bounded_answer
from trainmaster_client.http.expiry import CREDENTIAL_ERRORS, is_renewable, renew, unusable
from trainmaster_client.http.rate_limits import (
    MOST_WAITS,
    MOST_WAITS_OF_A_READ,
    ONCE_A_PROCESS,
    Say,
    limit_passes_in,
    wait_line,
)

CONNECT_TIMEOUT_SECONDS = 5
READ_TIMEOUT_SECONDS = 30
"""API Gateway gives up on its function after 29 s (quota "integration timeout" of REST APIs)."""
LONGEST_ANSWER_SECONDS = 60.0
"""Seconds from the connection to the last byte: the gateway's 29 s, and 10 MiB on a slow line."""

ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 4.0

_JITTER = secrets.SystemRandom()
"""Numbers that the user's program has seeded for itself stay as they are."""

MOST_CONNECTIONS = 40
"""Kept alive: as many as a web server's threads that wait for answers (anyio's default)."""
_AT_ONCE = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
"""Socket options; without them a body, which goes out after its headers, waits 40 ms for the server's
delayed acknowledgement."""
_NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_REGION_IN_HOST = re.compile(r"\.execute-api\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com")


def pause_for(seconds: float) -> None:
    """Look ``time.sleep`` up when it is needed, so that whoever replaces it is heard."""
    time.sleep(seconds)


class SignedTransport:
    """Sends to one API as the caller that the boto3 session stands for.

    Args:
        api_url: With the stage.
        boto_session: Whose credentials sign.
        pause: Waits that many seconds between two tries.
        say: Is given a line with each wait that the API asked for.
    """

    def __init__(
        self,
        api_url: str,
        boto_session: boto3.Session,
        *,
        pause: Callable[[float], None] = pause_for,
        say: Say = ONCE_A_PROCESS,
    ) -> None:
        parts = checked_url(api_url)
        self.api_url = api_url.rstrip("/")
        self._session = boto_session
        self._pause = pause
        self._say = say
        self.region = _region(parts.hostname or "", boto_session)
        """Region that requests are signed for."""
        self._http = connections(self.api_url)
        self._process = os.getpid()

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Sign and send a call; ``path`` is percent-encoded and begins with a slash.

        If AWS calls the credentials expired and there are new ones by now, it is sent again with those.

        Raises ApiUnreachableError, CredentialsError, and UnexpectedAnswerError for an answer without an end.
        """
        answer = self._sent(self._signed(method, path, body, headers))
        if trouble_of(answer, now=datetime.now(UTC)) is Trouble.EXPIRED_CREDENTIALS and renew(self._session):
            return self._sent(self._signed(method, path, body, headers))
        return answer

    def send_patiently(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        attempts: int,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send, and send again if another try may help: for calls that may arrive twice."""
        for attempt in range(1, attempts):
            answer = self._try(method, path, body, headers)
            if answer is not None:
                return answer
            self._pause(full_jitter(attempt))
        return self.send(method, path, body, headers)

    def send_in_turn(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        attempts: int,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send patiently, and again when a rate limit has passed: a refused call changed nothing."""
        for _ in range(MOST_WAITS_OF_A_READ if method == "GET" else MOST_WAITS):
            answer = self.send_patiently(method, path, body, attempts=attempts, headers=headers)
            seconds = limit_passes_in(answer)
            if seconds is None:
                return answer
            self._say(wait_line(answer, seconds))
            self._pause(float(seconds))
        return self.send_patiently(method, path, body, attempts=attempts, headers=headers)

    def _try(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> Answer | None:
        """Try once; None if another try may help: no answer, or the server's own failure. Never on 4xx."""
        try:
            answer = self.send(method, path, body, headers)
        except ApiUnreachableError as error:
            if error.trouble in _LASTING:
                raise
            return None
        is_final = answer.status < HTTPStatus.INTERNAL_SERVER_ERROR or _needs_a_repair(answer)
        return answer if is_final else None

    def look(self, path: str) -> Answer:
        """Return the answer to a call that is not signed. Raises ApiUnreachableError."""
        return self._sent(AWSRequest(method="GET", url=self.api_url + path).prepare())

    def _sent(self, request: AWSPreparedRequest) -> Answer:
        if self._process != os.getpid():  # forked: on a shared socket each would read the other's answers
            self._http, self._process = connections(self.api_url), os.getpid()
        try:
            return bounded_answer(self._http, request, seconds=LONGEST_ANSWER_SECONDS)
        except UnboundedAnswerError as error:
            raise UnexpectedAnswerError(self.api_url, what=str(error)) from error
        except (BotoConnectionError, HTTPClientError) as error:
            raise ApiUnreachableError(self.api_url, why=_why(error), trouble=_trouble(error)) from error
        except Urllib3Error as error:  # botocore knows those that come before the body
            raise ApiUnreachableError(self.api_url, why=_why(error)) from error

    def _signed(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AWSPreparedRequest:
        always = {"accept": "application/json"} | ({"content-type": "application/json"} if body else {})
        request = AWSRequest(
            method=method, url=self.api_url + path, data=body, headers={**always, **(headers or {})}
        )
        SigV4Auth(self.credentials(), "execute-api", self.region).add_auth(request)
        return request.prepare()

    def credentials(self) -> ReadOnlyCredentials:
        """Raises CredentialsError, and ExpiredCredentialsError where a new login is needed."""
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise CredentialsError("no AWS credentials found.", trouble=Trouble.NO_CREDENTIALS)
            return credentials.get_frozen_credentials()
        except CREDENTIAL_ERRORS as error:
            problem = unusable(error)
            problem.may_be_renewed = True  # what is renewed by itself is renewed after a login, too
            raise problem from error

    @property
    def takes_new_credentials(self) -> bool:
        """Tell whether a new login reaches the session without a restart of the program."""
        return is_renewable(self._session)


_LASTING = frozenset({Trouble.HOST_UNKNOWN, Trouble.TLS})
"""Another try within seconds does not help."""


def _needs_a_repair(answer: Answer) -> bool:
    """Tell whether the API says that it cannot serve this until an admin has repaired a row."""
    return kind_of(document_of(answer) or {}) in BROKEN_ROWS


def full_jitter(attempt: int) -> float:
    """Draw the seconds to wait after ``attempt`` tries, up to a bound that doubles each time."""
    bound = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
    return _JITTER.uniform(0, bound)


def connections(url: str) -> URLLib3Session:
    """Keep connections to one host alive, by the proxies and certificates that the environment names."""
    return URLLib3Session(
        verify=os.environ.get("AWS_CA_BUNDLE") or True,  # type: ignore[arg-type]  # stubs: no path
        proxies=get_environ_proxies(url),
        timeout=(CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS),  # type: ignore[arg-type]  # stubs: no pair
        max_pool_connections=MOST_CONNECTIONS,
        socket_options=_AT_ONCE,  # type: ignore[arg-type]  # stubs: a list of str
    )


_TROUBLES: tuple[tuple[type[Exception], Trouble], ...] = (
    (SSLError, Trouble.TLS),
    (ProxyConnectionError, Trouble.PROXY),
    (ConnectTimeoutError, Trouble.NO_WAY),
    (EndpointConnectionError, Trouble.NOTHING_LISTENS),
)


def _trouble(error: Exception) -> Trouble:
    """Tell an unknown name from a refused connection by its cause: botocore has one error for both."""
    if any(isinstance(cause, NameResolutionError | socket.gaierror) for cause in _causes(error)):
        return Trouble.HOST_UNKNOWN
    if any(isinstance(cause, OSError) and cause.errno in _NO_ROUTE for cause in _causes(error)):
        return Trouble.NO_WAY
    return next((trouble for kind, trouble in _TROUBLES if isinstance(error, kind)), Trouble.NO_ANSWER)


def _why(error: Exception) -> str:
    """Write an error in one line; that of a timeout or a refused connection names the URL once more."""
    return f"{' '.join(str(error).split()).rstrip('.')}."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def checked_url(api_url: str) -> SplitResult:
    """Check the URL: plain http shows bodies and session tokens, so it is for this machine only."""
    try:
        parts = urlsplit(api_url)
        parts.port  # noqa: B018  raises on a port that is none
    except ValueError as error:
        raise InvalidApiUrlError(api_url) from error
    is_odd = parts.query or parts.fragment or parts.username or not parts.hostname
    if is_odd or parts.scheme not in {"http", "https"}:
        raise InvalidApiUrlError(api_url)
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise InvalidApiUrlError(api_url, trouble=Trouble.PLAIN_HTTP)
    if _REGION_IN_HOST.search(parts.hostname or "") and parts.path in {"", "/"}:
        raise InvalidApiUrlError(api_url, trouble=Trouble.NO_STAGE)
    return parts


def region_of(host: str) -> str | None:
    """Return the region in a host's name; None if there is none."""
    match = _REGION_IN_HOST.search(host)
    return match.group(1) if match else None


def _region(host: str, boto_session: boto3.Session) -> str:
    """Return the API's own region if its name has one, as the signature must be for that.

    Else the session's.
    """
    region = region_of(host) or boto_session.region_name
    if not region:
        raise CredentialsError("no AWS region is configured.", trouble=Trouble.NO_REGION)
    return region
