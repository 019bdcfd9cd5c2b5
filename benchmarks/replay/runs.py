"""One trace replayed with one seed after the other, by both algorithms; seeds run side by side."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from trainmaster_client.simulate.agenda import What
from trainmaster_client.simulate.engine import engine_of, groups, plain_queue, replay_pools
from trainmaster_client.simulate.pool_replay import PoolReplay

from benchmarks.replay.figures import Figures, capacities, figures, most_in_use
from benchmarks.replay.jobs import DAY_S, HOUR_S, POOLS, TraceJob, jobs_of
from benchmarks.replay.policy import policy_for
from benchmarks.replay.rows import Row, history_of, rows_of
from benchmarks.replay.waits import Answer, Estimator, Questions, sampled

NAIVE, PRODUCT = "naive", "product"
_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is replayed."""

    trace: Sequence[Mapping[str, str]]
    load: float
    wide: bool
    shortest_first: bool
    days: float | None
    made_up: bool = False

    @property
    def days_long(self) -> float:
        """Up to the last submission, or as long as was asked for."""
        whole = max(float(row["submit_s"]) for row in self.trace) / DAY_S
        return whole if self.days is None else min(whole, self.days)

    def jobs(self, seed: int) -> list[TraceJob]:
        return jobs_of(self.trace, seed=seed, wide=self.wide, days=self.days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One seed, replayed by one algorithm."""

    seed: int
    algorithm: str
    capacity: Mapping[str, int]
    rows: Sequence[Row]
    figures: Figures
    most_held: Mapping[str, int]
    """Instances at one instant by pool, warm pools included."""
    passes: int = 0
    cpu_s: float = 0.0
    """Of all passes."""
    refused_claims: int = 0
    idle_warm_gpu_h: float = 0.0
    """What warm pools kept without a job; on the bill, and in no other figure."""

    def as_json(self) -> dict[str, Any]:
        facts = {"seed": self.seed, "algorithm": self.algorithm, "capacity": dict(self.capacity)}
        held = {"most_held": dict(self.most_held)}
        if self.algorithm == NAIVE:
            return facts | held | self.figures.as_json()
        product = {
            "passes": self.passes,
            "cpu_s": round(self.cpu_s, 3),
            "refused_claims": self.refused_claims,
            "idle_warm_gpu_h": round(self.idle_warm_gpu_h, 4),
        }
        return facts | held | product | self.figures.as_json()


def replay(setting: Setting, seeds: Sequence[int]) -> list[Run]:
    """Both algorithms with each seed."""
    return [run for runs in _side_by_side(partial(replay_seed, setting), seeds) for run in runs]


def ask(setting: Setting, runs: Iterable[Run], *, count: int, estimator: Estimator) -> list[Answer]:
    """Replay the product again, and ask for start estimates on the way: ``count`` over all seeds."""
    products = [run for run in runs if run.algorithm == PRODUCT]
    each = -(-count // len(products))
    asked = _side_by_side(partial(_ask_run, setting, each, estimator), products)
    return [answer for answers in asked for answer in answers][:count]


def replay_seed(setting: Setting, seed: int) -> tuple[Run, Run]:
    """The plain queue, and the product."""
    jobs = setting.jobs(seed)
    capacity = capacities(jobs, load=setting.load)
    return _naive(jobs, capacity, seed), _product(jobs, capacity, seed, shortest_first=setting.shortest_first)


def _side_by_side(work: Callable[[_In], _Out], each: Sequence[_In]) -> list[_Out]:
    """In processes of their own where there is more than one."""
    workers = min(len(each), os.cpu_count() or 1)
    if workers == 1:
        return [work(one) for one in each]
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as processes:
        return list(processes.map(work, each))


def _ask_run(setting: Setting, count: int, estimator: Estimator, run: Run) -> list[Answer]:
    jobs = setting.jobs(run.seed)
    waits = sampled(jobs, run.rows, count=count, seed=run.seed)
    history, answers = history_of(jobs), list[Answer]()
    policy = policy_for(run.capacity, shortest_first=setting.shortest_first)
    for pools in groups(policy):
        questions = Questions(waits, estimator, seed=run.seed)
        engine = engine_of(history, policy, pools, PoolReplay.of)
        while (event := engine.step()) is not None:
            state = engine.pools[event.pool].state
            if event.what is What.SUBMITTED and event.job in state.lanes:
                questions.submitted(event.job, state, second=event.second)
        answers += questions.answers
    return answers


def _naive(jobs: Sequence[TraceJob], capacity: Mapping[str, int], seed: int) -> Run:
    policy = policy_for(capacity, shortest_first=False)
    rows = rows_of(plain_queue(history_of(jobs), policy).attempts)
    return Run(
        seed=seed,
        algorithm=NAIVE,
        capacity=capacity,
        rows=rows,
        figures=figures(rows, jobs, capacity),
        most_held=most_in_use(rows),
    )


def _product(
    jobs: Sequence[TraceJob], capacity: Mapping[str, int], seed: int, *, shortest_first: bool
) -> Run:
    policy, history = policy_for(capacity, shortest_first=shortest_first), history_of(jobs)
    found = {pool: tally for pool in capacity for tally in replay_pools(history, policy, (pool,))}
    rows = rows_of(attempt for tally in found.values() for attempt in tally.attempts)
    return Run(
        seed=seed,
        algorithm=PRODUCT,
        capacity=capacity,
        rows=rows,
        figures=figures(rows, jobs, capacity),
        most_held={pool: sum(tally.most_held.values()) for pool, tally in found.items()},
        passes=sum(tally.passes for tally in found.values()),
        cpu_s=sum(tally.cpu_s for tally in found.values()),
        refused_claims=sum(tally.refused_claims for tally in found.values()),
        idle_warm_gpu_h=sum(
            (one.until_s - one.since_s) * one.instances * POOLS[pool].gpus / HOUR_S
            for pool, tally in found.items()
            for one in tally.warm
        ),
    )
