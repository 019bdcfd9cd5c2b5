"""Decide who may call the gateway. Pure.

A caller needs the gateway's token and must not be a browser; what is signed with the gateway's own keys must
be signed right.
"""

import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http import HTTPStatus

from botocore.auth import SIGV4_TIMESTAMP, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials, ReadOnlyCredentials

from trainmaster_client.gateway.json_protocol import CallRefusedError
from trainmaster_client.http.answers import ALLOWED_SKEW
from trainmaster_client.http.page_requests import foreign_name

SERVICE = "sagemaker"
_BROWSERS_SAY = ("origin", "sec-fetch-site")
_MINUTE = timedelta(minutes=1)
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/, ]+)/(?P<date>\d{8})/(?P<region>[^/, ]+)/(?P<service>[^/, ]+)"
    r"/aws4_request, ?SignedHeaders=(?P<headers>[^, ]+), ?Signature=(?P<signature>\w+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A call as it came."""

    path: str
    """The path as it was sent, percent-encoded."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


def refuse_browsers(headers: Mapping[str, str]) -> None:
    """Refuse what any browser sends, and any name but loopback, also a proxy's. Raises CallRefusedError."""
    if any(name in headers for name in _BROWSERS_SAY):
        raise _denied("The gateway answers programs, not web pages.")
    if foreign_name(headers) is not None:
        raise _denied("Call the gateway as 127.0.0.1 or localhost only.")


def check_token(given: str, token: str) -> None:
    """Raises CallRefusedError unless the token is the gateway's."""
    if not hmac.compare_digest(given.encode(), token.encode()):
        raise _denied(
            "The token in the URL is not this gateway's. Get the URL again: trainmaster gateway --print-env"
        )


def check_signature(
    received: Received, own: Iterable[ReadOnlyCredentials], *, region: str, now: datetime
) -> None:
    """Check the signature of a call that is signed with a key of the gateway's own.

    Calls signed with other keys are not checked.

    Args:
        received: The call.
        own: The gateway's keys, present and previous.
        region: The queue's region. A call for another one would start its job in the wrong place.
        now: The gateway's clock.

    Raises:
        CallRefusedError: Status 403, in AWS's words.
    """
    claim = _AUTHORIZATION.fullmatch(received.headers.get("authorization", ""))
    if claim is None:
        return
    if claim["region"] != region:
        raise _wrong(
            f"Credential should be scoped to a valid region: this gateway serves {region}, not "
            f"{claim['region']}."
        )
    keys = next((candidate for candidate in own if candidate.access_key == claim["key"]), None)
    if keys is None:
        return
    if not hmac.compare_digest(
        received.headers.get("x-amz-security-token", "").encode(), (keys.token or "").encode()
    ):
        raise CallRefusedError(
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
            status=HTTPStatus.FORBIDDEN,
        )
    _check_date(received, claim, now)
    signed = claim["headers"].split(";")
    is_whole = "host" in signed and claim["service"] == SERVICE
    if not is_whole or not hmac.compare_digest(_signature(received, claim, keys), claim["signature"]):
        raise _wrong(
            "The request signature we calculated does not match the signature you provided. Check your AWS "
            "Secret Access Key and signing method."
        )


def _check_date(received: Received, claim: re.Match[str], now: datetime) -> None:
    text = received.headers.get("x-amz-date", "")
    try:
        date = datetime.strptime(text, SIGV4_TIMESTAMP).replace(tzinfo=UTC)
    except ValueError:
        raise _wrong("Date must be in ISO-8601 'basic format'.") from None
    if text[:8] != claim["date"]:
        raise _wrong("Date in Credential scope does not match YYYYMMDD of the date.")
    if abs(now - date) > ALLOWED_SKEW:
        late = "expired" if date < now else "not yet current"
        raise _wrong(
            f"Signature {late}: {text} is not within {ALLOWED_SKEW // _MINUTE} min. of {_stamp(now)}."
        )


class _AsReceived(SigV4Auth):
    """Takes the headers that the client names as signed, and the hash of the body that really came."""

    def headers_to_sign(self, request: AWSRequest) -> HTTPHeaders:
        return request.headers

    def payload(self, request: AWSRequest) -> str:
        return sha256(request.data or b"").hexdigest()


def _signature(received: Received, claim: re.Match[str], keys: ReadOnlyCredentials) -> str:
    signing = Credentials(keys.access_key or "", keys.secret_key or "")
    auth = _AsReceived(signing, claim["service"], claim["region"])
    names = claim["headers"].split(";")
    request = AWSRequest(
        method="POST",
        url=f"http://{received.headers.get('host', '')}{received.path}",
        headers={name: received.headers.get(name, "") for name in names if name != "x-amz-content-sha256"},
        data=received.body,
    )
    if "x-amz-content-sha256" in names:  # botocore would sign what it says in place of the body's hash
        request.headers["x-amz-content-sha256"] = sha256(received.body).hexdigest()
    request.context["timestamp"] = received.headers["x-amz-date"]
    return str(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request))


def _stamp(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime(SIGV4_TIMESTAMP)


def _denied(message: str) -> CallRefusedError:
    return CallRefusedError("AccessDeniedException", message, status=HTTPStatus.FORBIDDEN)


def _wrong(message: str) -> CallRefusedError:
    return CallRefusedError("InvalidSignatureException", message, status=HTTPStatus.FORBIDDEN)
