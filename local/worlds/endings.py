"""Ends of a job whose MaxPendingTimeInSeconds ran out: AWS documents no status for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class PendingEnd(StrEnum):
    """The dialects in which AWS may say it."""

    MAX_PENDING = "Stopped/MaxPendingTimeExceeded"
    STOPPED = "Stopped/Stopped"
    MAX_RUNTIME = "Stopped/MaxRuntimeExceeded"
    CAPACITY_ERROR = "Failed/CapacityError"
    OTHER_FAILURE = "Failed/other"
    MIXED = "mixed"
    """Each job ends in one of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end as DescribeTrainingJob shows it."""

    status: str
    secondary_status: str
    failure_reason: str | None = None


NO_CAPACITY = (
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type."
)
"""Source: failure reasons that users report."""

_OTHER_WORDS = (
    "InternalServerError: The requested instances did not become available within the time "
    "that MaxPendingTimeInSeconds allows."
)
"""Assumed words, as no real ones are known: they stand for any that do not begin with CapacityError."""

_ENDS: Mapping[PendingEnd, End] = {
    PendingEnd.MAX_PENDING: End(status="Stopped", secondary_status="MaxPendingTimeExceeded"),
    PendingEnd.STOPPED: End(status="Stopped", secondary_status="Stopped"),
    PendingEnd.MAX_RUNTIME: End(status="Stopped", secondary_status="MaxRuntimeExceeded"),
    PendingEnd.CAPACITY_ERROR: End(status="Failed", secondary_status="Failed", failure_reason=NO_CAPACITY),
    PendingEnd.OTHER_FAILURE: End(status="Failed", secondary_status="Failed", failure_reason=_OTHER_WORDS),
}


def pending_end(dialect: PendingEnd, draw: Random) -> End:
    """Choose how one job ends; only ``mixed`` draws."""
    if dialect is PendingEnd.MIXED:
        dialect = draw.choice(list(_ENDS))
    return _ENDS[dialect]
