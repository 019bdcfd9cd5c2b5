"""How deciders compare: each figure as a ratio to the plain queue, and the share of the gap to the bound."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from benchmarks.replay.bound import Bound
from benchmarks.replay.cells import Run
from benchmarks.replay.deciders import BASES, PLAIN, PLAIN_NEWEST
from benchmarks.replay.figures import flat
from benchmarks.replay.jobs import WEIGHTS

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

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """One window with one load and seed: the figures of each decider, and the bound of all."""

    window: int
    load: float
    seed: int
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


def heat(window: int, load: float, runs: Iterable[Run], bound: Bound) -> Heat:
    replays = list(runs)
    return Heat(
        window=window,
        load=load,
        seed=replays[0].seed,
        figures={run.algorithm: heat_figures(run) for run in replays},
        bound=bound.figures,
    )


def standing(heats: Sequence[Heat], label: str, figure: str) -> Standing:
    values = [heat.figures[label][figure] for heat in heats]
    ratios = ratios_to(heats, label, figure, lambda heat: heat.base(figure))
    base, best = (sum(heat.base(figure) for heat in heats), sum(heat.bound[figure] for heat in heats))
    return Standing(
        mean=fmean(values),
        ratio=fmean(ratios) if ratios else None,
        spread=stdev(ratios) if len(ratios) > 1 else None,
        to_oldest=_mean_ratio(heats, label, figure, PLAIN),
        to_newest=_mean_ratio(heats, label, figure, PLAIN_NEWEST),
        closed=None if math.isclose(base, best, abs_tol=1e-9) else (base - sum(values)) / (base - best),
    )


def ratios_to(heats: Iterable[Heat], label: str, figure: str, base: Callable[[Heat], float]) -> list[float]:
    """Return the ratios in the heats whose base is not 0."""
    return [heat.figures[label][figure] / base(heat) for heat in heats if base(heat)]


def _mean_ratio(heats: Sequence[Heat], label: str, figure: str, to: str) -> float | None:
    ratios = ratios_to(heats, label, figure, lambda heat: heat.figures[to][figure])
    return fmean(ratios) if ratios else None


def standings(heats: Sequence[Heat]) -> dict[str, dict[str, Standing]]:
    """Return the standings by decider and figure."""
    labels = heats[0].figures if heats else {}
    return {label: {figure: standing(heats, label, figure) for figure in COMPARED} for label in labels}
