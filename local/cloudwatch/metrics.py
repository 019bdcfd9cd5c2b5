"""Keeps measurements by the minute, and computes statistics over any window of whole minutes."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

MINUTE = timedelta(minutes=1)

STATISTICS = ("Average", "Maximum", "Minimum", "SampleCount", "Sum")

_ANY_UNIT = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]] = frozenset()
    """(name, value); a metric with other dimensions is another metric."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read the metric of a document with Namespace, MetricName and perhaps Dimensions."""
        dimensions = document.get("Dimensions", ())
        return cls(
            namespace=document["Namespace"],
            name=document["MetricName"],
            dimensions=frozenset((dimension["Name"], dimension["Value"]) for dimension in dimensions),
        )

    def as_document(self) -> dict[str, Any]:
        dimensions = [{"Name": name, "Value": value} for name, value in sorted(self.dimensions)]
        return {"Namespace": self.namespace, "MetricName": self.name, "Dimensions": dimensions}


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Any number of samples, as far as statistics need them."""

    count: float
    total: float
    least: float
    most: float

    @classmethod
    def of(cls, datum: Mapping[str, Any]) -> Self:
        """Read a member of MetricData of PutMetricData."""
        if (known := datum.get("StatisticValues")) is not None:
            return cls(
                count=known["SampleCount"],
                total=known["Sum"],
                least=known["Minimum"],
                most=known["Maximum"],
            )
        values = datum.get("Values") or [datum.get("Value", 0.0)]
        counts = datum.get("Counts") or [1.0] * len(values)
        return cls(
            count=sum(counts),
            total=sum(value * count for value, count in zip(values, counts, strict=True)),
            least=min(values),
            most=max(values),
        )

    def joined(self, other: "Samples") -> "Samples":
        return Samples(
            count=self.count + other.count,
            total=self.total + other.total,
            least=min(self.least, other.least),
            most=max(self.most, other.most),
        )

    def statistic(self, name: str) -> float:
        """Return one of ``STATISTICS``."""
        return {
            "Average": self.total / self.count if self.count else math.nan,
            "Maximum": self.most,
            "Minimum": self.least,
            "SampleCount": self.count,
            "Sum": self.total,
        }[name]


_Minutes = dict[datetime, Samples]


class MetricStore:
    """Not safe for several threads at once; whoever owns it keeps them apart."""

    def __init__(self) -> None:
        self._metrics: dict[Metric, dict[str, _Minutes]] = {}

    def put(self, metric: Metric, samples: Samples, *, at: datetime, unit: str = "None") -> None:
        """Add to the minute that ``at`` lies in."""
        minutes = self._metrics.setdefault(metric, {}).setdefault(unit, {})
        minute = minute_of(at)
        before = minutes.get(minute)
        minutes[minute] = samples if before is None else before.joined(samples)

    def samples(
        self, metric: Metric, *, start: datetime, end: datetime, unit: str | None = _ANY_UNIT
    ) -> Samples | None:
        """Join the minutes from ``start`` on and before ``end``; None if nothing was measured."""
        joined: Samples | None = None
        for minutes in self._minutes(metric, unit):
            for minute in _between(start, end):
                if (measured := minutes.get(minute)) is not None:
                    joined = measured if joined is None else joined.joined(measured)
        return joined

    def units(self, metric: Metric) -> tuple[str, ...]:
        """Return the units that the metric's samples came in."""
        return tuple(self._metrics.get(metric, ()))

    def metrics(self) -> Iterable[Metric]:
        """Return all metrics that were ever measured."""
        return self._metrics

    def _minutes(self, metric: Metric, unit: str | None) -> Iterator[_Minutes]:
        for name, minutes in self._metrics.get(metric, {}).items():
            if unit in (_ANY_UNIT, name):
                yield minutes


def minute_of(instant: datetime) -> datetime:
    """Return when the instant's minute began."""
    return instant.replace(second=0, microsecond=0)


def _between(start: datetime, end: datetime) -> Iterator[datetime]:
    minute = minute_of(start)
    while minute < end:
        yield minute
        minute += MINUTE
