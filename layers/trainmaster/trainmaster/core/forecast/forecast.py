"""One possible future of a pool: lengths and arrivals are drawn, ``plan()`` decides, until a job starts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from trainmaster.core.forecast.durations import START_UP, Durations, runs, saved_by, stopping, waits_again
from trainmaster.core.forecast.future_budgets import FutureBudgets
from trainmaster.core.forecast.future_queue import FutureArrays, FutureQueue
from trainmaster.core.forecast.sampling import Chance, Slots
from trainmaster.core.jobs.instances import Vector, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Plan, Start
from trainmaster.core.planning.apply import applied
from trainmaster.core.planning.candidates import HEADS
from trainmaster.core.planning.capacity import ASKED_TO_STOP, minus, take
from trainmaster.core.planning.changes import (
    ArrayEnded,
    ArrayHeld,
    ArrayTrimmed,
    GrowthAsked,
    HoldEnded,
    HoldLimited,
    HoldPlaced,
    HoldUsed,
    JobDrained,
    JobStarts,
    PoolChange,
    RoomKept,
    TasksDropped,
    TasksExpanded,
    VictimAsked,
)
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.preemption_waits import waits_over
from trainmaster.core.planning.reserved_capacity import left_for_all
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
from trainmaster.core.planning.warm_pools import reusable
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.plan_windows import PlanChange

STOPS_AFTER, STOPS_WITHIN = timedelta(seconds=60), timedelta(seconds=120)
"""Time from StopTrainingJob to the end; after 120 s the job is killed. Source: SageMaker API,
StopTrainingJob."""
FINEST, COARSENESS = timedelta(seconds=10), 0.03
"""Events within ``FINEST`` are decided on together; further off, within this share of the time until then."""
LOOKED_AT_EVERY = timedelta(minutes=1)
"""How often the scheduler is woken to see whether a warm pool is gone."""
ROUNDS = 12
"""Most passes over what starts and ends within an interval; later events count as at its end."""
PATIENCE = timedelta(days=7)
"""Time after which a future is broken off if as many jobs are ahead as at first."""
HORIZON = timedelta(days=56)
"""Horizon of estimates: twice the longest MaxRuntimeInSeconds of SageMaker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The state that every future of a pool begins with."""

    snapshot: Snapshot
    waiting: tuple[WaitingJob, ...]
    pool: PoolPolicy
    durations: Durations
    now: datetime


class Future:
    """One drawn future.

    Time goes in intervals that get longer the further off they are, so that hundreds of jobs pass in a few
    dozen passes: instances that come free within one are given away together, and start jobs when they came
    free.

    Warm pools count as free, as they are given up as soon as their capacity is needed; those that are about
    to end count as taken until a pass has seen that they are gone.
    """

    grows = False  # once more jobs come that go first than can start: then it is broken off
    looks = 0  # jobs looked at in all passes: what a future costs

    def __init__(self, outlook: Outlook, arrivals: Iterator[WaitingJob], chance: Chance) -> None:
        self._outlook = outlook
        self._chance = chance
        self._arrivals = arrivals
        self._next_arrival = next(arrivals, None)
        self._now = outlook.now
        self._since = outlook.now  # where the interval began
        self._running = {job.name: job for job in outlook.snapshot.running}
        self._used = dict(outlook.snapshot.used)
        self._holds = {hold.preemptor: hold for hold in outlook.snapshot.holds}
        self._queue = FutureQueue(outlook.waiting)
        self._arrays = FutureArrays(outlook.snapshot.arrays, outlook.snapshot.running)
        self._asked_as: dict[str, WaitingJob] = {}  # jobs that started in this future, as they waited
        self._trains: dict[str, timedelta] = {}
        """Training that each job that has started has left in its attempt, or in the next one."""
        self._stops: dict[str, int] = {}  # of each of them, as ``RunningJob.preemptions`` counts
        self._slots = Slots()
        self._budgets = FutureBudgets.of(outlook.snapshot)
        self._ends: dict[str, datetime] = {}
        for job in outlook.snapshot.running:
            self._ends[job.name] = self._holds_until(job)
        self._going = self._warm_pools_that_go()
        self._pool = outlook.pool
        changes: tuple[CapacityFrom | PlanChange, ...] = (*outlook.pool.ahead, *outlook.pool.plans_ahead)
        self._calendar = {f"~calendar~{number}": change for number, change in enumerate(changes)}
        self._ends |= {name: change.at for name, change in self._calendar.items()}
        for name, over_at in waits_over(outlook.waiting, now=outlook.now):
            self._going[f"~wait~{name}"], self._ends[f"~wait~{name}"] = {}, over_at
        self._in_time: Callable[[], bool] = lambda: True
        self._events = [(at, name) for name, at in self._ends.items()]
        heapify(self._events)

    def _extrapolated(self, before: int, left: int) -> timedelta | None:
        """Extrapolate the wait at the pace so far; None if no job ahead has started."""
        gone = before - left
        return (self._now - self._outlook.now) * (before / gone) if gone > 0 else None

    # ---- time

    def _next_interval(self) -> datetime | None:
        """Return the end of the interval that is decided together; None if no more events come."""
        firsts = [at for at, _ in self._events[:1]]
        if self._next_arrival is not None:
            firsts.append(self._next_arrival.submitted_at)
        firsts += self._budgets.changes_by_time(self._holds.values(), now=self._now)
        if not firsts:
            return None
        first = min(firsts)
        return first + max(FINEST, COARSENESS * (first - self._outlook.now))

    def _let_pass(self, upto: datetime) -> None:
        """Let everything happen until then, and start what can start."""
        changes = self._budgets.changes_by_time(self._holds.values(), now=self._now)
        self._since = max([self._now, *(at for at in changes if at <= upto)])
        self._now = upto
        self._slots.forget()
        # A start in this interval may end in it, too, and free instances for the next: plan until nothing
        # happens.
        for number in range(ROUNDS):
            if not self._happened(upto) and number:
                return
            self._decide()

    def _happened(self, upto: datetime) -> bool:
        happened = False
        while self._events and self._events[0][0] <= upto:
            at, name = heappop(self._events)
            if self._ends.get(name) == at:
                self._ended(name, max(at, self._since))
                happened = True
        while self._next_arrival is not None and self._next_arrival.submitted_at <= upto:
            self._queue.add(self._next_arrival)
            self._next_arrival = next(self._arrivals, None)
            happened = True
        return happened

    def _ended(self, name: str, at: datetime) -> None:
        del self._ends[name]
        if name in self._calendar:
            self._change_capacity(self._calendar.pop(name), at)
            return
        if name in self._going:
            self._slots.came_free(self._going.pop(name), at)
            return
        job = self._running.pop(name)
        self._budgets.ended(job, at)
        take(self._used, job.vector)
        self._slots.came_free(job.vector, at)
        self._arrays.ended(name, waits_again=job.state is JobState.PREEMPTING)
        if job.state is JobState.PREEMPTING:
            self._stops[name] = job.preemptions + 1
            self._queue.add(waits_again(job, self._asked_as.get(name)))

    def _change_capacity(self, change: CapacityFrom | PlanChange, at: datetime) -> None:
        before = left_for_all(self._pool)
        self._pool = self._pool.since(change)
        raised = minus(left_for_all(self._pool), before)
        self._slots.came_free({capacity: count for capacity, count in raised.items() if count > 0}, at)

    def _holds_until(self, job: RunningJob) -> datetime:
        """Return when a running job gives its instances back if it is not stopped."""
        now = self._outlook.now
        trains = self._outlook.durations.of_running(job, self._chance.draw(), now=now)
        self._trains[job.name] = trains
        if job.state in ASKED_TO_STOP:
            self._trains[job.name] -= saved_by(job, stopped=now)
            return now + self._stopping()
        return (job.training_since or max(job.claimed_at + START_UP, now)) + trains

    def _warm_pools_that_go(self) -> dict[str, Vector]:
        """Return the warm pools that cannot be reused, by names that no job has; each ends when next seen."""
        going: dict[str, Vector] = {}
        now = self._outlook.now
        for warm in self._outlook.snapshot.warm_pools:
            if not reusable(warm, now=now):
                name = f"~warm~{warm.training_job_name}"
                going[name] = warm.vector
                gone = now if warm.releasing else max(warm.expires_at, now)
                self._ends[name] = gone + self._chance.draw() * LOOKED_AT_EVERY
        return going

    def _stopping(self) -> timedelta:
        return STOPS_AFTER + self._chance.draw() * (STOPS_WITHIN - STOPS_AFTER)

    def _ends_at(self, name: str, at: datetime) -> None:
        self._ends[name] = at
        heappush(self._events, (at, name))

    def _snapshot(self) -> Snapshot:
        return replace(
            self._outlook.snapshot,
            used=self._used,
            warm=total(self._going.values()),
            warm_pools=(),
            holds=tuple(self._holds.values()),
            waiting=self._queue.heads(),
            arrays=self._arrays.all,
            due=(),
            running=tuple(self._running.values()),
            gone_preemptors=frozenset(self._holds.keys() - self._queue.names),
            role_starts={},  # as if AWS took every start again
            watch=None,
            budgets=self._budgets.pass_to(self._now),
        )

    # ---- what is done

    def _decide(self) -> None:
        """Plan and act until all that can start has started, or time is up."""
        while self._in_time():
            snapshot = self._snapshot()
            decided = plan(snapshot, self._pool, now=self._now)
            self.looks += len(snapshot.waiting) + len(snapshot.running)
            if self._carry_out(decided) < HEADS:
                break

    def _carry_out(self, decided: Plan) -> int:
        """Apply a plan to this future; returns how many jobs it starts."""
        changes = [change for action in decided.actions for change in applied(action)]
        for change in changes:
            if isinstance(change, JobStarts):
                self._start(change.start)
            else:
                self._take(change)
        return sum(isinstance(change, JobStarts) for change in changes)

    def _take(self, change: PoolChange) -> None:
        """Take a change over, unless a future knows nothing of its subject: warm pools, alarms, notices."""
        match change:
            case VictimAsked():
                self._ask_to_stop(change)
            case JobDrained(job=running) | GrowthAsked(job=running):
                self._drain(running)
            case HoldPlaced(hold=hold) | RoomKept(hold=hold):
                self._holds[hold.preemptor] = hold
            case HoldUsed(preemptor=preemptor) | HoldEnded(hold=PreemptionReservation(preemptor=preemptor)):
                del self._holds[preemptor]
            case HoldLimited(hold=hold, until=until):
                self._holds[hold.preemptor] = replace(hold, until=until)
            case TasksExpanded() | TasksDropped() | ArrayHeld() | ArrayEnded() | ArrayTrimmed():
                for task in self._arrays.take(change):
                    self._queue.add(task)
            case _:
                pass

    def _start(self, action: Start) -> datetime:
        job, vector = action.job, action.shape.vector
        self._arrays.started(action)
        self._queue.remove(job)
        at = self._slots.taken(vector, not_before=max(job.submitted_at, self._since))
        self._asked_as[job.name] = job
        self._budgets.started(action, at)
        take(self._used, vector, times=-1)
        stops = self._stops.get(job.name, int(job.state is JobState.PREEMPTED))
        self._running[job.name] = runs(job, action.shape, at=at, stops=stops)
        if job.name not in self._trains:
            chance = self._chance.draw()
            self._trains[job.name] = self._outlook.durations.of_waiting(job, action.shape, chance)
        self._ends_at(job.name, at + START_UP + self._trains[job.name])
        return at

    def _drain(self, job: RunningJob) -> None:
        """Stop a job for a calendar or a plan, which does not count as a preemption."""
        self._trains[job.name] -= saved_by(job, stopped=self._now)
        self._running[job.name] = replace(
            job, state=JobState.PREEMPTING, stop_sent=True, preemptions=job.preemptions - 1
        )
        self._ends_at(job.name, self._now + self._stopping())

    def _ask_to_stop(self, change: VictimAsked) -> None:
        job, victim = change.preemption.job, change.victim
        asked_from = min(job.futile.until, self._now) if job.futile else self._since
        at = max(job.submitted_at, self._since, asked_from)
        self._trains[victim.name] -= saved_by(victim, stopped=at)
        self._running[victim.name] = stopping(victim, change.preemption)
        self._ends_at(victim.name, at + self._stopping())
