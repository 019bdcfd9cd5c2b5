"""Starts of a job that came to nothing: what AWS refused, and how often in a row."""

from dataclasses import dataclass
from datetime import datetime

from trainmaster.core.jobs.instances import Vector
from trainmaster.core.jobs.reason_codes import ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRefusals:
    """Starts that a limit of the account forbade, in a row. Until one is taken the job delays nobody."""

    count: int
    held: Vector | None = None
    """Fewest instances of its types that the pool held at one of them; None: that says nothing."""
    again_at: datetime | None = None
    """From then on it is tried again whatever is known of its types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefusals:
    """Starts that AWS refused for what the request asks for or for a missing right, in a row."""

    count: int
    code: str
    """AWS's error code of the last one."""
    number: int
    """Of the last one among those of its role in the pool, see ``RoleStarts``."""
    alone: int = 1
    """The last so many of them, with no other job of the role tried in between ..."""
    alone_since: datetime
    """... and when the first of these was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTrouble:
    """Starts that came to nothing."""

    refused: int = 0
    """In a row that AWS put off; the exponent of the back-off."""
    unknown_errors: int = 0
    faults: int | None = None
    """Passes in a row that failed, by a fault of ours, while they were about to start it; None: none."""
    by_account: AccountRefusals | None = None
    """None: none since AWS took one last."""
    by_request: RequestRefusals | None = None
    """None as well."""
    no_capacity: int | None = None
    """Attempts since one last trained that ended because AWS had no instances; the exponent of the back-off
    after such an end. None: none."""

    @property
    def refused_with(self) -> ReasonCode | None:
        """Why the job waits until AWS takes a start of it; None where AWS refused none."""
        if self.by_request is not None:
            return ReasonCode.REFUSED
        return None if self.by_account is None else ReasonCode.ACCOUNT_LIMIT
