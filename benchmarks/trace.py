"""Replays a GPU trace through the product's planner in simulated time, beside a plain priority queue.

What is measured, and on which model, is written in docs/benchmarks.md.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.report import Report

from benchmarks.replay import jobs, synthetic
from benchmarks.replay.cells import Run, model
from benchmarks.replay.estimator import estimated_start
from benchmarks.replay.policy import document
from benchmarks.replay.requested_times import Requests
from benchmarks.replay.runs import NAIVE, PRODUCT, Setting, ask, replay
from benchmarks.replay.targets import TARGET_LOAD, check, check_estimates, check_seconds, means_of
from benchmarks.tables import Row, aligned

ROOT = Path(__file__).resolve().parents[1]
SEEDS = (1, 2, 3)
COST = (
    "Each 1,000 jobs take about 4 CPU seconds for each seed: the product and a plain queue, with drawn "
    "requested times and with a day for all."
)
SHOWN = (
    "goodput",
    "weighted_delay_h",
    "weighted_delay_g8_h",
    "p99_delay_h.high",
    "p99_delay_h.normal",
    "p99_delay_h.low",
    "longest_delay_h",
    "waste_gpu_h",
    "startup_gpu_h",
    "preemptions",
    "warm_starts",
)
"""Figures printed for people; the report has them all."""


def main(argv: list[str] | None = None) -> int:
    began = time.monotonic()
    arguments = parser().parse_args(argv)
    report = Report("trace")
    try:
        rows = jobs.read_trace(arguments.trace) if arguments.trace else synthetic.rows()
    except TrainmasterClientError as error:
        raise SystemExit(str(error)) from error
    setting = Setting(
        trace=rows,
        load=arguments.load,
        wide=arguments.wide,
        shortest_first=arguments.shortest_first,
        days=arguments.days,
        made_up=arguments.trace is None,
    )
    runs = replay(setting, arguments.seeds)
    report.facts |= _facts(arguments, setting, runs)
    day = replay(replace(setting, requests=Requests.DAY), arguments.seeds)
    report.facts["day_for_all"] = [run.as_json() for run in day]
    _print(runs, day, report)
    check(report, runs, setting)
    if arguments.events:
        _write_events(arguments.events, runs)
    if arguments.estimates:
        answers = ask(setting, runs, count=arguments.estimates, estimator=estimated_start)
        check_estimates(report, answers, asked=arguments.estimates)
    else:
        check_seconds(report, time.monotonic() - began)
    return report.finish(arguments.json)


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(prog="python -m benchmarks.trace", description=__doc__, epilog=COST)
    flags.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help=f"{jobs.TRACE_FILES}; without: a made-up one",
    )
    flags.add_argument("--load", type=float, default=TARGET_LOAD, help="mean demand as a share of the pools")
    flags.add_argument("--seeds", type=_seeds, default=SEEDS, help="which draws, default 1,2,3")
    flags.add_argument("--wide", action="store_true", help="half of the jobs of the 8-GPU pool are wider")
    flags.add_argument("--shortest-first", action="store_true", help="order.shortest_first in every pool")
    flags.add_argument("--days", type=float, metavar="D", help="only what was submitted in the first D days")
    flags.add_argument("--estimates", type=int, metavar="N", help="also ask N times when a job will start")
    flags.add_argument("--json", type=Path, default=ROOT / "build" / "trace.json", metavar="PATH")
    flags.add_argument("--events", type=Path, metavar="PATH", help="one JSON line an attempt")
    return flags


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(int(seed) for seed in text.split(","))


def _facts(arguments: argparse.Namespace, setting: Setting, runs: Iterable[Run]) -> dict[str, Any]:
    """Return everything that is needed to compute the figures again from the events."""
    capacities = {run.seed: dict(run.capacity) for run in runs}
    first = next(iter(capacities.values()))
    content = arguments.trace.read_bytes() if arguments.trace else None
    return {
        "trace": {
            "file": arguments.trace.name if arguments.trace else None,
            "sha256": hashlib.sha256(content).hexdigest() if content else None,
            "rows": len(setting.trace),
        },
        "load": setting.load,
        "wide": setting.wide,
        "shortest_first": setting.shortest_first,
        "days": setting.days,
        "policy": document(first, shortest_first=setting.shortest_first),
        "capacities": capacities,
        "gpus_per_instance": {pool: instance.gpus for pool, instance in jobs.POOLS.items()},
        "model": model(),
        "runs": [run.as_json() for run in runs],
    }


def _print(runs: Sequence[Run], day: Sequence[Run], report: Report) -> None:
    print("policy:", json.dumps(report.facts["policy"]))
    means, day_means = means_of(runs), means_of(day)
    each = [
        means_of([run for run in runs if run.seed == seed]) for seed in sorted({run.seed for run in runs})
    ]
    rows: list[Row] = [("mean of the seeds", NAIVE, PRODUCT, "ratio", "of seeds", "24 h for all")]
    for figure in SHOWN:
        ratios = [of_seed.ratio(figure) for of_seed in each if of_seed.naive[figure]]
        ends = f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else ""
        ratio, day_ratio = (
            f"{of.ratio(figure):.3f}" if of.naive[figure] else "" for of in (means, day_means)
        )
        product, naive = means.product[figure], means.naive[figure]
        rows.append((figure, f"{naive:.3f}", f"{product:.3f}", ratio, ends, day_ratio))
    print("\n".join(aligned(rows, named=True)))


def _write_events(path: Path, runs: Iterable[Run]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as lines:
        for run in runs:
            for row in run.rows:
                event = {"seed": run.seed, "algorithm": run.algorithm} | row._asdict()
                lines.write(json.dumps(event) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
