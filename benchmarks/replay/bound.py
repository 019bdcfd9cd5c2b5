"""Finds what no decider can beat, from the trace with every run time known: bounds, not schedules.

The weighted delay is bounded by Lagrangian duality. Give each second of an instance a price. Whatever the
prices: of every schedule, the weighted delay is no less than the same delay, plus what all jobs pay for the
time that they hold, minus what all instances cost, as it holds no more than there are. In that sum each job
stands alone, so each may choose the cheapest way to run: stopped and continued at any second for nothing,
with one warm start, wherever the others run. The sum of these choices is the bound. Prices only decide how
close it comes to a schedule; they begin as those of ``oracle`` and follow what the choices crowd into.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster_client.simulate.engine.assumptions import WARM_START

from benchmarks.replay.cheapest_run import Prices, cheapest_run
from benchmarks.replay.figures import horizon_s
from benchmarks.replay.jobs import HOUR_S, POOLS, WEIGHTS, TraceJob
from benchmarks.replay.oracle import Demand, oracle

START_S = WARM_START.seconds
"""Every job needs one start, and none is shorter."""
SLOT_S, MOST_SLOTS = 300, 50_000
ROUNDS = 12
FIRST_STEP, SMALLER = 1.0, 0.9
"""Steps of the prices, as shares of Polyak's."""
REACHED = 0.9
"""Share of what the oracle needs at which the best bound is expected."""
ROUNDING = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    figures: Mapping[str, float]
    """The least, or of goodput the most, that any decider can have."""
    oracle_h: float
    """Weighted delay of a schedule that knows run times and stops for nothing: no bound can be higher."""

    def as_json(self) -> dict[str, Any]:
        document = {name: round(value, 4) for name, value in self.figures.items()}
        return document | {"oracle_weighted_delay_h": round(self.oracle_h, 4)}


def bound_of(jobs: Sequence[TraceJob], capacity: Mapping[str, int]) -> Bound:
    """Return the bound of each compared figure; if nothing better is known, one warm start."""
    start_h = START_S / HOUR_S
    weight = sum(WEIGHTS[job.klass] for job in jobs)
    parts = [_least_delays(jobs, pool, count) for pool, count in capacity.items()]
    floor = {
        f"{measure}_delay_h.{klass.name.lower()}": start_h if any(job.klass is klass for job in jobs) else 0.0
        for measure in ("mean", "p50", "p99")
        for klass in WEIGHTS
    }
    return Bound(
        figures={
            "weighted_delay_h": sum(least for least, _ in parts) / weight / HOUR_S,
            "goodput": most_goodput(jobs, capacity),
            "longest_delay_h": start_h,
            "startup_gpu_h": sum(START_S * job.gpus for job in jobs) / HOUR_S,
            "waste_gpu_h": 0.0,
            "idle_warm_gpu_h": 0.0,
            "preemptions": 0.0,
            **floor,
        },
        oracle_h=sum(oracle_s for _, oracle_s in parts) / weight / HOUR_S,
    )


def _least_delays(jobs: Iterable[TraceJob], pool: str, count: int) -> tuple[float, float]:
    """Return weighted seconds in one pool: the bound's, and the oracle's."""
    mine = [_demand(job) for job in jobs if job.pool == pool]
    starts = sum(WEIGHTS[job.klass] * (_demand(job).holds_s - job.best_s) for job in jobs if job.pool == pool)
    least, oracle_s = least_delay_s(mine, count)
    return least + starts, oracle_s + starts


def _demand(job: TraceJob) -> Demand:
    """Return what the job needs at least: an elastic one no more instances than it makes use of.

    Each of its speeds counts as so many instances of the least width, at no more than it has, so that it may
    change its width at any second for nothing. Its start holds the least width.
    """
    rate = job.instances if job.elastic is None else job.instances * job.elastic.most_speed
    start_s = START_S if job.elastic is None else int(START_S * job.instances / rate)
    return Demand(WEIGHTS[job.klass], job.submit_s, job.best_s + start_s, rate)


def least_delay_s(jobs: Sequence[Demand], count: int) -> tuple[float, float]:
    """Bound the sum of weight x (completion - release - time held), and return the oracle's sum beside it."""
    schedule = oracle(jobs, count)
    slot_s = max(SLOT_S, -(-schedule.end_s // MOST_SLOTS))
    prices, best = Prices.falling(schedule.steps, slot_s), 0.0
    for number in range(ROUNDS):
        held = [0.0] * len(prices.slots)
        value = sum(cheapest_run(job, prices, held) for job in jobs) - count * sum(prices.slots) * slot_s
        best, held[-1] = max(best, value), 0.0  # beyond the last slot there is room for all
        crowded = [
            use - count * slot_s if use > count * slot_s or price > 0 else 0.0
            for use, price in zip(held, prices.slots, strict=True)
        ]
        square = sum(excess * excess for excess in crowded)
        if not square or value >= REACHED * schedule.weighted_s:
            break
        step = FIRST_STEP * SMALLER**number * (REACHED * schedule.weighted_s - value) / square
        prices = prices.moved(crowded, step)
    return best, schedule.weighted_s


def most_goodput(jobs: Sequence[TraceJob], capacity: Mapping[str, int]) -> float:
    """Bound the share of all GPU time up to the horizon that is useful.

    No schedule trains more than each job alone could up to some instant, and full instances from then on.
    That holds of every instant, so the one that says least counts.
    """
    horizon = horizon_s(jobs)
    there = sum(count * POOLS[pool].gpus for pool, count in capacity.items()) * horizon
    most = sum(
        _most_trained_s([job for job in jobs if job.pool == pool], count, horizon) * POOLS[pool].gpus
        for pool, count in capacity.items()
    )
    return most / there if there else 0.0


def _most_trained_s(jobs: Sequence[TraceJob], count: int, horizon: int) -> float:
    """Return the most instance-seconds that can be trained."""
    trained = rate = 0.0
    least, last_s = float(count * horizon), 0
    for second, change in [*_changes(jobs, horizon), (horizon, 0)]:
        trained += rate * (second - last_s)
        last_s = second
        rate += change
        least = min(least, trained + count * (horizon - second))
    return least


def _changes(jobs: Iterable[TraceJob], horizon: int) -> list[tuple[int, float]]:
    """Return when instances begin and stop to be used if each job trains at once, as (second, change)."""
    steps: list[tuple[int, float]] = []
    for job in jobs:
        since, rate = job.submit_s + START_S, _demand(job).instances
        if since < horizon:
            steps += [(since, rate), (min(since + job.best_s, horizon), -rate)]
    return sorted(steps)


def none_over(figures: Mapping[str, float], bound: Bound) -> Iterator[str]:
    """Yield the figures that are better than possible: then the accounting or the bound is wrong."""
    for name, best in bound.figures.items():
        if name not in figures:
            continue
        is_over = figures[name] > best + ROUNDING if name == "goodput" else figures[name] < best - ROUNDING
        if is_over:
            yield f"{name}: {figures[name]:.4f}, and the bound is {best:.4f}"
