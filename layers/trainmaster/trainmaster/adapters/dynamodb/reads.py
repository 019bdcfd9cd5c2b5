"""Every read of the table, strongly consistent but for the index of finished jobs."""

import gzip
import heapq
import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.calls import PAGE, Rows, SortKeys
from trainmaster.adapters.dynamodb.codec import (
    account_of,
    counts,
    decode,
    is_behind,
    iso,
    last_ends,
    limits,
    run_times_of,
    spot_day,
    ties_by_name,
    to_attributes,
    usage_line,
)
from trainmaster.core.costs.ledger import MonthAccount, PreemptionEntry, UsageLine, budget_cents, month_of
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.model import Job, JobState, epoch_ms
from trainmaster.core.planning.candidates import HEADS, Lane, chosen_lanes
from trainmaster.core.planning.capacity import minus, pool_vector
from trainmaster.core.planning.snapshot import (
    BudgetState,
    PreemptionReservation,
    RunningJob,
    Snapshot,
    WaitingJob,
    WarmPool,
)
from trainmaster.core.policy import Budget, Policy, PoolPolicy
from trainmaster.core.records import Alias, HistoryLine, PoolState, TeamState
from trainmaster.core.rules.violation import ViolationRecord

HISTORY_LINES = 200
BATCH = 100
"""Keys of one BatchGetItem. Source: DynamoDB limits."""


class DynamoReader:
    """JobReader, SnapshotReader, QueueReader and PoolReader over one table."""

    def __init__(self, client: Any, *, table: str) -> None:
        self._rows = Rows(client, table=table)

    # ---- single jobs

    def job(self, name: str) -> Job | None:
        item = self._rows.get(layout.job_key(name))
        return None if item is None else decode(Job, item)

    def alias(self, training_job_name: str) -> Alias | None:
        item = self._rows.get(layout.alias_key(training_job_name))
        return None if item is None else decode(Alias, item)

    def request(self, name: str) -> dict[str, Any]:
        item = self._rows.get(layout.request_key(name))
        assert item is not None, f"job {name} has no request"
        body: dict[str, Any] = json.loads(gzip.decompress(bytes(item["body"])))
        return body

    def story(self, job: Job) -> tuple[tuple[Attempt, ...], tuple[HistoryLine, ...]]:
        partition = layout.job_key(job.name)[0]
        attempts = self._rows.query(partition, SortKeys.beginning(f"a#{job.spec.entry_id}#"))
        lines = self._rows.query(partition, SortKeys.beginning(f"h#{job.spec.entry_id}#"), backwards=True)
        history = [decode(HistoryLine, item) for item in islice(lines, HISTORY_LINES)]
        return tuple(decode(Attempt, item) for item in attempts), tuple(reversed(history))

    # ---- a pass

    def snapshot(self, pool: PoolPolicy, *, policy: Policy, paused: bool, now: datetime) -> Snapshot:
        """Read the pool; what it costs depends on teams, shapes and running jobs, not on the queue."""
        counters = self._rows.get(layout.counters_key(pool.name)) or {}
        holds = tuple(
            decode(PreemptionReservation, content)
            for name, content in counters.items()
            if name.startswith("hold#")
        )
        used, warm = counts(counters, "used#"), counts(counters, "warm#")
        lanes = chosen_lanes(self._lanes(pool.name), free=minus(pool_vector(pool), used), now=now)
        waiting = tuple(entry for lane in lanes for entry in self._heads(pool.name, lane))
        return Snapshot(
            paused=paused,
            used=used,
            warm=warm,
            warm_pools=self._warm_pools(pool.name) if warm else (),
            holds=holds,
            waiting=waiting,
            due=self._due(pool.name, now=now),
            running=tuple(decode(RunningJob, item) for item in self._rows.query(f"R#{pool.name}")),
            gone_preemptors=frozenset(hold.preemptor for hold in holds if not self._waits(hold.preemptor)),
            account_limits=limits(counters),
            last_end=last_ends(counters),
            budgets=self._budgets(policy, {entry.team for entry in waiting}, now=now),
            order_key=counters.get(layout.ORDER_KEY),
            prices=PriceTable(overrides=policy.prices),
            spot_max_wait=policy.spot_max_wait,
            watch=policy.governing.watch,
        )

    def _heads(self, pool: str, lane: Lane) -> Iterator[WaitingJob]:
        entries = self._rows.query(layout.queue_partition(pool, lane.team, lane.text), page=HEADS)
        return (decode(WaitingJob, item) for item in islice(entries, HEADS))

    def _warm_pools(self, pool: str) -> tuple[WarmPool, ...]:
        return tuple(decode(WarmPool, item) for item in self._rows.query(f"W#{pool}"))

    def _budgets(self, policy: Policy, teams: Iterable[str], *, now: datetime) -> dict[str, BudgetState]:
        """This month of each team that has a budget and waits."""
        budgets = {team: found.budget for team in sorted(teams) if (found := policy.team(team))}
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

    # ---- money

    def month(self, team: str, month: str) -> MonthAccount:
        return account_of(self._rows.get(layout.month_key(team, month)) or {})

    def usage(self, team: str, month: str) -> tuple[tuple[UsageLine, ...], tuple[PreemptionEntry, ...]]:
        partition = layout.month_key(team, month)[0]
        lines = tuple(usage_line(item) for item in self._rows.query(partition, SortKeys.beginning("j#")))
        takings = tuple(
            decode(PreemptionEntry, item) for item in self._rows.query(partition, SortKeys.beginning("p#"))
        )
        return lines, takings

    # ---- what bypassed the queue

    def violation(self, training_job_name: str, *, at: datetime) -> ViolationRecord | None:
        item = self._rows.get(layout.violation_key(month_of(at), iso(at), training_job_name))
        return None if item is None else decode(ViolationRecord, item)

    def violations(
        self, month: str, *, after: tuple[str, str] | None, limit: int
    ) -> tuple[ViolationRecord, ...]:
        partition = layout.violation_key(month, "", "")[0]
        behind = None if after is None else SortKeys.behind(layout.violation_key(month, *after)[1])
        items = self._rows.query(partition, behind, page=min(limit, PAGE))
        return tuple(decode(ViolationRecord, item) for item in islice(items, limit))

    def spot_days(self, instance_type: str) -> tuple[SpotDay, ...]:
        partition, prefix = layout.spot_days_prefix(instance_type)
        return tuple(spot_day(item) for item in self._rows.query(partition, SortKeys.beginning(prefix)))

    # ---- run times

    def run_times(self, pool: str) -> dict[tuple[str, str], RunTimes]:
        found = ((item["sk"].partition("#"), item) for item in self._rows.query(f"H#{pool}"))
        return {(team, lane): run_times_of(item) for (team, _, lane), item in found}

    def predicted(self, pool: str, team: str, lane: str) -> timedelta | None:
        """How long the team's next job of this lane is likely to train."""
        item = self._rows.get(layout.run_times_key(pool, team, layout.short_lane(lane)))
        return None if item is None else run_times_of(item).predicted

    # ---- parked

    def _due(self, pool: str, *, now: datetime) -> tuple[WaitingJob, ...]:
        until = f"{epoch_ms(now):015d}~"  # '~' sorts behind every name
        items = self._rows.query(f"B#{pool}", SortKeys.up_to(until))
        return tuple(decode(WaitingJob, item) for item in islice(items, BATCH))

    def _waits(self, name: str) -> bool:
        job = self.job(name)
        return job is not None and job.is_waiting

    def _lanes(self, pool: str) -> list[Lane]:
        """Those in which jobs wait."""
        return [
            Lane(team=team["sk"], text=name.removeprefix("lane#"), waiting=count)
            for team in self._rows.query(f"T#{pool}")
            for name, count in team.items()
            if name.startswith("lane#") and count > 0
        ]

    # ---- lists for people

    def queue_length(self, pool: str) -> int:
        return sum(lane.waiting for lane in self._lanes(pool))

    def waiting(self, pool: str, *, after: tuple[int, str] | None, limit: int) -> tuple[WaitingJob, ...]:
        lanes = [self._lane(pool, lane, after, limit) for lane in self._lanes(pool)]
        merged = heapq.merge(*lanes, key=lambda entry: entry.rank)
        return tuple(islice(merged, limit))

    def _lane(self, pool: str, lane: Lane, after: tuple[int, str] | None, limit: int) -> Iterator[WaitingJob]:
        behind = None if after is None else SortKeys.behind(layout.rank_text(*after))
        items = self._rows.query(
            layout.queue_partition(pool, lane.team, lane.text), behind, page=min(limit, PAGE)
        )
        return (decode(WaitingJob, item) for item in items)

    def parked(self, pool: str, *, after: tuple[int, str] | None, limit: int) -> tuple[WaitingJob, ...]:
        behind = None if after is None else SortKeys.behind(f"{after[0]:015d}#{after[1]}")
        items = self._rows.query(f"B#{pool}", behind, page=min(limit, PAGE))
        return tuple(decode(WaitingJob, item) for item in islice(items, limit))

    def running(self, pool: str) -> tuple[RunningJob, ...]:
        entries = (decode(RunningJob, item) for item in self._rows.query(f"R#{pool}"))
        return tuple(sorted(entries, key=lambda job: (-job.priority, job.claimed_at, job.name)))

    def finished(
        self, team: str, *, state: JobState, after: tuple[str, str] | None, limit: int
    ) -> tuple[tuple[str, str], ...]:
        condition = "team = :team" if after is None else "team = :team AND ended_at <= :upto"
        values: dict[str, Any] = {":team": team, ":state": state.value}
        if after is not None:
            values[":upto"] = after[0]
        pages = self._rows.pages(
            IndexName=layout.BY_TEAM,
            KeyConditionExpression=condition,
            FilterExpression="#state = :state",
            ExpressionAttributeNames={"#state": "state"},
            ExpressionAttributeValues=to_attributes(values),
            ScanIndexForward=False,
        )
        found = ((item["ended_at"], item["pk"].removeprefix("J#")) for item in pages)
        ordered = (one for one in ties_by_name(found) if after is None or is_behind(one, after))
        return tuple(islice(ordered, limit))

    def jobs(self, names: Iterable[str]) -> dict[str, Job]:
        wanted = list(dict.fromkeys(names))
        found: dict[str, Job] = {}
        for start in range(0, len(wanted), BATCH):
            for item in self._rows.jobs(wanted[start : start + BATCH]):
                job = decode(Job, item)
                found[job.name] = job
        return found

    def pool_state(self, pool: str) -> PoolState:
        counters = self._rows.get(layout.counters_key(pool)) or {}
        teams = {
            item["sk"]: TeamState(
                used=counts(item, "used#"),
                waiting=item.get("parked", 0)
                + sum(n for name, n in item.items() if name.startswith("lane#")),
            )
            for item in self._rows.query(f"T#{pool}")
        }
        warm = counts(counters, "warm#")
        return PoolState(
            used=counts(counters, "used#"),
            teams=teams,
            warm=warm,
            warm_pools=self._warm_pools(pool) if warm else (),
            account_limits=limits(counters),
            last_end=last_ends(counters),
            order_key=counters.get(layout.ORDER_KEY),
        )
