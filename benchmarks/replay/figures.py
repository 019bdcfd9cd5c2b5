"""Computes a replay's figures from its rows and the trace alone, so that anybody can repeat it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trainmaster_client.simulate.comparison.audits import highest
from trainmaster_client.simulate.comparison.figures import HIGHEST, MEDIAN, lasting_s, quantile, weighted_mean
from trainmaster_client.simulate.engine.assumptions import COLD_START, STOP
from trainmaster_client.simulate.engine.replays import RESIZED
from trainmaster_client.simulate.histories.trace_draws import Klass

from benchmarks.replay.elasticity import Elasticity
from benchmarks.replay.jobs import HOUR_S, POOLS, WEIGHTS, TraceJob
from benchmarks.replay.rows import Row

COLD_S, STOP_S = COLD_START.seconds, STOP.seconds
STOPS = frozenset({"preempted", RESIZED})
"""Ends of attempts that were asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    goodput: float
    """Training that lasted, as a share of what the pools could have done until the last submission."""
    weighted_delay_h: float
    """Mean of end - submission - run time, weighted by class; of the jobs that finished.

    An elastic job's run time is that at its largest width."""
    weighted_delay_g8_h: float
    """The same in the 8-GPU pool."""
    mean_delay_h: Mapping[str, float]
    """Mean delay in hours by class, not weighted."""
    p50_delay_h: Mapping[str, float]
    p99_delay_h: Mapping[str, float]
    longest_delay_h: float
    waste_gpu_h: float
    """Lost work and stopping."""
    lost_gpu_h: float
    startup_gpu_h: float
    preemptions: int
    starts: int
    warm_starts: int
    finished: int
    unfinished: int

    def as_json(self) -> dict[str, Any]:
        return {name: _rounded(value) for name, value in asdict(self).items()}


def capacities(jobs: Sequence[TraceJob], *, load: float) -> dict[str, int]:
    """Return the instances of each pool: the mean demand, start-up included, is this share of them."""
    horizon = horizon_s(jobs)
    sizes: dict[str, int] = {}
    for pool in POOLS:
        mine = [job for job in jobs if job.pool == pool]
        demand = sum(job.instances * (job.duration_s + COLD_S) for job in mine)
        if mine:
            sizes[pool] = max(math.ceil(demand / max(horizon, 1) / load), *(job.instances for job in mine))
    return sizes


def horizon_s(jobs: Iterable[TraceJob]) -> int:
    """Return the last submission; later the queue only drains, so goodput counts up to here."""
    return max(job.submit_s for job in jobs)


def figures(rows: Sequence[Row], jobs: Sequence[TraceJob], capacity: Mapping[str, int]) -> Figures:
    horizon = horizon_s(jobs)
    delays = _delays(rows, jobs)
    by_class = {klass: sorted(s for job, s in delays if job.klass is klass) for klass in Klass}
    lost = sum(row.lost_s * _gpus(row) for row in rows)
    stopped = [row for row in rows if row.end in STOPS]
    elastic = {job.job_id: job.elastic for job in jobs if job.elastic is not None}
    there = sum(capacity[pool] * POOLS[pool].gpus for pool in capacity) * horizon
    return Figures(
        goodput=sum(
            _lasting_s(row, horizon) * _gpus(row) * _useful_share(row, elastic.get(row.job_id))
            for row in rows
        )
        / max(there, 1),
        weighted_delay_h=_weighted_h(delays),
        weighted_delay_g8_h=_weighted_h([(job, s) for job, s in delays if job.pool == "g8"]),
        mean_delay_h={klass.name.lower(): _mean_h(found) for klass, found in by_class.items()},
        p50_delay_h={klass.name.lower(): _quantile_h(found, MEDIAN) for klass, found in by_class.items()},
        p99_delay_h={klass.name.lower(): _quantile_h(found, HIGHEST) for klass, found in by_class.items()},
        longest_delay_h=max((seconds for _, seconds in delays), default=0) / HOUR_S,
        waste_gpu_h=(lost + sum(STOP_S * _gpus(row) for row in stopped)) / HOUR_S,
        lost_gpu_h=lost / HOUR_S,
        startup_gpu_h=sum((row.train_s - row.start_s) * _gpus(row) for row in rows) / HOUR_S,
        preemptions=sum(row.end == "preempted" for row in rows),
        starts=len(rows),
        warm_starts=sum(row.warm for row in rows),
        finished=len(delays),
        unfinished=len(jobs) - len(delays),
    )


def most_in_use(rows: Iterable[Row]) -> dict[str, int]:
    """Return the most instances that attempts held at one instant, by pool."""
    steps: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        steps.setdefault(row.pool, []).extend([(row.start_s, row.instances), (row.end_s, -row.instances)])
    return {pool: highest(found) for pool, found in steps.items()}


def _gpus(row: Row) -> int:
    return row.instances * POOLS[row.pool].gpus


def _lasting_s(row: Row, horizon: int) -> int:
    stopped = row.end_s - (STOP_S if row.end in STOPS else 0)
    return lasting_s(train_s=row.train_s, stopped_s=stopped, lost_s=row.lost_s, horizon_s=horizon)


def _useful_share(row: Row, elasticity: Elasticity | None) -> float:
    """Return the part of an attempt's GPUs that the least width would have needed for the same training."""
    return 1 if elasticity is None else elasticity.useful_share(row.instances)


def _delays(rows: Iterable[Row], jobs: Iterable[TraceJob]) -> list[tuple[TraceJob, int]]:
    """Return the delay in seconds of each job that came to its end; some of them fail there."""
    ends = {(row.job_id, row.end): row.end_s for row in rows}
    over = [(job, ends.get((job.job_id, job.end))) for job in jobs]
    return [(job, end_s - job.submit_s - job.best_s) for job, end_s in over if end_s is not None]


def _weighted_h(delays: Iterable[tuple[TraceJob, int]]) -> float:
    return weighted_mean((WEIGHTS[job.klass], seconds) for job, seconds in delays) / HOUR_S


def _mean_h(seconds: Sequence[int]) -> float:
    return sum(seconds) / len(seconds) / HOUR_S if seconds else 0.0


def _quantile_h(ordered: Sequence[int], share: float) -> float:
    return (quantile(ordered, share) or 0.0) / HOUR_S


def flat(content: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield figures, those of a class by their path: ``p99_delay_h.high``."""
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{part}", inner) for part, inner in value.items())
        else:
            yield name, value


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    return round(value, 4) if isinstance(value, float) else value
