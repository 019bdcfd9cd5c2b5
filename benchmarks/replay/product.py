"""The product in one pool: its planner decides, and its plan is carried out as ``execute`` does."""

import time
from dataclasses import replace
from datetime import timedelta
from typing import assert_never

from trainmaster.core.planning import planner
from trainmaster.core.planning.actions import (
    Action,
    EndReservation,
    KeepWarm,
    LimitReservation,
    Plan,
    Preempt,
    ReleaseWarm,
    SettleWarm,
    Start,
    Stop,
    Unpark,
    WarnOfBudget,
    WatchGpus,
)
from trainmaster.core.planning.snapshot import PreemptionReservation, WarmPool
from trainmaster.core.policy import PoolPolicy

from benchmarks.replay.pool_table import PoolTable, instant
from benchmarks.replay.site import Attempt, Site, Task
from benchmarks.replay.waits import Questions

WAKE_EVERY_S = 60
"""``reconcile`` sends wake-ups for every pool each minute."""
LOOK_EVERY_S = 300
"""``reconcile`` looks for new checkpoints so often, in pools where jobs wait."""

MOST_LOOKS = 1000
"""At one instant; a planner that still finds something to do goes round in circles."""


class Product:
    """Decides for one pool."""

    def __init__(self, site: Site, rules: PoolPolicy, *, questions: Questions | None = None) -> None:
        self.passes = 0
        self.cpu_s = 0.0
        """Of snapshots and plans."""
        self.most_held = 0
        """Instances in use and warm at one instant."""
        self.idle_warm_s = 0
        """Instance-seconds that warm pools kept without a job."""
        self.refused_claims = 0
        """Starts whose condition did not hold when they were carried out."""
        self.table = PoolTable(rules)
        self._rules = rules
        self._site = site
        self._questions = questions
        self._new: list[str] = []
        """Submitted since the last pass."""
        (self._capacity,) = rules.capacity.values()
        self._tasks: dict[str, Task] = {}
        self._live: dict[str, Attempt] = {}
        self._wakes_at: int | None = None
        self._looked_s = 0

    # ---- what happens

    def submitted(self, task: Task) -> None:
        self._tasks[task.job.job_id] = task
        self.table.submitted(task.job, now=instant(self._site.now))
        self._new.append(task.job.job_id)

    def trains(self, attempt: Attempt) -> None:
        self.table.trains(attempt.task.job.job_id, now=instant(self._site.now))

    def ended(self, attempt: Attempt, *, completed: bool) -> None:
        name, now = attempt.task.job.job_id, instant(self._site.now)
        del self._live[name]
        if completed:
            del self._tasks[name]
            self.table.completed(name, now=now)
        else:
            self.table.preempted(name, now=now)

    def woken(self) -> None:
        self._wakes_at = None
        if len(self.table.lanes) and self._site.now - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = self._site.now
            self._look_for_checkpoints()

    def _look_for_checkpoints(self) -> None:
        now = self._site.now
        for name, attempt in self._live.items():
            every = attempt.task.job.checkpoint_every_s
            if every is None or attempt.stopped_s is not None:
                continue
            saves = attempt.trained_s(now) // every
            if saves:
                self.table.saved(name, instant(attempt.train_s + saves * every))

    # ---- what is done

    def decide(self) -> None:
        """Plan and carry out until a plan has nothing in it that can be done, as a pass of the product."""
        looks = 1
        while self._carry_out(self._plan()):
            looks += 1
            assert looks < MOST_LOOKS, f"the planner comes to no end at second {self._site.now}"
        self._ask()
        waits = len(self.table.lanes) or self.table.warm_pools or self.table.holds
        if waits and self._wakes_at is None:
            self._wakes_at = (self._site.now // WAKE_EVERY_S + 1) * WAKE_EVERY_S
            self._site.wake_at(self._wakes_at)

    def _ask(self) -> None:
        """When jobs that have just been submitted will start, of those that still wait."""
        for name in self._new:
            if self._questions is not None and name in self.table.lanes:
                self._questions.submitted(name, self.table, second=self._site.now)
        self._new.clear()

    def _plan(self) -> Plan:
        began = time.process_time()
        found = planner.plan(self.table.snapshot(), self._rules, now=instant(self._site.now))
        self.cpu_s += time.process_time() - began
        self.passes += 1
        return found

    def _carry_out(self, plan: Plan) -> bool:
        """True when something was done."""
        done = [self._do(action) for action in plan.actions]
        return any(done)

    def _do(self, action: Action) -> bool:
        match action:
            case Start():
                return self._start(action)
            case Preempt():
                self._preempt(action)
            case EndReservation(hold=hold):
                del self.table.holds[hold.preemptor]
            case LimitReservation(hold=hold, until=until):
                self.table.holds[hold.preemptor] = replace(hold, until=until)
            case KeepWarm() | ReleaseWarm() | SettleWarm():
                return self._do_warm(action)
            case Stop() | Unpark() | WarnOfBudget() | WatchGpus():
                raise AssertionError(f"nobody cancels, backs off, has a budget or is watched here: {action}")
            case _:
                assert_never(action)
        return True

    def _do_warm(self, action: KeepWarm | ReleaseWarm | SettleWarm) -> bool:
        """SageMaker does at once what it is asked, and gives a warm pool up when its time is over."""
        pool = action.warm_pool
        match action:
            case KeepWarm(until=until):
                self.table.warm_pools[pool.training_job_name] = replace(pool, expires_at=until)
            case SettleWarm() if pool.expires_at > instant(self._site.now):
                return False
            case _:
                self._take_warm(pool)
        return True

    def _take_warm(self, pool: WarmPool) -> None:
        """It goes, or a start lands in it."""
        idle = instant(self._site.now) - pool.since
        self.idle_warm_s += self.table.count(pool.vector) * (idle // timedelta(seconds=1))
        del self.table.warm_pools[pool.training_job_name]

    def _start(self, action: Start) -> bool:
        """Under the condition of a claim: the counters are what the planner reckoned with."""
        table, job = self.table, action.job
        (room,), (warm,) = action.most_used.values(), action.warm.values()
        if table.used > room or table.warm != warm:
            self.refused_claims += 1
            return False
        if action.reuses is not None:
            self._take_warm(action.reuses)
        if action.ends_hold:
            del table.holds[job.name]
        table.claimed(job, action.charge, now=instant(self._site.now))
        self.most_held = max(self.most_held, table.used + table.warm)
        assert table.used + table.warm <= self._capacity, f"{job.name} does not fit"
        self._live[job.name] = self._site.start(self._tasks[job.name], warm=action.reuses is not None)
        return True

    def _preempt(self, action: Preempt) -> None:
        for victim in action.victims:
            self.table.preempting(victim.name)
            self._site.stop(self._live[victim.name])
        names = tuple(victim.name for victim in action.victims)
        self.table.holds[action.job.name] = PreemptionReservation(
            preemptor=action.job.name, vector=action.shape.vector, victims=names
        )
