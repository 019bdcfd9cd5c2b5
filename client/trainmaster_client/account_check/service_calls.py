"""Calls of AWS, each noted verbatim with its answer."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.account_check.product_reading import THROTTLED

_CONFIG = Config(
    connect_timeout=5, read_timeout=30, retries={"total_max_attempts": 1}, max_pool_connections=16
)
"""Timeouts in seconds. botocore never retries unseen: throttling is one of the facts."""
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"})
_ACTION = re.compile(r"not authorized to perform:? *([\w-]+:\w+)")
_SERVER_FAULT = 500
MOST_TEXT = 600
"""Characters kept of AWS's answer."""
_PAUSES = (0.5, 1.0, 2.0, 4.0, 4.0, 4.0)
"""Seconds between tries of a call that has to succeed."""


class MissingRightError(Exception):
    """IAM does not allow an action."""

    def __init__(self, action: str) -> None:
        super().__init__(action)
        self.action = action


class RefusedCallError(Exception):
    """AWS refused a call that a look cannot do without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A call of AWS and its answer."""

    operation: str
    at: datetime
    seconds: float
    result: Mapping[str, Any]
    code: str | None = None
    """AWS's error code; None if the call succeeded, empty if there was no answer."""
    text: str = ""
    status: int = 200

    @property
    def is_throttled(self) -> bool:
        return self.code in THROTTLED

    def as_json(self) -> dict[str, Any]:
        return {
            "operation": self.operation,
            "at": self.at.isoformat(timespec="milliseconds"),
            "seconds": round(self.seconds, 3),
            "code": self.code,
            "text": self.text,
            "status": self.status,
        }


@dataclass(slots=True, kw_only=True)
class ServiceCalls:
    session: boto3.Session
    notes: list[dict[str, Any]]
    """Every call and its answer as JSON, in order."""
    pause: Callable[[float], None] = time.sleep
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        if service not in self._clients:
            self._clients[service] = self.session.client(service, config=_CONFIG)  # type: ignore[call-overload]
        return self._clients[service]

    def ask(self, service: str, operation: str, **params: Any) -> Said:  # noqa: ANN401  as boto3 takes them
        """Call once; a refusal is returned as the answer, never raised."""
        client, at, began = self.client(service), datetime.now(UTC), time.monotonic()
        result: Mapping[str, Any] = {}
        refusal: tuple[str | None, str, int] = (None, "", 200)
        try:
            result = getattr(client, _method(client, operation))(**params)
        except ClientError as error:
            response: Mapping[str, Any] = error.response
            status = response["ResponseMetadata"]["HTTPStatusCode"]
            refusal = (response["Error"]["Code"], response["Error"].get("Message", ""), status)
        except (BotoCoreError, ValueError) as error:
            refusal = ("", f"{type(error).__name__}: {error}", 0)
        code, text, status = refusal
        call = Said(
            operation=operation,
            at=at,
            seconds=time.monotonic() - began,
            result=result,
            code=code,
            text=text[:MOST_TEXT],
            status=status,
        )
        self.notes.append(call.as_json())
        return call

    def get(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:  # noqa: ANN401  likewise
        """Return the call's result; throttled calls and server errors are retried.

        Raises:
            MissingRightError: IAM does not allow it.
            RefusedCallError: another refusal, or still throttled.
        """
        for wait in (*_PAUSES, None):
            call = self.ask(service, operation, **params)
            if call.code is None:
                return call.result
            if (action := missing_action(service, call)) is not None:
                raise MissingRightError(action)
            if wait is None or not (call.is_throttled or call.status >= _SERVER_FAULT):
                break
            self.pause(wait)
        raise RefusedCallError(f"{operation}: {call.code}: {call.text}")

    def patient(self, service: str, operation: str, **params: Any) -> Said:  # noqa: ANN401  likewise
        """Call like ``ask``, but retry while AWS throttles.

        Raises:
            MissingRightError: IAM does not allow it.
        """
        for wait in (*_PAUSES, None):
            call = self.ask(service, operation, **params)
            if (action := missing_action(service, call)) is not None:
                raise MissingRightError(action)
            if not call.is_throttled or wait is None:
                break
            self.pause(wait)
        return call


def missing_action(service: str, call: Said) -> str | None:
    """Return the IAM action that was denied, as the text names it; None for any other answer."""
    if call.code not in _DENIED:
        return None
    match = _ACTION.search(call.text)
    return match[1] if match else f"{service}:{call.operation}"


def _method(client: Any, operation: str) -> str:  # noqa: ANN401  boto3 makes its clients at run time
    """Return boto3's method name of an operation."""
    names: Mapping[str, str] = client.meta.method_to_api_mapping
    return next(name for name, api_name in names.items() if api_name == operation)
