"""One trace replayed with one seed after the other, by both algorithms; seeds run side by side."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from trainmaster_client.simulate.engine.plain_pool import PlainPool

from benchmarks.replay.cells import Run, World, run_of
from benchmarks.replay.deciders import Decider, tuned_rules
from benchmarks.replay.figures import capacities
from benchmarks.replay.jobs import DAY_S, TraceJob, jobs_of
from benchmarks.replay.policy import policy_for
from benchmarks.replay.requested_times import Requests
from benchmarks.replay.rows import history_of
from benchmarks.replay.waits import Answer, Estimator, asked, sampled

NAIVE, PRODUCT = "naive", "product"
_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The trace to replay, and how."""

    trace: Sequence[Mapping[str, str]]
    load: float
    wide: bool
    shortest_first: bool
    days: float | None
    made_up: bool = False
    requests: Requests = Requests.DRAWN

    @property
    def days_long(self) -> float:
        """Days up to the last submission, or as long as was asked for."""
        whole = max(float(row["submit_s"]) for row in self.trace) / DAY_S
        return whole if self.days is None else min(whole, self.days)

    def jobs(self, seed: int) -> list[TraceJob]:
        return jobs_of(self.trace, seed=seed, wide=self.wide, days=self.days, requests=self.requests)


def replay(setting: Setting, seeds: Sequence[int]) -> list[Run]:
    """Replay both algorithms with each seed."""
    return [run for runs in _side_by_side(partial(replay_seed, setting), seeds) for run in runs]


def ask(setting: Setting, runs: Iterable[Run], *, count: int, estimator: Estimator) -> list[Answer]:
    """Replay the product again, and ask for start estimates on the way: ``count`` over all seeds."""
    products = [run for run in runs if run.algorithm == PRODUCT]
    each = -(-count // len(products))
    answered = _side_by_side(partial(_ask_run, setting, each, estimator), products)
    return [answer for answers in answered for answer in answers][:count]


def replay_seed(setting: Setting, seed: int) -> tuple[Run, Run]:
    """Replay the plain queue and the product."""
    jobs = setting.jobs(seed)
    capacity = capacities(jobs, load=setting.load)
    tuned = partial(tuned_rules, shortest_first=setting.shortest_first)
    product = Decider(label=PRODUCT, title="the policy of this benchmark", rules=tuned)
    naive = Decider(label=NAIVE, title="the plain queue", queue=PlainPool)
    world = World(jobs=jobs, capacity=capacity)
    return run_of(naive, world, seed=seed), run_of(product, world, seed=seed)


def _side_by_side(work: Callable[[_In], _Out], each: Sequence[_In]) -> list[_Out]:
    """Run the work in processes of its own if there is more than one entry."""
    workers = min(len(each), os.cpu_count() or 1)
    if workers == 1:
        return [work(entry) for entry in each]
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as processes:
        return list(processes.map(work, each))


def _ask_run(setting: Setting, count: int, estimator: Estimator, run: Run) -> list[Answer]:
    jobs = setting.jobs(run.seed)
    waits = sampled(jobs, run.rows, count=count, seed=run.seed)
    policy = policy_for(run.capacity, shortest_first=setting.shortest_first)
    return asked(waits, history_of(jobs), policy, estimator=estimator, seed=run.seed)
