"""One trace replayed with one seed after the other, by both algorithms; seeds run side by side."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from benchmarks.replay.figures import Figures, capacities, figures, most_in_use
from benchmarks.replay.jobs import DAY_S, HOUR_S, POOLS, TraceJob, jobs_of
from benchmarks.replay.naive import NaiveQueue
from benchmarks.replay.policy import policy_for
from benchmarks.replay.product import Product
from benchmarks.replay.site import Row, Site
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
    answers: list[Answer] = []
    for rules in policy_for(run.capacity, shortest_first=setting.shortest_first).pools:
        questions = Questions(waits, estimator, seed=run.seed)
        site = Site(job for job in jobs if job.pool == rules.name)
        site.run(Product(site, rules, questions=questions))
        answers += questions.answers
    return answers


def _naive(jobs: Sequence[TraceJob], capacity: Mapping[str, int], seed: int) -> Run:
    rows: list[Row] = []
    for pool, count in capacity.items():
        site = Site(job for job in jobs if job.pool == pool)
        rows += site.run(NaiveQueue(site, count))
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
    rows: list[Row] = []
    deciders: dict[str, Product] = {}
    for rules in policy_for(capacity, shortest_first=shortest_first).pools:
        site = Site(job for job in jobs if job.pool == rules.name)
        deciders[rules.name] = Product(site, rules)
        rows += site.run(deciders[rules.name])
    return Run(
        seed=seed,
        algorithm=PRODUCT,
        capacity=capacity,
        rows=rows,
        figures=figures(rows, jobs, capacity),
        most_held={pool: decider.most_held for pool, decider in deciders.items()},
        passes=sum(decider.passes for decider in deciders.values()),
        cpu_s=sum(decider.cpu_s for decider in deciders.values()),
        refused_claims=sum(decider.refused_claims for decider in deciders.values()),
        idle_warm_gpu_h=sum(
            decider.idle_warm_s * POOLS[pool].gpus / HOUR_S for pool, decider in deciders.items()
        ),
    )
