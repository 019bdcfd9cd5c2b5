"""Units of work that depend on nothing but what they share, in processes beside each other."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Any, Generic, TypeVar

from trainmaster_client.simulate.engine.replay_progress import Progress

REPORT_SECONDS = 0.2
"""Seconds between two reports of progress."""

S = TypeVar("S")
U = TypeVar("U")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[S, U, R]):
    """The work to do: a task over units that share data."""

    task: Callable[[S, U, Progress], R]
    """A function of a module, so that another process finds it."""
    shared: S
    units: Sequence[U]
    weights: Sequence[float]
    """Approximate time of each unit, in any measure."""


def spread(work: Work[S, U, R], *, progress: Progress | None = None, processes: int | None = None) -> list[R]:
    """Return the results in the order of the units; the same whatever the number of processes.

    Args:
        work: To be done.
        progress: Hears of the share that is done, in this process.
        processes: At most; None: one for each processor. With one, all is done in this one.
    """
    shares = _Shares(work.weights, progress)
    workers = min(len(work.units), processes or os.cpu_count() or 1)
    return _beside(work, workers, shares) if workers > 1 else _in_turn(work, shares)


class _Shares:
    """Progress of each unit, and of all of them together."""

    def __init__(self, weights: Sequence[float], progress: Progress | None) -> None:
        self._done = [0.0] * len(weights)
        self._weights = weights
        self._progress = progress

    def of_unit(self, number: int) -> Progress:
        def report(share: float) -> None:
            self._done[number] = share
            self._report()

        return report

    def of_all(self, done: Sequence[float]) -> None:
        self._done[:] = done
        self._report()

    def _report(self) -> None:
        if self._progress is not None:
            done = sum(share * weight for share, weight in zip(self._done, self._weights, strict=True))
            self._progress(done / sum(self._weights))


def _in_turn(work: Work[S, U, R], shares: _Shares) -> list[R]:
    return [work.task(work.shared, unit, shares.of_unit(number)) for number, unit in enumerate(work.units)]


# ---- in processes of their own

_MINE: list[Any] = []
"""State of a worker process: the work, and where it reports how far each unit is."""


def _begin(work: Work[S, U, R], done: "SynchronizedArray[float]") -> None:
    _MINE[:] = [work, done]


def _run(number: int) -> Any:  # noqa: ANN401  whatever the task gives
    work, done = _MINE

    def report(share: float) -> None:
        done[number] = share

    return work.task(work.shared, work.units[number], report)


def _beside(work: Work[S, U, R], workers: int, shares: _Shares) -> list[R]:
    """Run the units beside each other, the longest first, so that none is left over at the end."""
    context = multiprocessing.get_context("spawn")  # a fork of a server with threads may stand still
    done = context.Array("d", len(work.units))
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(work, done)) as pool:
        order = sorted(range(len(work.units)), key=lambda number: (-work.weights[number], number))
        futures: dict[int, Future[R]] = {number: pool.submit(_run, number) for number in order}
        left = set(futures.values())
        while left:
            over, left = wait(left, timeout=REPORT_SECONDS, return_when=FIRST_COMPLETED)
            for finished in over:
                finished.result()  # a fault ends the wait for the others
            shares.of_all(done[:])
    return [futures[number].result() for number in range(len(work.units))]
