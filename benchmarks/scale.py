"""How the plane grows: plans, passes, depth, lanes, teams, pools, answers of the API, one size at a time.

What is beyond what fits here, and each minute of a whole plane, is reckoned from the costs of passes and
starts that were measured, and marked ``computed``. CPU is the process's own; a figure is the best of several
tries where others who use the machine would decide it.
"""

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster_client.report import Report

from benchmarks import posting
from benchmarks.api_calls import MAX_DRY_RUN_S, MAX_LOOK_S, measure_api
from benchmarks.control_plane_bill import PRICES, Unit
from benchmarks.deep_queue import DeepQueue
from benchmarks.depth import measure_passes
from benchmarks.plane_sizes import measure_sizes
from benchmarks.preemptors import Crowd, cpu_seconds, crowded
from benchmarks.scale_tables import tables
from benchmarks.starts import MAX_CALLS_BEYOND_STARTS, MIN_STARTS_PER_CPU_S, measure, starts_per_cpu_s
from benchmarks.tables import at_most
from benchmarks.twin_rate import REACHED_FOR, measure_rate
from tests.worlds.many_pools import Load, many_pools

ROOT = Path(__file__).resolve().parents[1]
RUNNING, TEAMS = (1_000, 5_000, 20_000), (8, 100, 1_000)
WAITING, DEEPER = (1_000, 10_000), (100_000, 1_000_000)
POOLS = (1, 48, 500)
STARTS = {0: 256, 20: 256, 300: 128}
"""Starts by the milliseconds that AWS takes; enough that a pass's fixed costs do not decide."""
SIZES = (
    *(DeepQueue(pending=256, running=running) for running in RUNNING),
    DeepQueue(pending=1_000, lanes=400),
    DeepQueue(pending=5_000, lanes=5_000),
    DeepQueue(pending=1_000, teams=100, lanes=400),
    DeepQueue(pending=1_000, teams=1_000, lanes=1_000),
)
"""Sizes in each of which one thing is more than in a pool of 16 running jobs, 8 teams and 32 lanes."""
PREEMPTORS = 256
PLANS = 5
MAX_PLAN_S = 0.2
BEGINS_WITHIN = 60.0
IDLE_PASS_READS, IDLE_RECONCILE_READS = 7, 2
"""Calls of the table for a pool without jobs, of 0.5 to 1 read unit each. The pass's are under test."""
STARTS_A_MINUTE = 60
"""Most starts a minute of a whole account, as SageMaker was observed to allow."""
MOST_ROW_BYTES = 400 * 1024
"""Source: DynamoDB developer guide, "Quotas in Amazon DynamoDB"."""
MINUTES_PER_MONTH = 730 * 60
Part = Callable[[], Mapping[str, Any]]
"""Measures facts of the report."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "scale.json", metavar="PATH")
    parser.add_argument("--quick", action="store_true", help="one plan and one pass: does it run at all")
    arguments = parser.parse_args(argv)
    report = Report("scale")
    facts = report.facts
    facts["load_average"] = [os.getloadavg()[0]]
    facts["seconds"] = measure_all(QUICK if arguments.quick else WHOLE, facts)
    if "starting_passes" in facts:
        facts["minutes"] = list(minutes(facts["sizes"], facts["starting_passes"]))
    facts["idle_minutes"] = [idle_minute(pools) for pools in POOLS]
    facts["load_average"].append(os.getloadavg()[0])
    for line in tables(facts):
        print(line)
    check(report)
    return report.finish(arguments.json)


def measure_all(parts: Mapping[str, Part], facts: dict[str, Any]) -> dict[str, float]:
    """Measure the parts one after the other; return how long each took."""
    seconds = {}
    for number, (name, part) in enumerate(parts.items(), start=1):
        print(f"[{number}/{len(parts)}] {name} ...", end="", flush=True)
        began = time.monotonic()
        facts.update(part())
        gc.collect()  # of what a part leaves nothing is in the others' way
        seconds[name] = round(time.monotonic() - began, 1)
        print(f" {seconds[name]} s", flush=True)
    return seconds


def plans(running: Sequence[int], *, teams: Sequence[int] = (8,)) -> list[dict[str, Any]]:
    """Measure the CPU of one plan of a full pool that urgent jobs press into; the best try counts."""
    measurements = []
    for count, of in ((count, of) for count in running for of in teams):
        snapshot, pool = crowded(Crowd(running=count, preemptors=PREEMPTORS, teams=of))
        seconds = [round(cpu_seconds(snapshot, pool)[0], 4) for _ in range(PLANS)]
        measurements.append({"running": count, "teams": of, "preemptors": PREEMPTORS, "cpu_s": seconds})
    return measurements


def depths(passes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add depths that were not measured: deeper queues cost what the deepest measured one does."""
    deepest = passes[-1]
    reckoned = [{**deepest, "pending": pending, "computed": True} for pending in DEEPER]
    return [*({**measured, "computed": False} for measured in passes), *reckoned]


def rings(pools: Sequence[int]) -> list[dict[str, Any]]:
    """Simulate the time from a ring to its pass, while one pool starts as many jobs as the rate allows."""
    simulated = []
    for count in pools:
        played = many_pools(Load(pools=count), seed=1)
        names = ("load", "rings", "waits_seconds", "passes", "longest_pass_seconds", "calls", "killed")
        simulated.append({name: played.facts[name] for name in names})
    return simulated


def minutes(
    sizes: Sequence[Mapping[str, Any]], starting: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Compute a minute of a plane: a pass of each pool, and as many starts as the account allows.

    It is computed from the pass over the fewest running jobs, what each further one adds, and what a
    start costs.
    """
    by_running = {size["running"]: size["pass"] for size in sizes if size["running"] in RUNNING}
    few, many = by_running[RUNNING[0]], by_running[RUNNING[-1]]
    of_starts = min(
        (start_pass for start_pass in starting if start_pass["delay_ms"] == 0),
        key=lambda start_pass: start_pass["cpu_s"],
    )
    share = STARTS_A_MINUTE / of_starts["starts"]
    begun = {"cpu_ms": 1000 * of_starts["cpu_s"] * share, "calls": sum(of_starts["calls"].values()) * share}
    for running in RUNNING:
        for pools in POOLS:
            minute: dict[str, Any] = {"running": running, "pools": pools, "starts": STARTS_A_MINUTE}
            for unit in ("cpu_ms", "calls", "rcu"):
                each = (many[unit] - few[unit]) / (RUNNING[-1] - RUNNING[0])
                passes = pools * (few[unit] - each * RUNNING[0]) + each * running
                minute[unit] = round(passes + begun.get(unit, 0))
            yield minute | {"computed": True}


def idle_minute(pools: int) -> dict[str, Any]:
    """Compute an idle minute: the reads for each pool, and what they cost in a month."""
    reads = pools * (IDLE_PASS_READS + IDLE_RECONCILE_READS)
    usd = reads * MINUTES_PER_MONTH * PRICES[Unit.READ_UNITS]
    return {"pools": pools, "reads": reads, "usd_per_month": round(float(usd), 2), "computed": True}


def check(report: Report) -> None:
    facts = report.facts
    for plan in facts["plans"]:
        name = f"plan-of-{plan['running']}-running-with-{PREEMPTORS}-preemptors"
        at_most(report, name, min(plan["cpu_s"]), MAX_PLAN_S, "CPU s")
    for delay_ms, rate in starts_per_cpu_s(facts.get("starting_passes", ())).items():
        name, limit = f"starts-per-cpu-second-at-{delay_ms}-ms", f"at least {MIN_STARTS_PER_CPU_S}"
        report.check(name, expected=limit, actual=rate, ok=rate >= MIN_STARTS_PER_CPU_S)
    if "first_pass" in facts:
        calls = sum(facts["first_pass"]["calls"].values())
        at_most(report, "calls-of-the-first-pass", calls, MAX_CALLS_BEYOND_STARTS, "calls")
    if "api" in facts:
        check_api(report)
    for size in facts["sizes"]:
        largest = max(size["largest_rows_bytes"].values())
        name = f"largest-row-of-{size['running']}-running-{size['teams']}-teams-{size['lanes']}-lanes"
        at_most(report, name, largest, MOST_ROW_BYTES, "bytes")
    for pool in facts.get("pools", ()):
        name = f"ring-to-pass-of-{pool['load']['pools']}-pools"
        at_most(report, name, pool["waits_seconds"]["longest"], BEGINS_WITHIN, "s")


def check_api(report: Report) -> None:
    facts = report.facts
    for look in facts["api"]["looks"]:
        name = f"get-with-estimate-of-number-{look['position'] or 'over-1000'}-of-5000-distinct"
        at_most(report, name, look["cpu_s"], MAX_LOOK_S, "CPU s")
    for dry_run in facts["api"]["dry_runs"]:
        name = f"policy-dry-run-over-{dry_run['pools']}-pools-at-{dry_run['delay_ms']}-ms"
        at_most(report, name, dry_run["seconds"], MAX_DRY_RUN_S, "s")
    add_job, rate = facts["add_job"], facts["twin_rate"]["a_second"]
    at_most(report, "add-job-handler", add_job["best_handler_cpu_ms"], posting.MAX_MS, "CPU ms")
    at_most(report, "add-job-calls", sum(add_job["calls"].values()), posting.MAX_CALLS, "calls")
    limit = f"reported; at least {REACHED_FOR} are reached for"
    report.check("submissions-a-second-at-the-twin", expected=limit, actual=rate, ok=rate > 0)


WHOLE: Mapping[str, Part] = {
    "plans": lambda: {"plans": plans(RUNNING), "teams": plans(RUNNING[1:2], teams=TEAMS)},
    "passes that start jobs": lambda: measure(starts=STARTS),
    "submissions": lambda: {"add_job": posting.measure()},
    "other calls of the API": lambda: {"api": measure_api()},
    "submissions at the twin": lambda: {"twin_rate": measure_rate()},
    "depths": lambda: {"depths": depths(measure_passes(WAITING)["passes"])},
    "sizes": lambda: {"sizes": measure_sizes(SIZES)},
    "many pools": lambda: {"pools": rings(POOLS)},
}
QUICK: Mapping[str, Part] = {
    "plans": lambda: {"plans": plans(RUNNING[:1])},
    "sizes": lambda: {"sizes": measure_sizes([DeepQueue(pending=64)])},
}

if __name__ == "__main__":
    sys.exit(main())
