"""Measures what one pass costs as the queue grows, and how many jobs a second one planning pass places.

A pass reads its pool, decides and writes changed reasons; here the pool is full, so it starts nothing. It
runs through the real adapters over the twin's DynamoDB, inside this process; what it read and wrote is
counted from the answers. The queues take turns, so that all see the same machine; CPU figures are medians,
and the twin's own share is counted apart. Placements: the planner alone, with room for every candidate.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.candidates import HEADS, MAX_LANES
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy, Quota
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.passes import Scheduler
from trainmaster_client.report import Report

from benchmarks.deep_queue import POOL, DeepQueue, ready_made
from benchmarks.dependents import CHAIN_BESIDE, LINKS, Chain, check_chain, end_chain
from benchmarks.full_pool import scheduler_of
from benchmarks.tables import at_least, at_most
from local.clock import TwinClock
from local.engine.calls import AwsCall
from local.engine.client import in_process_client
from local.engine.dynamodb.values import item_bytes
from local.engine.moto_engine import MotoEngine
from local.wire import Request, Response

ROOT = Path(__file__).resolve().parents[1]
SIZES = (1_000, 10_000, 100_000)
RUNS = 41
"""Measured passes of each size."""
PASS_LIMIT = timedelta(seconds=90)
MAX_RATIO = 1.2
"""The deepest queue against the shallowest; a cost that does not depend on the depth is 1."""
MIN_PLACEMENTS_PER_S = 1200
PLANS = 21
READ_UNIT, WRITE_UNIT = 4096, 1024
"""Bytes. Source: DynamoDB developer guide, "Read and write capacity units"."""
TRANSACTION_FACTOR = 2
"""A write in a transaction costs two. Source: as above."""


@dataclass(slots=True, kw_only=True)
class Meter:
    """Serves a client's calls by the twin's engine, and counts what goes through."""

    engine: MotoEngine
    items_read: int = 0
    queries: int = 0
    calls: int = 0
    rcu: int = 0
    wcu: int = 0
    cpu_s: float = 0.0
    """CPU that the twin took to answer."""

    def serve(self, call: AwsCall, request: Request) -> Response:
        began = time.process_time()
        response = self.engine.call(call, request)
        self._count(call, json.loads(response.body))
        self.cpu_s += time.process_time() - began
        return response

    def _count(self, call: AwsCall, answer: Mapping[str, Any]) -> None:
        self.calls += 1
        match call.operation:
            case "GetItem":
                self._read([answer["Item"]] if "Item" in answer else [])
            case "Query":
                self.queries += 1
                self._read(answer["Items"])
            case "TransactWriteItems":
                self.wcu += sum(_write_units(operation) for operation in call.params["TransactItems"])
            case "BatchGetItem":
                self._read([row for rows in answer["Responses"].values() for row in rows])
            case "PutItem":  # who knows why it waits
                self.wcu += _write_units({"Put": call.params}) // TRANSACTION_FACTOR
            case "UpdateItem" | "DeleteItem":  # once a minute what the pass looked at; one empty lane
                self.wcu += 1
            case other:
                raise LookupError(f"a pass over a full pool was not known to call {other}")

    def _read(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Count a consistent read: a unit for every 4 KiB of all items together, and one for nothing."""
        self.items_read += len(items)
        self.rcu += max(1, -(-sum(item_bytes(row) for row in items) // READ_UNIT))


def _write_units(operation: Mapping[str, Any]) -> int:
    """Count the write units of an operation; of an update only key and new values: a lower bound."""
    ((_, body),) = operation.items()
    written = item_bytes(
        body["Item"] if "Item" in body else body["Key"] | body.get("ExpressionAttributeValues", {})
    )
    return TRANSACTION_FACTOR * max(1, -(-written // WRITE_UNIT))


@dataclass(slots=True, kw_only=True)
class Passes:
    """Measures passes over one queue."""

    queue: DeepQueue
    meter: Meter
    scheduler: Scheduler
    first: dict[str, Any] = field(default_factory=dict)
    """Costs of the first pass, which writes for the candidates why they wait."""
    records: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def over(cls, queue: DeepQueue, engine: MotoEngine) -> "Passes":
        meter = Meter(engine=engine)
        client = in_process_client(
            "dynamodb", region=engine.region, endpoint_url=engine.endpoint_url, serve=meter.serve
        )
        return cls(queue=queue, meter=meter, scheduler=scheduler_of(client, queue.table))

    def run(self) -> dict[str, Any]:
        meter = self.meter
        meter.items_read = meter.queries = meter.calls = meter.rcu = meter.wcu = 0
        meter.cpu_s = 0.0
        began = time.process_time()
        summary = self.scheduler.run(
            POOL, deadline=Deadline.at(datetime.now(UTC) + PASS_LIMIT, partial(datetime.now, UTC))
        )
        spent = time.process_time() - began
        assert not summary.done, f"the pool was to be full: {summary.done}"
        assert not summary.failures, summary.failures
        return {
            "pending": self.queue.pending,
            "items_read": meter.items_read,
            "queries": meter.queries,
            "calls": meter.calls,
            "rcu": meter.rcu,
            "wcu": meter.wcu,
            "cpu_ms": round((spent - meter.cpu_s) * 1000, 3),
            "twin_cpu_ms": round(meter.cpu_s * 1000, 3),
        }

    def summary(self) -> dict[str, Any]:
        """Return the counts of the last pass, and the medians of the times."""
        times = {
            name: round(median(record[name] for record in self.records), 3)
            for name in ("cpu_ms", "twin_cpu_ms")
        }
        return self.records[-1] | times


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.depth", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "depth.json", metavar="PATH")
    parser.add_argument("--sizes", type=_sizes, default=SIZES, metavar="N,N,...", help="waiting jobs")
    parser.add_argument("--links", type=int, default=LINKS, metavar="N", help="jobs that wait in a chain")
    arguments = parser.parse_args(argv)
    report = Report("depth")
    report.facts.update(measure_placements())
    report.facts.update(measure_passes(arguments.sizes))
    report.facts["chain"] = measure_chain(arguments.links)
    check(report)
    return report.finish(arguments.json)


def measure_passes(sizes: Sequence[int]) -> dict[str, Any]:
    engine = MotoEngine(clock=TwinClock(manual=False))
    queues = ready_made(engine, (DeepQueue(pending=size) for size in sizes))
    over = [Passes.over(queue, engine) for queue in queues]
    for passes in over:
        passes.first = passes.run()
    # The table is another machine's memory: garbage collection must not walk through it here.
    gc.collect()
    gc.freeze()
    for _ in range(RUNS):
        for passes in over:
            passes.records.append(passes.run())
    gc.unfreeze()
    engine.close()
    return {
        "passes": [passes.summary() for passes in over],
        "first_passes": [passes.first for passes in over],
        "runs": [record for passes in over for record in passes.records],
    }


def measure_chain(links: int) -> dict[str, Any]:
    """Costs of a pass without and with so many jobs that wait for others, and of the end of all of them."""
    engine = MotoEngine(clock=TwinClock(manual=False))
    (queue,) = ready_made(engine, [DeepQueue(pending=CHAIN_BESIDE)])
    passes = Passes.over(queue, engine)
    _, before = passes.run(), passes.run()  # the first one writes why candidates wait
    chain = Chain.over(queue, engine.client("dynamodb"))
    chain.add(links)
    waiting = passes.run()
    ended = end_chain(chain, passes.scheduler, links=links)
    engine.close()
    return {"before": before, "waiting": waiting, **ended}


def measure_placements() -> dict[str, Any]:
    """Starts for each CPU second inside ``plan``, without quotas and with them."""
    return {
        "placements_per_s": _placements_per_s(_roomy_pool({})),
        "placements_per_s_with_quotas": _placements_per_s(_roomy_pool(_quotas())),
        "placements_of_a_plan": MAX_LANES * HEADS,
    }


_PLACING_TEAMS = tuple(f"team-{number}" for number in range(8))
_PLACING_TYPES = ("ml.g5.12xlarge", "ml.p4d.24xlarge")
_PLACING_WIDTHS = (1, 2, 3, 4)
assert len(_PLACING_TEAMS) * len(_PLACING_TYPES) * len(_PLACING_WIDTHS) == MAX_LANES
_ROOM = MAX_LANES * HEADS * max(_PLACING_WIDTHS)


def _roomy_pool(quotas: Mapping[str, Quota]) -> PoolPolicy:
    return PoolPolicy(name=POOL, capacity=dict.fromkeys(_PLACING_TYPES, _ROOM), quotas=quotas)


def _quotas() -> dict[str, Quota]:
    """Return quotas under which half of each team's jobs are borrowers."""
    share = HEADS * sum(_PLACING_WIDTHS) // 2
    return {team: Quota(nominal=dict.fromkeys(_PLACING_TYPES, share)) for team in _PLACING_TEAMS}


def _candidates(now: datetime) -> Snapshot:
    """Make as many candidates as a pass ever looks at: eight of each of 64 lanes."""
    lanes = [
        (team, Capacity(kind), width)
        for team in _PLACING_TEAMS
        for kind in _PLACING_TYPES
        for width in _PLACING_WIDTHS
    ]
    waiting = (
        WaitingJob(
            name=f"job-{number:04d}",
            ver=0,
            team=team,
            state=JobState.PENDING,
            shapes=(Shape(vector={capacity: width}),),
            priority=number % 10,
            score=number * 7919 % 10_007,
            submitted_at=now - timedelta(minutes=number),
            runs_at_most=timedelta(hours=12),
        )
        for number, (team, capacity, width) in enumerate(lanes * HEADS)
    )
    return Snapshot(waiting=tuple(waiting))


def _placements_per_s(pool: PoolPolicy) -> int:
    now = datetime.now(UTC)
    snapshot = _candidates(now)
    rates = []
    for _ in range(PLANS):
        began = time.process_time()
        decided = plan(snapshot, pool, now=now)
        spent = time.process_time() - began
        placed = sum(isinstance(action, Start) for action in decided.actions)
        assert placed == len(snapshot.waiting), f"{placed} of {len(snapshot.waiting)} were placed"
        rates.append(placed / spent)
    return round(median(rates))


def check(report: Report) -> None:
    facts = report.facts
    shallow, deep = facts["passes"][0], facts["passes"][-1]
    for name in ("items_read", "rcu", "cpu_ms"):
        ratio = round(deep[name] / shallow[name], 3)
        between = f"between {shallow['pending']:,} and {deep['pending']:,} waiting jobs"
        at_most(report, f"flat-{name}", ratio, MAX_RATIO, between)
    for name in ("placements_per_s", "placements_per_s_with_quotas"):
        at_least(report, name, facts[name], MIN_PLACEMENTS_PER_S)
    check_chain(report)
    for row in facts["passes"]:
        print(
            f"{row['pending']:9,} waiting: {row['items_read']} items in {row['queries']} queries,"
            f" {row['rcu']} RCU, {row['wcu']} WCU, {row['cpu_ms']} ms CPU"
        )


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(part) for part in text.split(",")))


if __name__ == "__main__":
    sys.exit(main())
