"""Measures what one pass costs as the queue grows, and how many jobs a second one planning pass places.

A pass reads its pool, decides and writes changed reasons; here the pool is full, so it starts nothing. It
runs through the real adapters over the twin's DynamoDB, inside this process; what it read and wrote is
counted from the answers. The queues take turns, so that all see the same machine; CPU figures are medians,
and the twin's own share is counted apart. Placements: the planner alone, with room for every candidate.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
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
from trainmaster_client.report import Report

from benchmarks.deep_queue import POOL, DeepQueue, ready_made
from benchmarks.metered_passes import Passes, take_turns
from benchmarks.tables import at_least, at_most
from benchmarks.waiting_beside import CHILDREN, LINKS, TASKS, WaitingSizes, check_beside, measure_beside
from local.clock import TwinClock
from local.engine.moto_engine import MotoEngine

ROOT = Path(__file__).resolve().parents[1]
SIZES = (1_000, 10_000, 100_000)
RUNS = 41
"""Measured passes of each size."""
MAX_RATIO = 1.2
"""The deepest queue against the shallowest; a cost that does not depend on the depth is 1."""
MIN_PLACEMENTS_PER_S = 1200
PLANS = 21


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.depth", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "depth.json", metavar="PATH")
    parser.add_argument("--sizes", type=_sizes, default=SIZES, metavar="N,N,...", help="waiting jobs")
    parser.add_argument("--links", type=int, default=LINKS, metavar="N", help="jobs that wait in a chain")
    parser.add_argument("--children", type=int, default=CHILDREN, metavar="N", help="jobs that wait for one")
    parser.add_argument("--tasks", type=int, default=TASKS, metavar="N", help="tasks of an array")
    arguments = parser.parse_args(argv)
    report = Report("depth")
    report.facts.update(measure_placements())
    report.facts.update(measure_passes(arguments.sizes))
    sizes = WaitingSizes(links=arguments.links, children=arguments.children, tasks=arguments.tasks)
    report.facts["beside"] = measure_beside(sizes, runs=RUNS)
    check(report)
    return report.finish(arguments.json)


def measure_passes(sizes: Sequence[int]) -> dict[str, Any]:
    engine = MotoEngine(clock=TwinClock(manual=False))
    queues = ready_made(engine, (DeepQueue(pending=size) for size in sizes))
    over = [Passes.over(queue, engine) for queue in queues]
    for passes in over:
        passes.first = passes.run()
    take_turns(over, runs=RUNS)
    engine.close()
    return {
        "passes": [passes.summary() for passes in over],
        "first_passes": [passes.first for passes in over],
        "runs": [record for passes in over for record in passes.records],
    }


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
    check_beside(report)
    for row in facts["passes"]:
        print(
            f"{row['pending']:9,} waiting: {row['items_read']} items in {row['queries']} queries,"
            f" {row['rcu']} RCU, {row['wcu']} WCU, {row['cpu_ms']} ms CPU"
        )


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(part) for part in text.split(",")))


if __name__ == "__main__":
    sys.exit(main())
