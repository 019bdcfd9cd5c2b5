"""The table of figures: a row each, a cell a column, and what changed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.outcomes import Fate
from trainmaster_client.simulate.comparison.wording import (
    change_text,
    count_text,
    hours_text,
    money_text,
    points_text,
    share_text,
    time_text,
)

Better = Literal["lower", "higher", "neither"]
Value = float | None
_GOOD = {"lower": -1, "higher": 1, "neither": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    id: str
    """Id of the figure in the report."""
    label: str
    better: Better
    values: Sequence[Value]
    """Values by column."""
    cells: Sequence[str]
    changes: Sequence[str]
    """Changes by column, against the base; empty for the base itself."""
    text: Callable[[Value], str]
    """Writes a value of this figure."""
    verdicts: Sequence[int]
    """Verdicts by column: 1 better than the base, -1 worse, 0 neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    id: str
    label: str
    """``{unit}``: what instances are counted by."""
    value: Callable[[Column], Value]
    text: Callable[[Value], str] = time_text
    better: Better = "lower"
    change: Callable[[Value, Value], str] = change_text
    is_optional: bool = False
    """Left out where it is 0 in every column."""


def _fate(fate: Fate) -> Callable[[Column], Value]:
    return lambda column: column.fates[fate]


_KINDS = (
    _Kind(id="wait_p50_s", label="wait, median", value=lambda column: column.waits.p50_s),
    _Kind(id="wait_p90_s", label="wait, 9 of 10 jobs within", value=lambda column: column.waits.p90_s),
    _Kind(id="wait_p99_s", label="wait, 99 of 100 within", value=lambda column: column.waits.p99_s),
    _Kind(
        id="weighted_delay_h",
        label="weighted delay, mean",
        value=lambda column: column.figures.weighted_delay_h,
        text=hours_text,
    ),
    _Kind(
        id="goodput",
        label="capacity that trains usefully",
        value=lambda column: column.figures.goodput,
        text=share_text,
        better="higher",
        change=points_text,
    ),
    _Kind(
        id="utilisation",
        label="capacity in use",
        value=lambda column: column.figures.utilisation,
        text=share_text,
        better="neither",
        change=points_text,
    ),
    _Kind(
        id="waste_h",
        label="wasted {unit} hours",
        value=lambda column: column.figures.waste_h,
        text=count_text,
    ),
    _Kind(
        id="startup_h",
        label="start-up {unit} hours",
        value=lambda column: column.figures.startup_h,
        text=count_text,
    ),
    _Kind(
        id="idle_warm_h",
        label="idle warm {unit} hours",
        value=lambda column: column.figures.idle_warm_h,
        text=count_text,
        is_optional=True,
    ),
    _Kind(id="cost_usd", label="cost", value=lambda column: column.bill.total_usd, text=money_text),
    _Kind(
        id="idle_warm_usd",
        label="of it idle warm instances",
        value=lambda column: column.bill.idle_warm_usd,
        text=money_text,
        is_optional=True,
    ),
    _Kind(
        id="plan_fee_usd",
        label="of it fees of training plans",
        value=lambda column: column.bill.plans.fee_usd if column.bill.plans else 0.0,
        text=money_text,
        is_optional=True,
    ),
    _Kind(
        id="plan_unused_usd",
        label="of the fees unused",
        value=lambda column: column.bill.unused_plan_usd,
        text=money_text,
        is_optional=True,
    ),
    _Kind(
        id="plan_unused_h",
        label="unused instance hours of plans",
        value=lambda column: column.bill.plans.unused_h if column.bill.plans else 0.0,
        text=count_text,
        is_optional=True,
    ),
    _Kind(
        id="plan_use",
        label="use of training plans",
        value=lambda column: column.bill.plans.use if column.bill.plans else None,
        text=share_text,
        better="higher",
        change=points_text,
        is_optional=True,
    ),
    _Kind(
        id="preemptions",
        label="preemptions",
        value=lambda column: column.figures.preemptions,
        text=count_text,
        better="neither",
    ),
    _Kind(
        id="interruptions",
        label="spot interruptions",
        value=lambda column: column.figures.interruptions,
        text=count_text,
        is_optional=True,
    ),
    _Kind(
        id="ended",
        label="jobs ended",
        value=lambda column: sum(count for fate, count in column.fates.items() if fate.is_end),
        text=count_text,
        better="higher",
    ),
    _Kind(
        id="never_started",
        label="jobs that wait at the end",
        value=_fate(Fate.WAITING),
        text=count_text,
        is_optional=True,
    ),
    _Kind(
        id="running",
        label="jobs that run at the end",
        value=_fate(Fate.RUNNING),
        text=count_text,
        better="neither",
        is_optional=True,
    ),
    _Kind(
        id="refused",
        label="jobs refused",
        value=_fate(Fate.REFUSED),
        text=count_text,
        is_optional=True,
    ),
    _Kind(
        id="withdrawn",
        label="jobs withdrawn in the queue",
        value=_fate(Fate.WITHDRAWN),
        text=count_text,
        better="neither",
        is_optional=True,
    ),
    _Kind(
        id="never_eligible",
        label="jobs whose conditions never held",
        value=_fate(Fate.NEVER_ELIGIBLE),
        text=count_text,
        is_optional=True,
    ),
)
"""Figures in the order of the table."""


def figure_rows(comparison: Comparison) -> Iterator[FigureRow]:
    base = comparison.columns.index(comparison.base)
    for kind in _KINDS:
        values = [kind.value(column) for column in comparison.columns]
        if kind.is_optional and not any(values):
            continue
        before = values[base]
        changes = [
            "" if number == base else kind.change(before, value) for number, value in enumerate(values)
        ]
        yield FigureRow(
            id=kind.id,
            label=kind.label.replace("{unit}", comparison.devices.unit),
            better=kind.better,
            values=values,
            cells=[kind.text(value) for value in values],
            changes=changes,
            text=kind.text,
            verdicts=[_verdict(before, value, kind.better) for value in values],
        )


def _verdict(before: Value, after: Value, better: Better) -> int:
    if before is None or after is None or before == after:
        return 0
    return _GOOD[better] * (1 if after > before else -1)
