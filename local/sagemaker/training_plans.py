"""A training plan: instances bought for windows of time, and what the clock makes of it.

Source: SageMaker developer guide, "Training plans utilization for SageMaker training jobs" (the last 30
minutes of a window, two days without capacity) and "View training plan details" (statuses);
API reference, StoppingCondition (which pending time counts).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

CLOSING = timedelta(minutes=30)
"""Time before the end of a window from which SageMaker ends the instances."""
LONGEST_PENDING = timedelta(days=2)
"""Time in an Active plan after which SageMaker ends a job that got no instances."""
MOST_WINDOWS = 5
"""Source: SageMaker service model, ReservedCapacitySummaries."""


class PlanStatus(StrEnum):
    PENDING = "Pending"
    SCHEDULED = "Scheduled"
    ACTIVE = "Active"
    EXPIRED = "Expired"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A reserved capacity: from its begin to its end, which is no longer in it."""

    begin: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.begin

    @property
    def closes(self) -> datetime:
        """Return the instant at which running instances are ended, which is never before the begin."""
        return max(self.begin, self.end - CLOSING)

    def status(self, now: datetime) -> PlanStatus:
        if now < self.begin:
            return PlanStatus.SCHEDULED
        return PlanStatus.ACTIVE if now < self.end else PlanStatus.EXPIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    name: str
    arn: str
    instance_type: str
    instances: int
    windows: tuple[Window, ...]
    """At least one, in the order of time, none before another's end."""
    fee_usd: float
    paid_at: datetime
    """When the purchase is complete; the plan is Pending before."""
    unhealthy: int = 0
    """Instances that are broken and not replaced yet."""
    failure: str | None = None
    """Why the purchase failed; None if it did not."""

    @property
    def begin(self) -> datetime:
        return self.windows[0].begin

    @property
    def end(self) -> datetime:
        return self.windows[-1].end

    def status(self, now: datetime) -> PlanStatus:
        """Return the status; between two windows a plan is Scheduled again."""
        if self.failure is not None:
            return PlanStatus.FAILED
        if now < self.paid_at:
            return PlanStatus.PENDING
        if now >= self.end:
            return PlanStatus.EXPIRED
        return PlanStatus.ACTIVE if self._window(now) is not None else PlanStatus.SCHEDULED

    def usable(self, now: datetime) -> Window | None:
        """Return the window in which instances can be started now; None if there is none."""
        window = self._window(now)
        return window if window is not None and self._is_bought(now) and now < window.closes else None

    def healthy(self, now: datetime) -> int:
        """Count the instances that run or can be started now, used or not."""
        return max(self.instances - self.unhealthy, 0) if self.usable(now) is not None else 0

    def opens_after(self, now: datetime) -> datetime | None:
        """Return when the next window begins; None after the last one has begun."""
        return next((window.begin for window in self.windows if window.begin > now), None)

    def extended_to(self, end: datetime) -> "TrainingPlan":
        """Return the plan with a later end of its last window; what runs there goes on."""
        *before, last = self.windows
        return replace(self, windows=(*before, replace(last, end=end)))

    def _window(self, now: datetime) -> Window | None:
        return next((window for window in self.windows if window.begin <= now < window.end), None)

    def _is_bought(self, now: datetime) -> bool:
        return self.failure is None and now >= self.paid_at


def active_until(windows: Sequence[Window], since: datetime, patience: timedelta) -> datetime | None:
    """Return when that much time of windows has passed since an instant; None if there is not so much.

    Only this time counts as waiting: neither that before the first window nor that between two.
    """
    left = patience
    for window in windows:
        begin = max(window.begin, since)
        if begin >= window.end:
            continue
        if left <= window.end - begin:
            return begin + left
        left -= window.end - begin
    return None
