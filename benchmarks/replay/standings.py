"""How deciders compare: each figure as a ratio to the plain queue, and the share of the gap to the bound."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from benchmarks.replay.cells import Run
from benchmarks.replay.deciders import BASES, PLAIN, PLAIN_NEWEST
from benchmarks.replay.figures import flat
from benchmarks.replay.jobs import WEIGHTS
from benchmarks.replay.requested_times import Requests

CLASSES = tuple(klass.name.lower() for klass in sorted(WEIGHTS, reverse=True))
GOODPUT = "goodput"
"""The only figure of which more is better."""
COMPARED: Sequence[str] = (
    "weighted_delay_h",
    *(f"{measure}_delay_h.{klass}" for measure in ("mean", "p50", "p99") for klass in CLASSES),
    "longest_delay_h",
    "waste_gpu_h",
    "startup_gpu_h",
    GOODPUT,
    "preemptions",
    "idle_warm_gpu_h",
)

DAY_DELAY = "weighted_delay_h.day"
"""The weighted delay where every job requests a day."""

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """One window with one load and seed: the figures of each decider, and the bound of all."""

    window: int
    load: float
    seed: int
    requests: Requests = Requests.DRAWN
    figures: Mapping[str, Figures]
    """Figures by decider."""
    bound: Figures

    def base(self, figure: str) -> float:
        """Return the figure of the better plain queue."""
        values = [self.figures[label][figure] for label in BASES]
        return max(values) if figure == GOODPUT else min(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One figure of one decider over all heats."""

    mean: float
    ratio: float | None
    """Mean over heats of the ratio to the better plain queue; None where that has nothing of it."""
    spread: float | None
    """Standard deviation of the ratio; None of a single heat."""
    least: float | None
    """Least of the seeds: of each seed the mean ratio over windows."""
    most: float | None
    """Most of the seeds."""
    to_oldest: float | None
    """Mean ratio to the plain queue that stops the oldest."""
    to_newest: float | None
    closed: float | None
    """Share of the gap between the better plain queue and the bound, of the sums over all heats."""

    def as_json(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: None if value is None else round(value, 4) for name, value in fields.items()}


def heat_figures(run: Run) -> Figures:
    return dict(flat(run.figures.as_json())) | {"idle_warm_gpu_h": run.idle_warm_gpu_h}


def standing(heats: Sequence[Heat], label: str, figure: str) -> Standing:
    def base(heat: Heat) -> float:
        return heat.base(figure)

    values = [heat.figures[label][figure] for heat in heats]
    ratios = ratios_to(heats, label, figure, base)
    by_seed = _seed_ratios(heats, label, figure, base)
    bases, best = sum(base(heat) for heat in heats), sum(heat.bound[figure] for heat in heats)
    return Standing(
        mean=fmean(values),
        ratio=fmean(ratios) if ratios else None,
        spread=stdev(ratios) if len(ratios) > 1 else None,
        least=min(by_seed, default=None),
        most=max(by_seed, default=None),
        to_oldest=_mean_ratio(heats, label, figure, PLAIN),
        to_newest=_mean_ratio(heats, label, figure, PLAIN_NEWEST),
        closed=None if math.isclose(bases, best, abs_tol=1e-9) else (bases - sum(values)) / (bases - best),
    )


def ratios_to(heats: Iterable[Heat], label: str, figure: str, base: Callable[[Heat], float]) -> list[float]:
    """Return the ratios in the heats whose base is not 0."""
    return [heat.figures[label][figure] / base(heat) for heat in heats if base(heat)]


def _seed_ratios(
    heats: Sequence[Heat], label: str, figure: str, base: Callable[[Heat], float]
) -> list[float]:
    """Return the mean ratio of each seed that has one."""
    by_seed: dict[int, list[Heat]] = {}
    for heat in heats:
        by_seed.setdefault(heat.seed, []).append(heat)
    ratios = (ratios_to(mine, label, figure, base) for mine in by_seed.values())
    return [fmean(of_seed) for of_seed in ratios if of_seed]


def _mean_ratio(heats: Sequence[Heat], label: str, figure: str, to: str) -> float | None:
    ratios = ratios_to(heats, label, figure, lambda heat: heat.figures[to][figure])
    return fmean(ratios) if ratios else None


def standings(heats: Sequence[Heat]) -> dict[str, dict[str, Standing]]:
    """Return the standings by decider and figure; ``DAY_DELAY`` only of those that were replayed with it."""
    drawn, day = (drawn_heats(heats), [heat for heat in heats if heat.requests is Requests.DAY])
    labels = drawn[0].figures if drawn else {}
    rows = {label: {figure: standing(drawn, label, figure) for figure in COMPARED} for label in labels}
    for label in day[0].figures if day else {}:
        rows.setdefault(label, {})[DAY_DELAY] = standing(day, label, "weighted_delay_h")
    return rows


def drawn_heats(heats: Iterable[Heat]) -> list[Heat]:
    """Return the heats in which jobs did not all request a day."""
    return [heat for heat in heats if heat.requests is Requests.DRAWN]
