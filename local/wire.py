"""Values that travel between the twin's parts: a request, a response, a caller, an AWS error."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An HTTP request as received; nothing is decoded twice."""

    method: str
    raw_path: str
    """Path before decoding, without the query."""
    query: str
    """Query string before decoding, without the question mark."""
    headers: Mapping[str, str]
    """Names in lower case; of a repeated header the values joined with a comma."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller of a request."""

    arn: str
    """ARN as the journal shows it: a user, or the session of an assumed role."""
    account_id: str
    access_key_id: str
    role_arn: str | None = None
    """The IAM role behind an assumed-role session."""


class AwsError(Exception):
    """An error of an AWS service; the front door writes it in the protocol of that service."""

    def __init__(
        self, code: str, message: str, *, status: int = 400, members: Mapping[str, Any] | None = None
    ) -> None:
        """Make an error; ``members`` are further ones of its shape (``CancellationReasons``), JSON only."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.members = members or {}
