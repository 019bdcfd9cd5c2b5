"""A signed call of the REST API, made from the specification of Signature Version 4 and nothing else.

Not with botocore: the twin checks signatures with botocore's code, which would agree with itself.
Source: IAM User Guide, "Create a signed AWS API request".
"""

import hashlib
import hmac
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
TIMEOUT_SECONDS = 300
"""For what hangs; one step of a manual clock may take a minute on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    access_key_id: str
    secret_access_key: str
    session_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a signature is good for."""

    region: str
    service: str = "execute-api"
    at: datetime | None = None
    """None: now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request as it goes over the wire."""

    method: str
    url: str
    """With the query string."""
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


def signed(call: Call, keys: Keys, scope: Scope) -> Call:
    """The call with a date, the hash of its body and an Authorization header that covers all of it."""
    at = scope.at or datetime.now(UTC)
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": urlsplit(call.url).netloc, "x-amz-date": stamp}
    if keys.session_token is not None:
        headers["x-amz-security-token"] = keys.session_token
    names = ";".join(sorted(headers))
    place = f"{at:%Y%m%d}/{scope.region}/{scope.service}/aws4_request"
    request_hash = hashlib.sha256(_canonical(call, headers).encode()).hexdigest()
    key = _signing_key(keys.secret_access_key, place)
    signature = hmac.new(
        key, f"{ALGORITHM}\n{stamp}\n{place}\n{request_hash}".encode(), hashlib.sha256
    ).hexdigest()
    authorization = (
        f"{ALGORITHM} Credential={keys.access_key_id}/{place}, SignedHeaders={names}, Signature={signature}"
    )
    kind = {"content-type": "application/json"} if call.body else {}
    return Call(
        method=call.method,
        url=call.url,
        body=call.body,
        headers={**kind, **call.headers, **headers, "authorization": authorization},
    )


def send(call: Call) -> Answer:
    """One connection a call."""
    url = urlsplit(call.url)
    connection = http.client.HTTPConnection(url.netloc, timeout=TIMEOUT_SECONDS)
    try:
        return send_over(connection, call)
    finally:
        connection.close()


def send_over(connection: http.client.HTTPConnection, call: Call) -> Answer:
    """Over a connection that may be used again."""
    url = urlsplit(call.url)
    target = f"{url.path}?{url.query}" if url.query else url.path
    connection.request(call.method, target, body=call.body or None, headers=dict(call.headers))
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(status=response.status, headers=headers, body=response.read())


def _canonical(call: Call, headers: Mapping[str, str]) -> str:
    url = urlsplit(call.url)
    pairs = sorted((_encoded(k), _encoded(v)) for k, v in parse_qsl(url.query, keep_blank_values=True))
    return "\n".join(
        [
            call.method,
            quote(url.path, safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{headers[name]}" for name in sorted(headers)),
            "",
            ";".join(sorted(headers)),
            hashlib.sha256(call.body).hexdigest(),
        ]
    )


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def _signing_key(secret: str, place: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in place.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
