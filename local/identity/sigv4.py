"""Signature Version 4 as a server sees it: who claims to call, and whether the claim holds.

Canonicalisation is botocore's own, so what botocore signs is what we check. The messages are API Gateway's.
"""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import parse_qs

from botocore.auth import SIGV4_TIMESTAMP, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials as SigningKeys

from local.identity.identities import Credentials
from local.wire import AwsError, Request

_MINUTE = timedelta(minutes=1)

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<scope>[^, ]+), ?SignedHeaders=(?P<headers>[^, ]+), ?"
    r"Signature=(?P<signature>\w+)"
)
_SCOPE_PARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claims of a request about itself; none of them has been checked."""

    access_key_id: str
    date: str
    region: str
    service: str
    session_token: str | None
    signed_headers: tuple[str, ...] = ()
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The service, region and time that a signature must be made for."""

    service: str
    region: str
    fresh: timedelta = 15 * _MINUTE
    """Longest distance of its date from now. Source: IAM User Guide, signing: 5 to 15 minutes, by service."""


def read_claim(request: Request) -> Claim | None:
    """Read the claim in the Authorization header or in a presigned query; None if there is none."""
    if match := _AUTHORIZATION.fullmatch(request.headers.get("authorization", "")):
        token = request.headers.get("x-amz-security-token")
        return _claim(match["scope"], token, match["headers"].split(";"), match["signature"])
    query = {name: values[0] for name, values in parse_qs(request.query).items()}
    if scope := query.get("X-Amz-Credential"):
        return _claim(scope, query.get("X-Amz-Security-Token"))
    if key := query.get("AWSAccessKeyId"):  # boto3 still presigns S3 with version 2
        return _claim(f"{key}//us-east-1/s3/aws4_request", query.get("x-amz-security-token"))
    return None


def check_token(claim: Claim, credentials: Credentials) -> bool:
    """Tell whether the session token belongs to the key; a user's key has none."""
    return hmac.compare_digest(claim.session_token or "", credentials.session_token or "")


def verify(
    request: Request, claim: Claim, credentials: Credentials, *, scope: Scope, now: Sequence[datetime]
) -> None:
    """Check everything that a signature covers: method, path, query, signed headers, body, scope and date.

    Args:
        request: As received.
        claim: What ``read_claim`` found in it.
        credentials: The keys that the twin knows under the claimed id.
        scope: The service and the region that must be in the credential scope.
        now: Clocks that may call the date fresh; one is enough.

    Raises:
        AwsError: status 403, and why.
    """
    if claim.service != scope.service:
        raise _refused(
            "InvalidSignatureException", f"Credential should be scoped to correct service: '{scope.service}'."
        )
    if claim.region != scope.region:
        raise _refused("InvalidSignatureException", "Credential should be scoped to a valid region.")
    if not check_token(claim, credentials):
        raise _refused(
            "UnrecognizedClientException", "The security token included in the request is invalid."
        )
    _check_date(request, claim, now, fresh=scope.fresh)
    _check_body_hash(request)
    if "host" not in claim.signed_headers or not hmac.compare_digest(
        _signature(request, claim, credentials).encode(), claim.signature.encode()
    ):
        raise _refused(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. "
            "Check your AWS Secret Access Key and signing method.",
        )


class _AsReceived(SigV4Auth):
    """Takes the headers that the client names as signed, and the hash of the body that really came."""

    def headers_to_sign(self, request: AWSRequest) -> HTTPHeaders:
        return request.headers

    def payload(self, request: AWSRequest) -> str:
        return sha256(request.data or b"").hexdigest()


def _signature(request: Request, claim: Claim, credentials: Credentials) -> str:
    keys = SigningKeys(credentials.access_key_id, credentials.secret_access_key)
    auth = _AsReceived(keys, claim.service, claim.region)
    query = f"?{request.query}" if request.query else ""
    received = AWSRequest(
        method=request.method,
        url=f"http://{request.headers.get('host', '')}{request.raw_path}{query}",
        headers={name: request.headers.get(name, "") for name in claim.signed_headers},
        data=request.body,
    )
    received.context["timestamp"] = request.headers["x-amz-date"]
    return str(auth.signature(auth.string_to_sign(received, auth.canonical_request(received)), received))


def _check_date(request: Request, claim: Claim, clocks: Sequence[datetime], *, fresh: timedelta) -> None:
    text = request.headers.get("x-amz-date", "")
    try:
        date = datetime.strptime(text, SIGV4_TIMESTAMP).replace(tzinfo=UTC)
    except ValueError:
        raise _refused("IncompleteSignatureException", "Date must be in ISO-8601 'basic format'.") from None
    if text[:8] != claim.date:
        raise _refused(
            "InvalidSignatureException", "Date in Credential scope does not match YYYYMMDD of the date."
        )
    now = min(clocks, key=lambda clock: abs(clock - date))
    minutes = f"{fresh // _MINUTE} min."
    if date < now - fresh:
        bounds = f"{_stamp(now - fresh)} ({_stamp(now)} - {minutes})"
        raise _refused("InvalidSignatureException", f"Signature expired: {text} is now earlier than {bounds}")
    if date > now + fresh:
        bounds = f"{_stamp(now + fresh)} ({_stamp(now)} + {minutes})"
        raise _refused(
            "InvalidSignatureException", f"Signature not yet current: {text} is still later than {bounds}"
        )


def _stamp(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime(SIGV4_TIMESTAMP)


def _check_body_hash(request: Request) -> None:
    """Check the header that botocore signs in place of the body's hash: it must be that hash."""
    claimed = request.headers.get("x-amz-content-sha256")
    if claimed is not None and claimed != sha256(request.body).hexdigest():
        raise _refused("InvalidSignatureException", "X-Amz-Content-SHA256 is not the hash of the body.")


def _claim(scope: str, token: str | None, headers: Sequence[str] = (), signature: str = "") -> Claim | None:
    parts = scope.split("/")
    if len(parts) != _SCOPE_PARTS or parts[-1] != "aws4_request":
        return None
    key, date, region, service, _ = parts
    return Claim(
        access_key_id=key,
        date=date,
        region=region,
        service=service,
        session_token=token,
        signed_headers=tuple(headers),
        signature=signature,
    )


def _refused(code: str, message: str) -> AwsError:
    return AwsError(code, message, status=403)
