"""Rights that are taken away for a while: calls of an operation are denied, whatever the policies say."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

DENIED = "AccessDeniedException"


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    operation: str
    """boto3's name, of whichever service; a REST call is ``POST /add-job``, for example."""
    principal: str | None = None
    """ARN of the one caller it is for; None: any."""
    role_arn: str | None = None
    """The role that the call passes (its RoleArn); None: any, or none."""

    def concerns(self, call: "Denial") -> bool:
        return (
            self.operation == call.operation
            and self.principal in {None, call.principal}
            and self.role_arn in {None, call.role_arn}
        )


class Denials:
    """The registry behind ``POST /deny``, by the twin's clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[Denial, datetime] = {}

    def deny(self, denial: Denial, wait: timedelta, *, now: datetime) -> None:
        """Deny such calls until the wait is over; no wait ends every denial that this one covers."""
        with self._lock:
            if wait:
                self._until[denial] = now + wait
            else:
                kept = {other: until for other, until in self._until.items() if not denial.concerns(other)}
                self._until = kept

    def denied(
        self, operation: str, principal: str, params: Mapping[str, Any], *, now: datetime
    ) -> str | None:
        """Word the denial of a call as AWS would; None if the call is allowed."""
        role_arn = params.get("RoleArn")
        call = Denial(operation=operation, principal=principal, role_arn=role_arn)
        with self._lock:
            matching = [
                denial for denial, until in self._until.items() if now < until and denial.concerns(call)
            ]
        if not matching:
            return None
        passes = next((denial.role_arn for denial in matching if denial.role_arn is not None), None)
        what = operation if passes is None else f"iam:PassRole on resource: {passes}"
        return (
            f"User: {principal} is not authorized to perform: {what} with an explicit deny in a service"
            " control policy"
        )
