"""All cells of a tournament, spread over the processors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trainmaster_client.simulate.engine.past_jobs import AccountBounds
from trainmaster_client.simulate.engine.replay_progress import Progress
from trainmaster_client.simulate.io.processes import Work, spread

from benchmarks.replay.bound import Bound, bound_of
from benchmarks.replay.cells import Run, World, run_of
from benchmarks.replay.deciders import BASES, DEFAULT, SHORTEST_FIRST, Decider
from benchmarks.replay.elastic_jobs import with_widths
from benchmarks.replay.figures import capacities
from benchmarks.replay.jobs import jobs_of
from benchmarks.replay.requested_times import Requests
from benchmarks.replay.windows import Window

FEW_JOBS = 500
"""Jobs of all windows together up to which processes would cost more than they save."""
DAY_DECIDERS = frozenset({*BASES, DEFAULT, SHORTEST_FIRST})
"""Labels of the deciders that are also replayed with a requested time of a day for all jobs."""
_PRODUCT_WEIGHT, _QUEUE_WEIGHT, _BOUND_WEIGHT = 1.0, 0.05, 0.6
"""Approximate time of a replay, relative to that of the product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One window with one load and seed: every decider gets the same jobs in the same pools."""

    window: int
    """Index of the window."""
    load: float
    seed: int
    requests: Requests = Requests.DRAWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    draw: Draw
    decider: Decider | None
    """The decider; None computes the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The comparison: windows, draws and deciders."""

    windows: Sequence[Window]
    draws: Sequence[Draw]
    deciders: Sequence[Decider]
    elastic: float = 0.0
    """Share of the jobs that is elastic."""
    account: Callable[[Mapping[str, int]], AccountBounds] | None = None
    """Makes the account's bounds from the instances of the pools; None allows everything."""

    def deciders_of(self, draw: Draw) -> list[Decider]:
        """Return the deciders that replay the draw: with a day for all those that ``DAY_DECIDERS`` names."""
        is_day = draw.requests is Requests.DAY
        return [decider for decider in self.deciders if not is_day or decider.label in DAY_DECIDERS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    draw: Draw
    runs: Sequence[Run]
    bound: Bound


def play(field: Field, *, progress: Progress | None = None, processes: int | None = None) -> list[Outcome]:
    """Replay every decider in every draw; the result does not depend on the number of processes."""
    units = [
        Unit(draw=draw, decider=decider)
        for draw in field.draws
        for decider in (None, *field.deciders_of(draw))
    ]
    weights = [_weight(unit, field.windows[unit.draw.window]) for unit in units]
    work = Work(task=_played, shared=field, units=units, weights=weights)
    few = sum(len(window.rows) for window in field.windows) <= FEW_JOBS
    results = iter(spread(work, progress=progress, processes=1 if few else processes))
    return [_outcome(draw, [next(results) for _ in (None, *field.deciders_of(draw))]) for draw in field.draws]


def _outcome(draw: Draw, results: Sequence[Run | Bound]) -> Outcome:
    (bound,) = (result for result in results if isinstance(result, Bound))
    return Outcome(draw=draw, runs=[result for result in results if isinstance(result, Run)], bound=bound)


def _weight(unit: Unit, window: Window) -> float:
    if unit.decider is None:
        return _BOUND_WEIGHT * len(window.rows)
    return (_PRODUCT_WEIGHT if unit.decider.is_product else _QUEUE_WEIGHT) * len(window.rows)


def _played(field: Field, unit: Unit, progress: Progress) -> Run | Bound:
    world = world_of(field, unit.draw)
    if unit.decider is None:
        return bound_of(world.jobs, world.capacity)
    return run_of(unit.decider, world, seed=unit.draw.seed, progress=progress)


def world_of(field: Field, draw: Draw) -> World:
    """Return the world that every decider gets in the draw."""
    jobs = jobs_of(field.windows[draw.window].rows, seed=draw.seed, requests=draw.requests)
    capacity = capacities(jobs, load=draw.load)
    if field.elastic:
        jobs = with_widths(jobs, capacity, share=field.elastic, seed=draw.seed)
    account = None if field.account is None else field.account(capacity)
    return World(jobs=jobs, capacity=capacity, account=account)
