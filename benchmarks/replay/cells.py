"""One cell of a comparison: some jobs, in pools of some size, under one decider."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster_client.simulate.engine.assumptions import COLD_START, RESTORE, STOP, WARM_START
from trainmaster_client.simulate.engine.past_jobs import AccountBounds
from trainmaster_client.simulate.engine.replay_progress import Progress

from benchmarks.replay.deciders import Decider, replayed
from benchmarks.replay.figures import Figures, figures, most_in_use
from benchmarks.replay.jobs import HOUR_S, LONGEST_RUN_S, POOLS, WEIGHTS, TraceJob
from benchmarks.replay.rows import Row, history_of, rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of one cell: jobs with one seed, replayed by one decider."""

    seed: int
    algorithm: str
    capacity: Mapping[str, int]
    rows: Sequence[Row]
    figures: Figures
    most_held: Mapping[str, int]
    """Instances at one instant by pool, warm pools included."""
    is_product: bool = False
    passes: int = 0
    cpu_s: float = 0.0
    """CPU seconds of all passes."""
    refused_claims: int = 0
    idle_warm_gpu_h: float = 0.0
    """GPU-hours that warm pools kept without a job; they are on the bill and in no other figure."""

    def as_json(self) -> dict[str, Any]:
        facts = {"seed": self.seed, "algorithm": self.algorithm, "capacity": dict(self.capacity)}
        held = {"most_held": dict(self.most_held)}
        if not self.is_product:
            return facts | held | self.figures.as_json()
        product = {
            "passes": self.passes,
            "cpu_s": round(self.cpu_s, 3),
            "refused_claims": self.refused_claims,
            "idle_warm_gpu_h": round(self.idle_warm_gpu_h, 4),
        }
        return facts | held | product | self.figures.as_json()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The jobs, pools and account that every decider gets."""

    jobs: Sequence[TraceJob]
    capacity: Mapping[str, int]
    """Instances of each pool."""
    account: AccountBounds | None = None
    """Bounds of the account; None means it allows everything."""


def run_of(decider: Decider, world: World, *, seed: int, progress: Progress | None = None) -> Run:
    jobs, capacity = world.jobs, world.capacity
    history = history_of(jobs, world.account, asks=decider.asks)
    tallies = replayed(decider, history, capacity, progress=progress)
    rows = rows_of(attempt for tally in tallies for attempt in tally.attempts)
    held = {pool: sum(tally.most_held.values()) for pool, tally in zip(capacity, tallies, strict=True)}
    return Run(
        seed=seed,
        algorithm=decider.label,
        capacity=capacity,
        rows=rows,
        figures=figures(rows, jobs, capacity),
        most_held=held if decider.is_product else most_in_use(rows),
        is_product=decider.is_product,
        passes=sum(tally.passes for tally in tallies),
        cpu_s=sum(tally.cpu_s for tally in tallies),
        refused_claims=sum(tally.refused_claims for tally in tallies),
        idle_warm_gpu_h=sum(
            (warm_time.until_s - warm_time.since_s)
            * warm_time.instances
            * POOLS[warm_time.pool].gpus
            / HOUR_S
            for tally in tallies
            for warm_time in tally.warm
        ),
    )


def model() -> dict[str, Any]:
    """Return the constants of the model that the cells were replayed in, for a report."""
    return {
        "cold_s": COLD_START.seconds,
        "warm_s": WARM_START.seconds,
        "restore_s": RESTORE.seconds,
        "stop_s": STOP.seconds,
        "longest_run_s": LONGEST_RUN_S,
        "weights": {klass.name.lower(): weight for klass, weight in WEIGHTS.items()},
    }
