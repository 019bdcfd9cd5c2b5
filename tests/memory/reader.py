"""Every read of the table over ``Tables``."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from trainmaster.adapters.dynamodb.layout import rank_text
from trainmaster.core.costs.ledger import (
    Cause,
    MonthAccount,
    PreemptionEntry,
    UsageLine,
    budget_cents,
    month_of,
)
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.durations.traits import learned_key
from trainmaster.core.durations.work_speeds import LATEST, MeasuredRun, read_run
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import Capacity, total
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.planning.account_limits import is_due
from trainmaster.core.planning.candidates import (
    FIRST,
    HEADS,
    lane,
    lanes_to_read,
    order_to_read,
    teams_to_read,
)
from trainmaster.core.planning.fair_share import shifted
from trainmaster.core.planning.queue_entries import running_entry, waiting_entry
from trainmaster.core.planning.refusal_records import RoleStarts
from trainmaster.core.planning.snapshot import BudgetState, LaneRow, RunningJob, Snapshot, WaitingJob
from trainmaster.core.planning.warm_history import WarmHistory
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.records import Alias, Entrance, HistoryLine, PoolState, TeamStanding, TeamState
from trainmaster.core.rules.violation import ViolationRecord

from tests.memory.arrays import MemoryArrayReads
from tests.memory.dependencies import MemoryDependentReads
from tests.memory.history import MemoryHistoryReader
from tests.memory.tables import Month, PoolRows, Tables, Usage

HISTORY_LINES = 200
MOST_RUN_TIMES = 250
MOST_DUE = 100


class MemoryReader(MemoryHistoryReader, MemoryDependentReads, MemoryArrayReads):
    """JobReader, SnapshotReader, QueueReader, LedgerReader, PoolReader and HistoryReader."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    # ---- single jobs

    def job(self, name: str) -> Job | None:
        return self._tables.jobs.get(name)

    def alias(self, training_job_name: str) -> Alias | None:
        return self._tables.aliases.get(training_job_name)

    def request(self, name: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self._tables.requests[name])
        return body

    def to_start(self, names: Iterable[str]) -> dict[str, tuple[Job, dict[str, Any]]]:
        jobs = {name: self.job(name) for name in names}
        return {name: (job, self.request(name)) for name, job in jobs.items() if job is not None}

    def story(self, job: Job) -> tuple[tuple[Attempt, ...], tuple[HistoryLine, ...]]:
        entry = job.spec.entry_id
        attempts = sorted(number for one, number in self._tables.attempts if one == entry)
        lines = tuple(self._tables.lines[entry][-HISTORY_LINES:])
        return tuple(self._tables.attempts[entry, number] for number in attempts), lines

    def violation(self, training_job_name: str, *, at: datetime) -> ViolationRecord | None:
        return self._tables.violations.get((at, training_job_name))

    def violations(
        self, month: str, *, after: tuple[str, str] | None, limit: int
    ) -> tuple[ViolationRecord, ...]:
        rows = sorted((_iso(at), name, one) for (at, name), one in self._tables.violations.items())
        behind = (one for at, name, one in rows if after is None or (at, name) > after)
        return tuple(islice((one for one in behind if month_of(one.at) == month), limit))

    # ---- a pass

    def snapshot(
        self,
        pool: PoolPolicy,
        *,
        policy: Policy,
        paused: bool,
        now: datetime,
        skip: frozenset[str] = frozenset(),
    ) -> Snapshot:
        waiting = self._candidates(pool.name, skip, now=now)
        return self._around(pool, waiting, policy, paused=paused, now=now)

    def overview(self, pool: PoolPolicy, *, policy: Policy, paused: bool, now: datetime) -> Snapshot:
        waiting = self._candidates(pool.name, frozenset(), now=None)
        return self._around(pool, waiting, policy, paused=paused, now=now)

    def _around(
        self,
        pool: PoolPolicy,
        waiting: tuple[WaitingJob, ...],
        policy: Policy,
        *,
        paused: bool,
        now: datetime,
    ) -> Snapshot:
        rows = self._tables.pools[pool.name]
        return Snapshot(
            paused=paused,
            policy_version=rows.policy_version,
            goes_on_until=rows.goes_on_until,
            used=_some(rows.used),
            warm=_some(rows.warm),
            warm_pools=tuple(rows.warm_pools[name] for name in sorted(rows.warm_pools)),
            warm_histories=_kept_histories(rows),
            holds=tuple(rows.holds.values()),
            waiting=waiting,
            arrays=self._pool_arrays(pool.name),
            due=self._due(pool.name, now=now),
            running=tuple(sorted(self._running(pool.name), key=lambda one: one.name)),
            gone_preemptors=frozenset(name for name in rows.holds if not self._waits(name)),
            account_limits=dict(rows.limits),
            role_starts=dict(rows.role_starts),
            launchers=policy.launchers if rows.role_starts else {},
            last_end=dict(rows.last_end),
            served=dict(rows.served),
            start_records=rows.start_records,
            budgets=self._budgets(policy, {entry.team for entry in waiting}, now=now),
            prices=policy.price_table,
            order_key=rows.order_key,
            spot_max_wait=policy.spot_max_wait,
            watch=policy.governing.watch,
            past_use=dict(rows.past_use) if pool.order.fair_share.weight else None,
        )

    def _candidates(self, pool: str, skip: frozenset[str], *, now: datetime | None) -> tuple[WaitingJob, ...]:
        """``now``: None leaves out the lanes that nobody speaks for."""
        everybody = self._in_turn(pool)
        order = [entry for entry in everybody if entry.name not in skip]
        found = {entry.name: entry for entry in order[:FIRST]}
        queued = Counter(entry.team for entry in everybody)
        teams = teams_to_read(found.values(), queued)
        if order_to_read(teams, queued):
            found = {entry.name: entry for entry in order}
            teams = teams_to_read(found.values(), queued)
        for team in teams:
            own = (entry for entry in order if entry.team == team)
            found |= {entry.name: entry for entry in islice(own, HEADS)}
        lanes: dict[tuple[str, str], list[WaitingJob]] = {}
        for entry in order:
            lanes.setdefault((entry.team, lane(entry.shapes, entry.choice)), []).append(entry)
        known = [
            LaneRow(team=team, text=text, head=rank_text(*lanes[team, text][0].rank)) for team, text in lanes
        ]
        for read in lanes_to_read(known, tuple(found.values()), now=now) if now else ():
            behind = (
                entry
                for entry in lanes[read.lane.team, read.lane.text]
                if read.after is None or entry.rank > read.after
            )
            found |= {entry.name: entry for entry in islice(behind, read.most)}
        return tuple(found.values())

    def _in_turn(self, pool: str) -> list[WaitingJob]:
        entries = (waiting_entry(job) for job in self._of(pool) if job.is_waiting and not job.is_parked)
        return sorted(entries, key=lambda one: one.rank)

    def _due(self, pool: str, *, now: datetime) -> tuple[WaitingJob, ...]:
        rows = self._tables.pools[pool]
        held = total((rows.used, rows.warm))
        found = [
            entry for entry in self._parked(pool) if is_due(entry, held=held, limits=rows.limits, now=now)
        ]
        return tuple(found[:MOST_DUE])

    def _waits(self, name: str) -> bool:
        job = self._tables.jobs.get(name)
        return job is not None and job.awaits_reservation

    def _budgets(self, policy: Policy, teams: Iterable[str], *, now: datetime) -> dict[str, BudgetState]:
        month = month_of(now)
        found: dict[str, BudgetState] = {}
        for name in sorted(teams):
            team = policy.team(name)
            if team is not None and team.budget is not None:
                found[name] = BudgetState(
                    month=month,
                    account=self.month(name, month),
                    limit_cents=budget_cents(team.budget.usd_per_month),
                    at_limit=team.budget.at_limit,
                    warned=self._tables.months.get((name, month), Month()).warned,
                )
        return found

    # ---- money

    def month(self, team: str, month: str) -> MonthAccount:
        found = self._tables.months.get((team, month), Month())
        return MonthAccount(spent=found.spent, reserved=found.committed - found.spent)

    def usage(self, team: str, month: str) -> tuple[tuple[UsageLine, ...], tuple[PreemptionEntry, ...]]:
        found = self._tables.months.get((team, month), Month())
        lines = tuple(_usage_line(name, found.jobs[name]) for name in sorted(found.jobs))
        return lines, tuple(sorted(found.takings, key=lambda one: (one.at, one.victim)))

    def spot_days(self, instance_type: str) -> tuple[SpotDay, ...]:
        days = self._tables.spot_days
        return tuple(days[key] for key in sorted(days) if key[0] == instance_type)

    # ---- lists for people

    def queue_length(self, pool: str) -> int:
        return sum(job.is_waiting and not job.is_parked for job in self._of(pool))

    def run_times(self, pool: str, lanes: Iterable[tuple[str, str]]) -> dict[tuple[str, str], RunTimes]:
        known = self._tables.pools[pool].run_times
        first = sorted(known, key="#".join)[:MOST_RUN_TIMES]
        return {key: known[key] for key in dict.fromkeys((*first, *lanes)) if key in known}

    def waiting(
        self,
        pool: str,
        *,
        after: tuple[int, str] | None,
        limit: int,
        shifts: Mapping[str, int] | None = None,
    ) -> tuple[WaitingJob, ...]:
        entries = self._in_turn(pool)
        if shifts:
            entries = sorted((shifted(entry, shifts) for entry in entries), key=lambda one: one.rank)
        behind = (entry for entry in entries if after is None or entry.rank > after)
        return tuple(islice(behind, limit))

    def parked(self, pool: str, *, after: tuple[int, str] | None, limit: int) -> tuple[WaitingJob, ...]:
        entries = self._parked(pool)
        behind = [one for one in entries if after is None or (one.parked_until_ms, one.name) > after]
        return tuple(behind[:limit])

    def _parked(self, pool: str) -> list[WaitingJob]:
        entries = [waiting_entry(job) for job in self._of(pool) if job.is_parked]
        return sorted(entries, key=lambda one: (one.parked_until_ms, one.name))

    def running(self, pool: str) -> tuple[RunningJob, ...]:
        return tuple(
            sorted(self._running(pool), key=lambda one: (-one.priority, one.claimed_at, one.name)),
        )

    def _running(self, pool: str) -> list[RunningJob]:
        return [running_entry(job) for job in self._of(pool) if job.is_live]

    def finished(
        self, team: str, *, state: JobState, after: tuple[str, str] | None, limit: int
    ) -> tuple[tuple[str, str], ...]:
        found = sorted(
            (_iso(job.ended_at), job.name)
            for job in self._tables.jobs.values()
            if job.state is state and job.spec.team == team and job.ended_at is not None
        )
        newest = sorted(found, key=lambda one: one[0], reverse=True)  # stable: ties stay in order of names
        return tuple(one for one in newest if after is None or _is_behind(one, after))[:limit]

    # ---- pools

    def jobs(self, names: Iterable[str]) -> dict[str, Job]:
        return {name: self._tables.jobs[name] for name in names if name in self._tables.jobs}

    def changed_since(self, names: Iterable[str], since: datetime) -> dict[str, Job]:
        changed = self._tables.changed_at
        return {
            name: job
            for name, job in self.jobs(names).items()
            if name not in changed or changed[name] >= since
        }

    def pool_state(self, pool: str) -> PoolState:
        rows = self._tables.pools[pool]
        jobs = self._of(pool)
        teams = {
            team: TeamState(
                used=total(job.vector for job in jobs if job.is_live and job.spec.team == team),
                waiting=sum(not job.is_live and not job.is_final for job in jobs if job.spec.team == team),
                queued=sum(job.is_waiting and not job.is_parked for job in jobs if job.spec.team == team),
                past_use=dict(rows.past_use.get(team, {})),
            )
            for team in sorted({job.spec.team for job in jobs})
        }
        return PoolState(
            used=_some(rows.used),
            teams=teams,
            warm=_some(rows.warm),
            warm_pools=tuple(rows.warm_pools[name] for name in sorted(rows.warm_pools)),
            warm_histories=_kept_histories(rows),
            account_limits=dict(rows.limits),
            role_starts=dict(rows.role_starts),
            last_end=dict(rows.last_end),
            order_key=rows.order_key,
            running=tuple(sorted(self._running(pool), key=lambda one: one.name)),
        )

    def role_starts(self, pool: str) -> dict[str, RoleStarts]:
        return dict(self._tables.pools[pool].role_starts)

    def entrance(self, pool: str, team: str, lane: str, *, learned: Sequence[str], now: datetime) -> Entrance:
        """What a team has is computed, so it is always counted."""
        rows = self._tables.pools[pool]
        times = rows.run_times.get((team, lane))
        found = [rows.learned.get(learned_key(team, key)) for key in learned]
        return Entrance(
            policy_version=self._tables.policy.version,
            standing=TeamStanding.COUNTED,
            predicted=None if times is None else times.predicted,
            learned=tuple(row.read(now) if row else None for row in found),
        )

    def work_speeds(self, pool: str, team: str, work_kind: str) -> tuple[MeasuredRun, ...]:
        kept = [
            read_run(work_kind, text)
            for (whose, _), texts in sorted(self._tables.pools[pool].speeds.items())
            if whose == team
            for text in texts[:LATEST]
        ]
        return tuple(run for run in kept if run is not None)

    def warm_histories(self, pool: str) -> dict[str, WarmHistory]:
        return dict(self._tables.pools[pool].warm_histories)

    def entries_before(self, pool: str, rank: tuple[int, str], *, most: int) -> int:
        return min(most, sum(entry.rank < rank for entry in self._in_turn(pool)))

    def _of(self, pool: str) -> list[Job]:
        return [job for job in self._tables.jobs.values() if job.spec.pool == pool]


def _some(counts: dict[Capacity, int]) -> dict[Capacity, int]:
    return {capacity: count for capacity, count in counts.items() if count}


def _kept_histories(rows: PoolRows) -> dict[str, WarmHistory]:
    keys = {warm.warm_key for warm in rows.warm_pools.values()}
    return {key: rows.warm_histories[key] for key in sorted(keys) if key in rows.warm_histories}


def _usage_line(name: str, usage: Usage) -> UsageLine:
    by = {Cause(cause): cents for cause, cents in usage.by.items()}
    cents = None if usage.unpriced else sum(by.values())
    return UsageLine(
        job=name,
        instance_seconds=usage.instance_seconds,
        cents=cents,
        by=by,
        saved_cents=usage.saved,
        warm_saved_cents=usage.warm_saved,
    )


def _iso(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds")


def _is_behind(one: tuple[str, str], after: tuple[str, str]) -> bool:
    return one[0] < after[0] or (one[0] == after[0] and one[1] > after[1])
