"""Holds what the table would hold of one pool, as plain values: snapshots are made of this alone.

It learns when a job is submitted, trains, saves or ends, never how long it is going to run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.jobs.futile_preemptions import ServedStart, SizeClass, served_by
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.account_limits import is_due
from trainmaster.core.planning.past_use import UseSums, added
from trainmaster.core.planning.queue_entries import running_entry, waiting_entry
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import (
    PreemptionReservation,
    RunningJob,
    Snapshot,
    WaitingJob,
    WarmPool,
)
from trainmaster.core.policy import Policy, PoolPolicy

from trainmaster_client.simulate.engine.capacity_over_time import CapacityOverTime
from trainmaster_client.simulate.engine.past_jobs import PastArray
from trainmaster_client.simulate.engine.pool_lessons import PoolLessons
from trainmaster_client.simulate.engine.replayed_arrays import ReplayedArrays
from trainmaster_client.simulate.engine.team_budgets import TeamBudgets
from trainmaster_client.simulate.engine.waiting_lanes import Lanes


@dataclass(slots=True, kw_only=True)
class PoolState:
    rules: PoolPolicy
    budgets: TeamBudgets
    prices: PriceTable
    spot_max_wait: timedelta
    jobs: dict[str, Job] = field(default_factory=dict)
    """Jobs that are not over, by name."""
    lanes: Lanes = field(default_factory=Lanes)
    parked: dict[str, WaitingJob] = field(default_factory=dict)
    running: dict[str, RunningJob] = field(default_factory=dict)
    arrays: ReplayedArrays = field(default_factory=ReplayedArrays)
    holds: dict[str, PreemptionReservation] = field(default_factory=dict)
    """Reservations by preemptor."""
    warm_pools: dict[str, WarmPool] = field(default_factory=dict)
    """Warm pools by training-job name."""
    lessons: PoolLessons = field(default_factory=PoolLessons)
    past_use: dict[str, UseSums] = field(default_factory=dict)
    """Use by team, of attempts that have ended."""
    used: dict[Capacity, int] = field(default_factory=dict)
    warm: dict[Capacity, int] = field(default_factory=dict)
    account_limits: dict[Capacity, AccountLimit] = field(default_factory=dict)
    last_end: dict[Capacity, datetime] = field(default_factory=dict)
    served: dict[SizeClass, ServedStart] = field(default_factory=dict)
    running_read: tuple[RunningJob, ...] | None = ()
    """Running jobs as a snapshot has them; None if they have changed since."""
    over_time: CapacityOverTime | None = None
    """Changes of ``rules`` by a calendar, reservations and plans; None: there are none."""
    version: int = 0
    """It rises with each change of what a snapshot has."""

    @classmethod
    def of(cls, rules: PoolPolicy, policy: Policy, budgets: TeamBudgets) -> "PoolState":
        """Make the state of an empty pool."""
        prices = policy.price_table
        return cls(rules=rules, budgets=budgets, prices=prices, spot_max_wait=policy.spot_max_wait)

    def follow(self, now: datetime) -> None:
        """Take over what the calendar, reservations and windows of plans have changed."""
        if self.over_time is None or self.over_time.is_as_asked(now):
            return
        rules = self.over_time.at(now)
        if rules != self.rules:
            self.rules = rules
            self.version += 1

    @property
    def is_quiet(self) -> bool:
        """Tell whether a pass would find nothing to do."""
        return not (self.lanes or self.parked or self.warm_pools or self.holds or self.arrays.has_open)

    @property
    def is_empty(self) -> bool:
        """Tell whether no job waits or runs."""
        return self.is_quiet and not self.running

    def snapshot(self, now: datetime) -> Snapshot:
        if self.running_read is None:
            self.running_read = tuple(self.running.values())
        waiting = self.lanes.heads()
        return Snapshot(
            used=dict(self.used),
            warm=dict(self.warm),
            warm_pools=tuple(self.warm_pools.values()),
            warm_histories=self.lessons.of_warm(self.warm_pools.values()),
            holds=tuple(self.holds.values()),
            waiting=waiting,
            arrays=self.arrays.all,
            due=self._due(now) if self.parked else (),
            running=self.running_read,
            account_limits=dict(self.account_limits),
            last_end=dict(self.last_end),
            served=dict(self.served),
            start_records=self.lessons.start_records,
            gone_preemptors=frozenset(preemptor for preemptor in self.holds if not self._waits(preemptor)),
            budgets=self.budgets.states(waiting, now=now) if self.budgets.limits else {},
            prices=self.prices,
            spot_max_wait=self.spot_max_wait,
            past_use=dict(self.past_use) if self.rules.order.fair_share.weight else None,
        )

    def _due(self, now: datetime) -> tuple[WaitingJob, ...]:
        """Return the jobs whose back-off is over, the first to be over first."""
        held, limits = self.held(), self.account_limits
        due = [job for job in self.parked.values() if is_due(job, held=held, limits=limits, now=now)]
        return tuple(sorted(due, key=lambda job: (job.parked_until_ms, job.name)))

    def _waits(self, name: str) -> bool:
        job = self.jobs.get(name)
        return job is not None and job.awaits_reservation

    # ---- changes, as the table takes them

    def enters(self, job: Job, array: PastArray | None = None) -> None:
        """Put a submitted job in the queue, or a task into its array, which the planner expands."""
        if array is None:
            self._put(job)
            return
        self.version += 1
        self.arrays.add(job, array)

    def withdraws_task(self, name: str) -> None:
        """End a task that is no job yet."""
        self.version += 1
        self.arrays.withdraw(name)

    def commit(self, change: Change, *, now: datetime) -> None:
        self.version += 1
        before, after = change.before, change.after
        self.arrays.follow(change)
        if before.is_live:
            self._count(self.used, before.vector, -1)
            self.last_end |= dict.fromkeys(before.vector, now)
            self.running_read = None
            if not after.is_live:
                del self.running[before.name]
        elif before.is_parked:
            del self.parked[before.name]
        else:
            self.lanes.remove(before.name)
        self._put(after)
        if change.leaves_warm is not None:
            self._keeps(change.leaves_warm)
        if change.ended is not None:
            self.lessons.note_run_time(change, change.ended, now=now)
            team = after.spec.team
            self.past_use[team] = added(self.past_use.get(team, {}), change.ended, at=now)
            self.served |= served_by(change.ended, at=now)
        self.lessons.note_warm(change, now=now)
        self.lessons.note_start(change, now=now)
        if self.budgets.limits:
            self.budgets.charge(change)

    def _put(self, job: Job) -> None:
        self.version += 1
        if job.is_final:
            self.jobs.pop(job.name, None)
            return
        self.jobs[job.name] = job
        if job.is_live:
            self.running[job.name] = running_entry(job)
            self.running_read = None
            self._count(self.used, job.vector, +1)
        elif job.is_parked:
            self.parked[job.name] = waiting_entry(job)
        else:
            self.lanes.add(waiting_entry(job))

    def changes_attempt(self, job: Job) -> None:
        """Store a live attempt that changed but holds what it held."""
        self.version += 1
        self.jobs[job.name] = job
        self.running[job.name] = running_entry(job)
        self.running_read = None

    def reuse_settled(self, name: str) -> Job:
        """Return the job, whose attempt is known to have landed in its warm pool from its first news on.

        Until then the plan counts the pool beside the attempt, as the product does.
        """
        job = self.jobs[name]
        if job.live is None or job.live.claim.reuses is None:
            return job
        settled = steps.reuse_settled(job, None).after
        self.changes_attempt(settled)
        return settled

    def _keeps(self, pool: WarmPool) -> None:
        self.version += 1
        self.warm_pools[pool.training_job_name] = pool
        self._count(self.warm, pool.vector, +1)

    def hold_of(self, preemptor: str) -> PreemptionReservation | None:
        return self.holds.get(preemptor)

    def keeps_warm(self, warm_pool: WarmPool) -> bool:
        kept = self.warm_pools.get(warm_pool.training_job_name)
        return kept is not None and not kept.releasing

    def running_tasks(self, array: str) -> int:
        return self.arrays.running(array)

    def unstarted_tasks(self, array: str) -> list[str]:
        """Return the names of the tasks of an array that have not started yet, jobs or not."""
        tasks = (job for job in self.jobs.values() if job.spec.array and job.spec.array.name == array)
        waiting = [job.name for job in tasks if job.is_waiting and not job.attempt]
        return [*waiting, *self.arrays.names(array)]

    def committed_cents(self, team: str, month: str) -> int:
        account = self.budgets.account(team, month)
        return account.spent + account.reserved

    def give_up_warm(self, pool: WarmPool, because: str) -> None:
        self.version += 1
        self.warm_pools[pool.training_job_name] = replace(pool, releasing=True, because=because)

    def extend_warm(self, pool: WarmPool, *, until: datetime) -> None:
        self.version += 1
        self.warm_pools[pool.training_job_name] = replace(pool, expires_at=until)

    def take_warm(self, pool: WarmPool, *, now: datetime) -> None:
        """Remove a warm pool: it is gone, or a start lands in it."""
        self.version += 1
        del self.warm_pools[pool.training_job_name]
        self._count(self.warm, pool.vector, -1)
        if self.budgets.limits:
            self.budgets.bill(pool, pool.bill(now))

    @staticmethod
    def _count(counter: dict[Capacity, int], vector: Vector, sign: int) -> None:
        for capacity, count in vector.items():
            counter[capacity] = counter.get(capacity, 0) + sign * count

    def held(self) -> Mapping[Capacity, int]:
        """Return the instances in use and warm."""
        both = dict(self.used)
        self._count(both, self.warm, +1)
        return both

    def fork(self, budgets: TeamBudgets) -> Self:
        """Copy the state to go its own way; values in it never change, so only containers are copied."""
        return replace(
            self,
            budgets=budgets,
            jobs=dict(self.jobs),
            arrays=self.arrays.fork(),
            lanes=self.lanes.fork(),
            parked=dict(self.parked),
            running=dict(self.running),
            holds=dict(self.holds),
            warm_pools=dict(self.warm_pools),
            lessons=self.lessons.fork(),
            past_use=dict(self.past_use),
            used=dict(self.used),
            warm=dict(self.warm),
            account_limits=dict(self.account_limits),
            last_end=dict(self.last_end),
            served=dict(self.served),
            over_time=None if self.over_time is None else self.over_time.fork(),
        )
