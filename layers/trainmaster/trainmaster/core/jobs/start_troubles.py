"""Failed starts of a job: what AWS refused, and how many times in a row."""

from dataclasses import dataclass
from datetime import datetime

from trainmaster.core.jobs.instances import Vector
from trainmaster.core.jobs.reason_codes import ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRefusals:
    """Starts that a limit of the account forbade, in a row. Until one is accepted the job delays no other."""

    count: int
    held: Vector | None = None
    """Fewest instances of its types that the pool held at one of them; None: that tells nothing."""
    again_at: datetime | None = None
    """Instant from which its start is retried, whatever is known of its types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefusals:
    """Starts that AWS refused for what the request asks for or for a missing right, in a row."""

    count: int
    code: str
    """AWS's error code of the last one."""
    number: int
    """Number of the last one among those of its role in the pool, see ``RoleStarts``."""
    alone: int = 1
    """Length of the last run of them with no try of another job of the role in between."""
    alone_since: datetime
    """Instant of the first refusal of that run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTrouble:
    """Starts of a job that failed."""

    refused: int = 0
    """Starts in a row that AWS put off; the exponent of the back-off."""
    unknown_errors: int = 0
    faults: int | None = None
    """Passes in a row that failed, by a fault of ours, while they were about to start it; None: none."""
    by_account: AccountRefusals | None = None
    """Refusals for a limit of the account; None: none since AWS last accepted a start."""
    by_request: RequestRefusals | None = None
    """Refusals of its request; None: none since AWS last accepted a start."""
    no_capacity: int | None = None
    """Attempts since one last trained that ended because AWS had no instances; the exponent of the back-off
    after such an end. None: none."""

    @property
    def refused_with(self) -> ReasonCode | None:
        """Code of the reason why the job waits until AWS accepts a start; None where AWS refused none."""
        if self.by_request is not None:
            return ReasonCode.REFUSED
        return None if self.by_account is None else ReasonCode.ACCOUNT_LIMIT
