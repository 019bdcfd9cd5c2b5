"""Sign a POST to one endpoint with signature version 4, as botocore's SigV4Auth does for any request.

Method, path, an empty query and a body in memory that is signed are fixed here. A test holds both signers to
the same bytes.
"""

import hmac
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256

from botocore.auth import SIGNED_HEADERS_BLACKLIST, SIGV4_TIMESTAMP, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

_UNSIGNED = frozenset(SIGNED_HEADERS_BLACKLIST)
_ALGORITHM = "AWS4-HMAC-SHA256"
_DAY = len("20260131")


class PostSigner:
    def __init__(self, url: str, *, service: str, region: str) -> None:
        self._service, self._region = service, region
        first = SigV4Auth(ReadOnlyCredentials("", "", None), service, region).canonical_request(
            AWSRequest("POST", url)
        )
        _, self._path, _, host, *_ = first.split("\n")  # botocore knows default ports and quoted paths
        self._host = host.removeprefix("host:")

    def signed(
        self, headers: Mapping[str, str], body: bytes, keys: ReadOnlyCredentials, *, at: datetime
    ) -> dict[str, str]:
        """Return all headers of the request, complete for the wire."""
        stamp = at.strftime(SIGV4_TIMESTAMP)
        sent = {**headers, "Host": self._host, "X-Amz-Date": stamp}
        if keys.token:
            sent["X-Amz-Security-Token"] = keys.token
        lowered = {name.lower(): " ".join(value.split()) for name, value in sent.items()}
        names = sorted(lowered.keys() - _UNSIGNED)
        signed_headers = ";".join(names)
        lines = "\n".join([f"{name}:{lowered[name]}" for name in names])
        digest = sha256(body).hexdigest()
        canonical = f"POST\n{self._path}\n\n{lines}\n\n{signed_headers}\n{digest}"
        scope = f"{stamp[:_DAY]}/{self._region}/{self._service}/aws4_request"
        to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        key = _signing_key(keys.secret_key, stamp[:_DAY], self._region, self._service)
        signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
        named = f"Credential={keys.access_key}/{scope}, SignedHeaders={signed_headers}"
        return sent | {"Authorization": f"{_ALGORITHM} {named}, Signature={signature}"}


@lru_cache(maxsize=16)
def _signing_key(secret: str | None, day: str, region: str, service: str) -> bytes:
    """Derive the signing key, once a day and service until the credentials are renewed."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
