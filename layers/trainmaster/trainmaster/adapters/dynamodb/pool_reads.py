"""Read one pool as a pass needs it: strongly consistent, and past every unreadable row."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.array_reads import ArrayReads
from trainmaster.adapters.dynamodb.calls import SortKeys
from trainmaster.adapters.dynamodb.codec import account_of, decode, learned_year, run_times_of
from trainmaster.adapters.dynamodb.guard import Item, described, require
from trainmaster.adapters.dynamodb.policy_store import version_of
from trainmaster.adapters.dynamodb.pool_rows import (
    Counters,
    TeamRow,
    read_counters,
    running_row,
    slot_of,
    team_row,
    warm_row,
)
from trainmaster.adapters.dynamodb.queue_reads import Candidates, QueueReads
from trainmaster.adapters.dynamodb.speed_rows import runs_in, speeds_prefix
from trainmaster.adapters.dynamodb.warm_histories import MOST_KEYS, warm_history, warm_history_key
from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.array_steps import array_parents, in_turn
from trainmaster.core.costs.ledger import budget_cents, month_of
from trainmaster.core.durations.decay import eras_read
from trainmaster.core.durations.learned_rows import LearnedRow, merged
from trainmaster.core.durations.work_speeds import MeasuredRun
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import total
from trainmaster.core.jobs.model import Job, epoch_ms
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.account_limits import LONGEST_WAIT, is_due
from trainmaster.core.planning.candidates import short_lane
from trainmaster.core.planning.past_use import UseSums
from trainmaster.core.planning.refusal_records import RoleStarts
from trainmaster.core.planning.snapshot import BudgetState, RunningJob, Snapshot, WaitingJob, WarmPool
from trainmaster.core.planning.warm_history import WarmHistory
from trainmaster.core.policy import Budget, Policy, PoolPolicy
from trainmaster.core.records import Entrance, PoolState, SetAside, TeamStanding, TeamState

MOST_OPEN_ARRAYS = 1000
"""Open arrays of a pool that one look finds by name; it reads the rows of far fewer (``in_turn``)."""
MOST_DUE = 100
"""Parked jobs that one look returns to the queue."""
MOST_MARKED_TEAMS = 2000
"""Most teams of a pool that are marked, old ones included: with names of 63 characters 138 KB of the row's
400. Further teams are counted like the others, but the loss of such a team's row would go unnoticed."""


class PoolReads(QueueReads, ArrayReads):
    """Implements SnapshotReader, and reads the state of a pool for people."""

    def snapshot(
        self,
        pool: PoolPolicy,
        *,
        policy: Policy,
        paused: bool,
        now: datetime,
        skip: frozenset[str] = frozenset(),
    ) -> Snapshot:
        """Read the pool; what it costs depends on teams, bounds and running jobs, not on the queue."""
        counters = self._counters(pool.name)
        teams = self._teams(pool.name, counters.teams)
        candidates = self._candidates(pool.name, teams, skip, now=now)
        due = self._due(pool.name, skip, counters, now=now)
        around = self._around(pool, candidates, counters, policy=policy, now=now)
        return replace(around, paused=paused, due=due, past_use=_past_use(pool, teams))

    def overview(self, pool: PoolPolicy, *, policy: Policy, paused: bool, now: datetime) -> Snapshot:
        counters = self._counters(pool.name)
        teams = self._teams(pool.name, counters.teams)
        candidates = self._candidates(pool.name, teams, frozenset(), now=None)
        due = self._due(pool.name, frozenset(), counters, now=now)
        around = self._around(pool, candidates, counters, policy=policy, now=now)
        return replace(around, paused=paused, due=due, past_use=_past_use(pool, teams))

    def _around(
        self, pool: PoolPolicy, candidates: Candidates, counters: Counters, *, policy: Policy, now: datetime
    ) -> Snapshot:
        """Build the snapshot from the candidates, and from what is free or held for them."""
        warm_pools = self._warm_pools(pool.name) if counters.warm or not counters.is_there else ()
        running = self._running(pool.name)
        return Snapshot(
            policy_version=counters.policy_version,
            goes_on_until=counters.goes_on_until,
            recount=self._recount(pool.name, counters, running, warm_pools),
            used=counters.used,
            warm=counters.warm,
            warm_pools=warm_pools,
            warm_histories=self._warm_histories(pool.name, warm_pools),
            holds=counters.holds,
            waiting=candidates.waiting,
            arrays=self._arrays(pool.name, candidates, counters, now=now),
            empty_lanes=candidates.empty,
            earlier_lanes=candidates.earlier,
            running=running,
            gone_preemptors=frozenset(
                hold.preemptor for hold in counters.holds if not self._waits(hold.preemptor)
            ),
            account_limits=counters.limits,
            role_starts=counters.roles,
            launchers=policy.launchers if counters.roles else {},
            last_end=counters.last_ends,
            served=counters.served,
            start_records=counters.start_records,
            budgets=self._budgets(policy, {entry.team for entry in candidates.waiting}, now=now),
            order_key=counters.order_key,
            prices=policy.price_table,
            spot_max_wait=policy.spot_max_wait,
            watch=policy.governing.watch,
        )

    # ---- what is in use

    def _counters(self, pool: str) -> Counters:
        return read_counters(self._rows.get(layout.counters_key(pool)), self._report)

    def _recount(
        self, pool: str, counters: Counters, running: Iterable[RunningJob], warm: Iterable[WarmPool]
    ) -> Reason | None:
        """Report counts that are missing although rows hold instances; other missing counts are 0."""
        held = {layout.used(capacity) for job in running for capacity in job.vector}
        held |= {layout.warm(capacity) for left in warm for capacity in left.vector}
        missing = sorted(held - counters.counted)
        if missing:
            key = "/".join(layout.counters_key(pool))
            why = f"{', '.join(missing)} missing while rows of the pool hold instances of the type"
            self._report(SetAside(key=key, error=why, pool=pool))
        return wait_reasons.recount(pool) if missing or counters.lost else None

    def _running(self, pool: str) -> tuple[RunningJob, ...]:
        """Read the running jobs, and slots of those whose rows only show what they hold."""
        jobs: list[RunningJob] = []
        for row in self._rows.query(layout.running_partition(pool)):
            try:
                jobs.append(running_row(row))
            except Exception as error:  # noqa: BLE001  the bulkhead: one row, its slot stays counted
                self._report(described(row, error))
                slot = slot_of(row)
                jobs += [slot] if slot else []
        return tuple(jobs)

    def _warm_pools(self, pool: str) -> tuple[WarmPool, ...]:
        return tuple(self._understood(self._rows.query(layout.warm_partition(pool)), warm_row))

    def _warm_histories(self, pool: str, warm_pools: Iterable[WarmPool]) -> dict[str, WarmHistory]:
        """Read the records of the keys that are kept warm; without one a pool is kept for waiting jobs."""
        keys = sorted({warm_history_key(pool, warm.warm_key) for warm in warm_pools})
        groups = (keys[first : first + MOST_KEYS] for first in range(0, len(keys), MOST_KEYS))
        rows = chain.from_iterable(self._rows.several(group) for group in groups)
        return dict(self._understood(rows, warm_history))

    # ---- who waits

    def _due(
        self, pool: str, skip: frozenset[str], counters: Counters, *, now: datetime
    ) -> tuple[WaitingJob, ...]:
        """Read the parked jobs that are due, now or within the account's longest back-off."""
        until = f"{epoch_ms(now + LONGEST_WAIT):015d}~"  # '~' sorts behind every name
        items = self._rows.query(layout.parked_partition(pool), SortKeys.up_to(until), page=MOST_DUE)
        held = total((counters.used, counters.warm))
        parked = self._first(items, lambda entry: entry.name not in skip, most=MOST_DUE)
        return tuple(job for job in parked if is_due(job, held=held, limits=counters.limits, now=now))

    def _waits(self, name: str) -> bool:
        """Tell whether a job may still use its reservation; that of an unreadable one is given up."""
        item = self._rows.get(layout.job_key(name))
        return any(job.awaits_reservation for job in self._understood([item] if item else [], job_row))

    def _arrays(
        self, pool: str, candidates: Candidates, counters: Counters, *, now: datetime
    ) -> tuple[Array, ...]:
        """Read the open arrays, of very many some in turns, and those whose tasks are candidates."""
        if not counters.has_arrays:
            return ()
        names = [name for _, name in self.open_arrays(pool, after="", limit=MOST_OPEN_ARRAYS)]
        tasks = (entry.array for entry in candidates.waiting if entry.array is not None)
        arrays = self.arrays((*in_turn(names, now=now), *tasks))
        parents = {name for array in arrays.values() for name, _ in array_parents(array)}
        if missing := sorted(parents - arrays.keys()):
            arrays |= self.arrays(missing)
        return tuple(arrays.values())

    # ---- money

    def _budgets(self, policy: Policy, teams: Iterable[str], *, now: datetime) -> dict[str, BudgetState]:
        """Read this month of each waiting team that has a budget."""
        budgets = {team: team_policy.budget for team in sorted(teams) if (team_policy := policy.team(team))}
        return {
            team: self._budget(team, budget, month_of(now))
            for team, budget in budgets.items()
            if budget is not None
        }

    def _budget(self, team: str, budget: Budget, month: str) -> BudgetState:
        item = self._rows.get(layout.month_key(team, month)) or {}
        return BudgetState(
            month=month,
            account=account_of(item),
            limit_cents=budget_cents(budget.usd_per_month),
            at_limit=budget.at_limit,
            warned=item.get(layout.WARNED, False),
        )

    # ---- for people, and before a submission

    def pool_state(self, pool: str) -> PoolState:
        counters = self._counters(pool)
        teams = {
            row.name: TeamState(used=row.used, waiting=row.waiting, queued=row.queued, past_use=row.past_use)
            for row in self._teams(pool, counters.teams)
        }
        warm_pools = self._warm_pools(pool) if counters.warm or not counters.is_there else ()
        running = self._running(pool)
        return PoolState(
            used=counters.used,
            teams=teams,
            warm=counters.warm,
            warm_pools=warm_pools,
            warm_histories=self._warm_histories(pool, warm_pools),
            account_limits=counters.limits,
            role_starts=counters.roles,
            last_end=counters.last_ends,
            order_key=counters.order_key,
            recount=self._recount(pool, counters, running, warm_pools),
            running=running,
        )

    def role_starts(self, pool: str) -> Mapping[str, RoleStarts]:
        return self._counters(pool).roles

    def entrance(self, pool: str, team: str, lane: str, *, learned: Sequence[str], now: datetime) -> Entrance:
        keys = (
            layout.POLICY_KEY,
            layout.team_key(pool, team),
            layout.run_times_key(pool, team, short_lane(lane)),
        )
        kinds = [[layout.learned_key(pool, team, key, era) for era in eras_read(now)] for key in learned]
        rows = {(row["pk"], row["sk"]): row for row in self._rows.several((*keys, *chain(*kinds)))}
        policy, counted, times = (rows.get(key) for key in keys)
        known = self._understood([times] if times else [], run_times_of)
        return Entrance(
            policy_version=version_of(policy) if policy else 0,
            standing=self._standing(pool, team, counted),
            predicted=next((run_times.predicted for run_times in known), None),
            learned=tuple(self._learned([rows[key] for key in kind if key in rows]) for kind in kinds),
        )

    def _learned(self, items: Sequence[Item]) -> LearnedRow | None:
        """Merge what was learned about one kind of jobs; an item that cannot be understood is left out."""
        years = list(self._understood(items, learned_year))
        return merged(years) if years else None

    def work_speeds(self, pool: str, team: str, work_kind: str) -> tuple[MeasuredRun, ...]:
        partition, prefix = speeds_prefix(pool, team, work_kind)
        return tuple(runs_in(self._rows.query(partition, SortKeys.beginning(prefix)), work_kind))

    def entries_before(self, pool: str, rank: tuple[int, str], *, most: int) -> int:
        before = SortKeys.before(layout.rank_text(*rank))
        return self._rows.count(layout.order_partition(pool), before, most=most)

    def _standing(self, pool: str, team: str, item: Item | None) -> TeamStanding:
        rows = list(self._understood([item] if item else [], team_row))
        if item is not None and not rows:
            return TeamStanding.LOST
        if rows and rows[0].is_counted:
            return TeamStanding.COUNTED
        marked = self._counters(pool).teams
        if team in marked:
            return TeamStanding.COUNTED if self._is_counted(pool, team) else TeamStanding.LOST
        if not rows and self._is_named(pool, team):
            return TeamStanding.LOST
        return TeamStanding.NEW if len(marked) < MOST_MARKED_TEAMS else TeamStanding.COUNTED

    def _is_counted(self, pool: str, team: str) -> bool:
        """Read the team's row again: a first job that is submitted meanwhile writes row and mark together."""
        item = self._rows.get(layout.team_key(pool, team))
        return any(row.is_counted for row in self._understood([item] if item else [], team_row))

    def _is_named(self, pool: str, team: str) -> bool:
        """Tell whether a live or parked job of the pool is the team's, though the pool does not count it."""
        live = self._rows.query(layout.running_partition(pool))
        parked = self._rows.query(layout.parked_partition(pool))
        return any(row.get("team") == team for rows in (live, parked) for row in rows)


def _past_use(pool: PoolPolicy, teams: Iterable[TeamRow]) -> dict[str, UseSums] | None:
    return {row.name: row.past_use for row in teams} if pool.order.fair_share.weight else None


def job_row(item: Item) -> Job:
    require("ver" in item, "it has no ver")  # every write is conditional on it
    job = decode(Job, item)
    require(item["pk"] == layout.job_key(job.name)[0], f"it is job {job.name}")
    return job
