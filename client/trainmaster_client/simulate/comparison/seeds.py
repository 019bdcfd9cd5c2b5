"""The same comparison drawn several times: mean and standard deviation of each figure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from trainmaster_client.simulate.comparison.comparisons import Comparison
from trainmaster_client.simulate.comparison.figure_rows import FigureRow, figure_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Spread of one figure over the seeds."""

    id: str
    label: str
    means: Sequence[float | None]
    """Means by column; None if a seed has no such figure."""
    deviations: Sequence[float | None]
    """Standard deviations of the sample."""
    cells: Sequence[str]
    """``3.1h ± 4.2m``."""


def spreads(comparisons: Sequence[Comparison]) -> Iterator[Spread]:
    """Yield figures that every seed has, in the order of the table."""
    tables = [{row.id: row for row in figure_rows(comparison)} for comparison in comparisons]
    for row in tables[0].values():
        if all(row.id in table for table in tables):
            yield _spread([table[row.id] for table in tables])


def _spread(rows: Sequence[FigureRow]) -> Spread:
    first = rows[0]
    columns = list(zip(*(row.values for row in rows), strict=True))
    means = [_mean(values) for values in columns]
    deviations = [_deviation(values) for values in columns]
    return Spread(
        id=first.id,
        label=first.label,
        means=means,
        deviations=deviations,
        cells=[
            first.text(mean) if deviation is None else f"{first.text(mean)} ± {first.text(deviation)}"
            for mean, deviation in zip(means, deviations, strict=True)
        ],
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _deviation(values: Sequence[float | None]) -> float | None:
    """Return the standard deviation; None if there is no mean, or an infinite value."""
    known = [value for value in values if value is not None and not math.isinf(value)]
    return stdev(known) if len(known) == len(values) > 1 else None
