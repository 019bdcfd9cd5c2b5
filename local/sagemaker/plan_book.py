"""All training plans of the account, and which jobs hold how many of their instances."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from local.clock import TwinClock
from local.sagemaker.training_plans import TrainingPlan, Window
from local.wire import AwsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A training job that wants, or has, instances of a plan."""

    job: str
    plan_arn: str
    instances: int
    on_room: Callable[[], None]
    """Called without arguments when instances may have become free; only while the job waits for some."""


class PlanBook:
    """Instances go to the jobs that ask while there are enough, whoever waited longest is asked first."""

    def __init__(self, clock: TwinClock, *, arn_prefix: str) -> None:
        """Take ``arn_prefix``, the ARN of a training plan without its name."""
        self._clock = clock
        self._arn_prefix = arn_prefix
        self._lock = threading.RLock()
        self._plans: dict[str, TrainingPlan] = {}
        self._held: dict[str, Holder] = {}
        self._waiting: dict[str, Holder] = {}

    def arn_of(self, name: str) -> str:
        return self._arn_prefix + name

    def add(self, plan: TrainingPlan) -> None:
        """Add a plan. Raises AwsError if its name is taken."""
        with self._lock:
            if plan.arn in self._plans:
                raise AwsError("ResourceInUse", f"A training plan with the name {plan.name} already exists.")
            self._plans[plan.arn] = plan

    def find(self, name_or_arn: str) -> TrainingPlan | None:
        return self._plans.get(name_or_arn) or self._plans.get(self.arn_of(name_or_arn))

    def get(self, name_or_arn: str) -> TrainingPlan:
        """Return a plan. Raises AwsError if there is none."""
        plan = self.find(name_or_arn)
        if plan is None:
            raise AwsError("ResourceNotFound", f"Training plan {name_or_arn} does not exist.")
        return plan

    def all(self) -> list[TrainingPlan]:
        with self._lock:
            return list(self._plans.values())

    def update(self, name: str, change: Callable[[TrainingPlan], TrainingPlan]) -> TrainingPlan:
        """Replace a plan by what ``change`` makes of it, and let those that wait look again."""
        with self._lock:
            plan = change(self.get(name))
            self._plans[plan.arn] = plan
        self._call_waiting(plan.arn)
        return plan

    def in_use(self, arn: str) -> int:
        """Count the instances that jobs hold."""
        with self._lock:
            return sum(holder.instances for holder in self._held.values() if holder.plan_arn == arn)

    def available(self, plan: TrainingPlan, now: datetime) -> int:
        """Count the instances that a job could have now."""
        return max(plan.healthy(now) - self.in_use(plan.arn), 0)

    def take(self, holder: Holder) -> Window | None:
        """Give a job its instances for the window that is open.

        Returns None, and remembers that the job waits, if there is no window or too little in it.
        """
        now = self._clock.now()
        with self._lock:
            plan = self.get(holder.plan_arn)
            if (window := plan.usable(now)) is None or self.available(plan, now) < holder.instances:
                self._waiting.setdefault(holder.job, holder)
                return None
            self._waiting.pop(holder.job, None)
            self._held[holder.job] = holder
            return window

    def release(self, job: str) -> None:
        """Free what a job holds, and forget that it waits; other jobs look whether it is enough for them."""
        with self._lock:
            self._waiting.pop(job, None)
            freed = self._held.pop(job, None)
        if freed is not None:
            self._call_waiting(freed.plan_arn)

    def when_closed(self, holder: Holder, then: Callable[[], None]) -> None:
        """Call ``then`` when the window in which a job holds instances closes, extensions included."""
        plan, now = self.get(holder.plan_arn), self._clock.now()
        window = plan.usable(now)
        if self._held.get(holder.job) is not holder:
            return
        if window is None:
            then()
        else:
            self._clock.call_later(window.closes - now, lambda: self.when_closed(holder, then))

    def _call_waiting(self, arn: str) -> None:
        with self._lock:
            waiting = [holder for holder in self._waiting.values() if holder.plan_arn == arn]
        for holder in waiting:
            holder.on_room()
