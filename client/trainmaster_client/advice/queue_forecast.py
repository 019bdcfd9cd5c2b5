"""Forecasts when a queue for one instance type is empty, with and without the windows of a training plan.

Jobs start in their order wherever they fit, as in a queue with backfill; teams, quotas and preemptions are
left out. Pure: instants and lengths of time in, instants and hours out.
"""

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster_client.simulate.engine.assumptions import COLD_START

CLOSING = timedelta(minutes=30)
"""Time before the end of a window in which SageMaker ends its instances (training plans guide)."""
DRAIN = timedelta(minutes=10)
"""Time that the queue stops jobs before that, by default."""
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """A job that waits or runs."""

    name: str
    instances: int
    needs: timedelta
    """Training that is left, as far as it is known."""
    saves: bool
    """Whether it can be stopped without losing its work."""
    is_running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWindow:
    begin: datetime
    end: datetime

    @property
    def drained(self) -> datetime:
        """Return when the queue stops what still runs in the window."""
        return max(self.begin, self.end - CLOSING - DRAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    empty_at: datetime
    """When the last job has ended that can run at all; now if there is none."""
    plan_hours: float
    """Instance-hours on the plan, start-up included."""
    stranded: tuple[str, ...]
    """Names of jobs that never get enough instances at once."""


@dataclass(order=True, slots=True)
class _Run:
    ends_at: datetime
    number: int
    job: LiveJob = field(compare=False)
    needs: timedelta = field(compare=False)
    on_plan: bool = field(compare=False)
    began: datetime = field(compare=False)
    start_up: timedelta = field(compare=False)


def forecast(
    jobs: Sequence[LiveJob],
    *,
    capacity: int,
    now: datetime,
    windows: Sequence[PlanWindow] = (),
    plan_instances: int = 0,
) -> Forecast:
    """Follow the queue until nothing runs any more.

    Args:
        jobs: In the order of the queue; those that run hold instances of ``capacity``.
        capacity: Instances of the pools on demand.
        now: Instant at which ``jobs`` were read.
        windows: Of a plan, in the order of time.
        plan_instances: Instances of that plan.
    """
    course = _Course(capacity=capacity, plan_instances=plan_instances, now=now)
    for job in jobs:
        if job.is_running:
            course.begin(job, job.needs, on_plan=False, start_up=timedelta())
        else:
            course.waiting.append((job, job.needs))
    changes = sorted({instant for window in windows for instant in (window.begin, window.drained)})
    while True:
        course.start(
            next((window for window in windows if window.begin <= course.now < window.drained), None)
        )
        ahead = [change for change in changes if change > course.now] if course.waiting else []
        ahead += [change for change in changes if change > course.now and course.has_plan_runs]
        ahead += [run.ends_at for run in course.running]
        if not ahead:
            break
        course.advance(min(ahead))
        if any(window.drained == course.now for window in windows):
            course.drain()
    return Forecast(
        empty_at=course.last_end,
        plan_hours=course.plan_time / _HOUR,
        stranded=tuple(job.name for job, _ in course.waiting),
    )


class _Course:
    """The state of the queue at one instant of the forecast."""

    def __init__(self, *, capacity: int, plan_instances: int, now: datetime) -> None:
        self.now = now
        self.last_end = now
        self.plan_time = timedelta()
        self.waiting: list[tuple[LiveJob, timedelta]] = []
        self.running: list[_Run] = []
        self._free = capacity
        self._free_on_plan = plan_instances
        self._numbers = itertools.count()

    @property
    def has_plan_runs(self) -> bool:
        return any(run.on_plan for run in self.running)

    def start(self, window: PlanWindow | None) -> None:
        """Start what fits, in order: on the plan first, where its window is open."""
        left = []
        for job, needs in self.waiting:
            if window is not None and self._suits(job, needs, window):
                self.begin(job, needs, on_plan=True)
            elif job.instances <= self._free:
                self.begin(job, needs, on_plan=False)
            else:
                left.append((job, needs))
        self.waiting = left

    def begin(
        self, job: LiveJob, needs: timedelta, *, on_plan: bool, start_up: timedelta = COLD_START
    ) -> None:
        if on_plan:
            self._free_on_plan -= job.instances
        else:
            self._free -= job.instances
        run = _Run(
            ends_at=self.now + start_up + needs,
            number=next(self._numbers),
            job=job,
            needs=needs,
            on_plan=on_plan,
            began=self.now,
            start_up=start_up,
        )
        heapq.heappush(self.running, run)

    def advance(self, instant: datetime) -> None:
        """Move to an instant, and end what ends until then."""
        self.now = instant
        while self.running and self.running[0].ends_at <= instant:
            run = heapq.heappop(self.running)
            self._free_instances(run, run.ends_at)
            self.last_end = max(self.last_end, run.ends_at)

    def drain(self) -> None:
        """Stop what runs on the plan; it waits in front, with what it saved."""
        stopped = sorted(run for run in self.running if run.on_plan)
        self.running = [run for run in self.running if not run.on_plan]
        heapq.heapify(self.running)
        for run in stopped:
            self._free_instances(run, self.now)
        rest = [(run.job, self._left(run)) for run in stopped]
        self.waiting = [*rest, *self.waiting]

    def _left(self, run: _Run) -> timedelta:
        trained = max(self.now - run.began - run.start_up, timedelta())
        return run.needs - trained if run.job.saves else run.needs

    def _suits(self, job: LiveJob, needs: timedelta, window: PlanWindow) -> bool:
        """Tell whether a job fits on the plan now, and loses no work when the window closes."""
        is_safe = job.saves or self.now + COLD_START + needs <= window.drained
        return is_safe and job.instances <= self._free_on_plan

    def _free_instances(self, run: _Run, until: datetime) -> None:
        if run.on_plan:
            self._free_on_plan += run.job.instances
            self.plan_time += (until - run.began) * run.job.instances
        else:
            self._free += run.job.instances
