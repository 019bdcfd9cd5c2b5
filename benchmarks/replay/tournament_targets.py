"""Defines what the product must reach in a tournament, and on which traces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from trainmaster_client.report import Report

from benchmarks.replay.bound import none_over
from benchmarks.replay.cells import Run
from benchmarks.replay.deciders import DECIDERS, DEFAULT, SHORTEST_FIRST
from benchmarks.replay.heats import Outcome
from benchmarks.replay.standings import CLASSES, GOODPUT, Heat, heat_figures, ratios_to, standing

TARGET_LOAD = 0.95
LEAST_DAYS = 3.0
"""Least days of a window."""
MAX_CPU_MS = 1.0
"""Most CPU milliseconds of a pass of the default policy, on average."""


class Kind(StrEnum):
    """Kinds of traces."""

    OWN = "own"
    """A file with the five columns, of whole jobs of a shared cluster."""
    OPENB = "openb"
    WORKLOAD = "workload"
    """A file in the Standard Workload Format; no target is for it."""
    MADE_UP = "made up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    id: str
    of: Kind
    measured: Callable[[Sequence[Heat]], float | None]
    at_most: float | None = None
    at_least: float | None = None
    decider: str = DEFAULT

    def met_by(self, value: float | None) -> bool:
        """Tell whether the value meets the target; None, a figure that the plain queue lacks, does."""
        if value is None:
            return True
        over = self.at_most is not None and value > self.at_most
        return not over and (self.at_least is None or value >= self.at_least)

    @property
    def expected(self) -> str:
        return f"<= {self.at_most}" if self.at_most is not None else f">= {self.at_least}"


def _to_plain(label: str, figure: str) -> Callable[[Sequence[Heat]], float | None]:
    """Measure the ratio to the plain queue that stops the oldest."""
    return lambda heats: standing(heats, label, figure).to_oldest


def _p99_of_high(heats: Sequence[Heat]) -> float | None:
    """Return the ratio to the better of both plain queues."""
    return standing(heats, DEFAULT, "p99_delay_h.high").ratio


def _goodput(heats: Sequence[Heat]) -> float:
    """Return the default policy's goodput as a share of that of the best queue of another kind."""
    others = [decider.label for decider in DECIDERS if not decider.is_product]

    def best(heat: Heat) -> float:
        return max(heat.figures[label][GOODPUT] for label in others if label in heat.figures)

    return fmean(ratios_to(heats, DEFAULT, GOODPUT, best))


def _worst_class(heats: Sequence[Heat]) -> float | None:
    ratios = [standing(heats, DEFAULT, f"mean_delay_h.{klass}").to_oldest for klass in CLASSES]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


TARGETS = (
    Target(id="p99-of-high", of=Kind.OWN, measured=_p99_of_high, at_most=1.0),
    Target(id="weighted-delay", of=Kind.OWN, measured=_to_plain(DEFAULT, "weighted_delay_h"), at_most=0.70),
    Target(
        id="delay-of-normal", of=Kind.OWN, measured=_to_plain(DEFAULT, "mean_delay_h.normal"), at_most=0.90
    ),
    Target(id="waste", of=Kind.OWN, measured=_to_plain(DEFAULT, "waste_gpu_h"), at_most=0.15),
    Target(id="start-up", of=Kind.OWN, measured=_to_plain(DEFAULT, "startup_gpu_h"), at_most=0.65),
    Target(id="goodput-to-the-best-other", of=Kind.OWN, measured=_goodput, at_least=1.0),
    Target(
        id="shortest-first-weighted-delay",
        of=Kind.OWN,
        measured=_to_plain(SHORTEST_FIRST, "weighted_delay_h"),
        at_most=0.45,
        decider=SHORTEST_FIRST,
    ),
    Target(
        id="shortest-first-longest-delay",
        of=Kind.OWN,
        measured=_to_plain(SHORTEST_FIRST, "longest_delay_h"),
        at_most=1.0,
        decider=SHORTEST_FIRST,
    ),
    Target(
        id="openb-weighted-delay",
        of=Kind.OPENB,
        measured=_to_plain(DEFAULT, "weighted_delay_h"),
        at_most=0.16,
    ),
    Target(id="openb-worst-class", of=Kind.OPENB, measured=_worst_class, at_most=1.0),
)


def unfit(target: Target, heats: Sequence[Heat], *, kind: Kind, days: float) -> str | None:
    """Say why the target is not for what was replayed; None if it is.

    Args:
        target: In question.
        heats: With the load of the targets.
        kind: Of the trace.
        days: Of a window.
    """
    if target.of is not kind:
        return f"the target is for a trace of kind {target.of}"
    if not heats:
        return f"the target is for load {TARGET_LOAD}"
    if target.decider not in heats[0].figures:
        return f"{target.decider} was left out"
    return f"the target is for windows of {LEAST_DAYS:g} days or more" if days < LEAST_DAYS else None


def check(report: Report, outcomes: Sequence[Outcome]) -> None:
    """Check the facts without which no figure means anything."""
    runs = [run for outcome in outcomes for run in outcome.runs]
    unfinished = sum(run.figures.unfinished for run in runs)
    report.check("jobs-that-are-not-finished", expected=0, actual=unfinished)
    over = [
        f"{run.algorithm}, {pool}: {held} of {run.capacity[pool]}"
        for run in runs
        for pool, held in run.most_held.items()
        if held > run.capacity[pool]
    ]
    report.check("capacity-is-never-exceeded", expected=[], actual=over)
    refused = sum(run.refused_claims for run in runs)
    report.check("starts-whose-claim-would-have-failed", expected=0, actual=refused)
    beaten = [
        f"{run.algorithm}: {found}"
        for outcome in outcomes
        for run in outcome.runs
        for found in none_over(heat_figures(run), outcome.bound)
    ]
    report.check("nobody-beats-the-bound", expected=[], actual=beaten)
    _check_cpu(report, [run for run in runs if run.algorithm == DEFAULT])


def _check_cpu(report: Report, runs: Sequence[Run]) -> None:
    passes = sum(run.passes for run in runs)
    expected = f"<= {MAX_CPU_MS}"
    if not passes:
        report.skip("cpu-ms-a-pass", reason=f"{DEFAULT} was left out", expected=expected)
        return
    milliseconds = round(1000 * sum(run.cpu_s for run in runs) / passes, 3)
    report.check("cpu-ms-a-pass", expected=expected, actual=milliseconds, ok=milliseconds <= MAX_CPU_MS)


def check_targets(report: Report, heats: Sequence[Heat], kind: Kind, *, days: float) -> None:
    mine = [heat for heat in heats if heat.load == TARGET_LOAD]
    for target in TARGETS:
        if target.of is not kind and kind is not Kind.MADE_UP:
            continue
        reason = unfit(target, mine, kind=kind, days=days)
        if reason is not None:
            report.skip(target.id, reason=reason, expected=target.expected)
            continue
        value = target.measured(mine)
        actual = None if value is None else round(value, 4)
        report.check(target.id, expected=target.expected, actual=actual, ok=target.met_by(actual))
