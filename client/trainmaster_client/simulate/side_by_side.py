"""Several policies on one history, in processes beside each other."""

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import SynchronizedArray

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine import PoolNames, Progress, add, groups, nothing_yet, replay_pools
from trainmaster_client.simulate.past_jobs import History
from trainmaster_client.simulate.replays import Replay
from trainmaster_client.simulate.tally import Tally

FEW_JOBS = 500
"""Up to so many, of all replays together, processes of their own would cost more than they save."""
REPORT_SECONDS = 0.2
"""Between two reports of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What one process does at a time: nothing in it depends on another unit."""

    number: int
    replay: int
    """Which of the policies."""
    pools: PoolNames
    jobs: int
    """How much work it is, about."""


def side_by_side(
    history: History,
    policies: Sequence[tuple[str, Policy]],
    *,
    progress: Progress | None = None,
    processes: int | None = None,
) -> list[Replay]:
    """A replay of each policy, in their order; the same whatever the number of processes.

    Args:
        history: Whose jobs are submitted again, when they were.
        policies: With the label of each.
        progress: Hears of the share that is done, in this process.
        processes: At most; None: one for each processor.
    """
    found = [nothing_yet(history, policy, label=label) for label, policy in policies]
    units = _units(history, policies)
    workers = max(min(len(units), processes or os.cpu_count() or 1), 1)
    if workers == 1 or len(history.jobs) * len(policies) <= FEW_JOBS:
        results = _in_turn(history, policies, units, progress)
    else:
        results = _beside(history, policies, units, workers, progress)
    for unit, tallies in zip(units, results, strict=True):
        add(found[unit.replay], tallies)
    return found


def _units(history: History, policies: Sequence[tuple[str, Policy]]) -> list[Unit]:
    units: list[Unit] = []
    for index, (_, policy) in enumerate(policies):
        for pools in groups(policy):
            types = {one for pool in policy.pools if pool.name in pools for one in pool.instance_types}
            jobs = sum(not types.isdisjoint(job.instances) for job in history.jobs)
            units.append(Unit(number=len(units), replay=index, pools=pools, jobs=jobs))
    return units


def _in_turn(
    history: History,
    policies: Sequence[tuple[str, Policy]],
    units: Sequence[Unit],
    progress: Progress | None,
) -> list[list[Tally]]:
    shares = _Shares(units, progress)
    results: list[list[Tally]] = []
    for unit in units:

        def report(share: float, number: int = unit.number) -> None:
            shares.done[number] = share
            shares.report()

        _, policy = policies[unit.replay]
        results.append(replay_pools(history, policy, unit.pools, progress=report))
    return results


class _Shares:
    """How far each unit is, and all of them together."""

    def __init__(self, units: Sequence[Unit], progress: Progress | None) -> None:
        self.done: list[float] = [0.0] * len(units)
        self._weights = [unit.jobs + 1 for unit in units]
        self._progress = progress

    def report(self) -> None:
        if self._progress is not None:
            done = sum(share * weight for share, weight in zip(self.done, self._weights, strict=True))
            self._progress(done / sum(self._weights))


# ---- in processes of their own

_WORK: "list[_Work]" = []
"""In a process of its own: what all its units share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    history: History
    policies: Sequence[tuple[str, Policy]]
    shares: "SynchronizedArray[float]"


def _begin(
    history: History, policies: Sequence[tuple[str, Policy]], shares: "SynchronizedArray[float]"
) -> None:
    _WORK[:] = [_Work(history=history, policies=policies, shares=shares)]


def _run(unit: Unit) -> list[Tally]:
    (work,) = _WORK

    def report(share: float) -> None:
        work.shares[unit.number] = share

    _, policy = work.policies[unit.replay]
    return replay_pools(work.history, policy, unit.pools, progress=report)


def _beside(
    history: History,
    policies: Sequence[tuple[str, Policy]],
    units: Sequence[Unit],
    workers: int,
    progress: Progress | None,
) -> list[list[Tally]]:
    """The longest first, so that none is left over at the end."""
    context = multiprocessing.get_context("spawn")  # a fork of a server's threads may stand still
    shared, shares = context.Array("d", len(units)), _Shares(units, progress)
    begin = (history, list(policies), shared)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=begin) as pool:
        order = sorted(units, key=lambda unit: (-unit.jobs, unit.number))
        futures: dict[int, Future[list[Tally]]] = {unit.number: pool.submit(_run, unit) for unit in order}
        left = set(futures.values())
        while left:
            done, left = wait(left, timeout=REPORT_SECONDS, return_when=FIRST_COMPLETED)
            for one in done:
                one.result()  # a fault ends the others
            shares.done[:] = shared[:]
            shares.report()
    return [futures[unit.number].result() for unit in units]
