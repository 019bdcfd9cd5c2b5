"""Words of a job's row that every view of the queue shares: why it waits, what happens to it."""

from collections.abc import Mapping
from types import MappingProxyType

from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode

LONGEST_SHORT_REASON = 40
"""Characters of a short reason: what a column of a narrow screen can hold."""
WAITS_FOR: Mapping[str, str] = MappingProxyType(
    {
        ReasonCode.AHEAD: "behind other jobs",
        ReasonCode.RESERVATION: "would delay the job ahead",
        ReasonCode.CAPACITY: "waits for free instances",
        ReasonCode.QUOTA: "its team's quota is used up",
        ReasonCode.BUDGET: "its team's budget is used up",
        ReasonCode.ACCOUNT_LIMIT: "AWS allows the account no more of these",
        ReasonCode.REFUSED: "AWS refuses its start",
        ReasonCode.BACKOFF: "is tried again after a pause",
        ReasonCode.PAUSED: "an admin paused all starts",
        ReasonCode.HELD: "held by a user or an admin",
        ReasonCode.DEPENDENCY: "waits for other jobs to end",
        ReasonCode.RECOUNT: "an admin has to recount the pool",
        ReasonCode.UNAVAILABLE: "SageMaker put its start off",
        "": "its turn has not come",
    }
)
"""Short reasons by code, without any name or number: a view that knows these puts them in."""
HAPPENS: Mapping[str, str] = MappingProxyType(
    {
        JobState.STARTING: "is being started",
        JobState.RUNNING: "",
        JobState.PREEMPTING: "stops for another job, and comes back",
        JobState.STOPPING: "stops",
    }
)
"""Short reasons of jobs that hold instances, by state."""
