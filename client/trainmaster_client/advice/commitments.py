"""Finds the hourly commitment of a Savings Plan that would have saved most, from hours that are over.

A commitment is a sum in USD that is paid each hour for one or three years, used or not. At a discount ``d``
(0 to 1) a commitment of ``c`` USD an hour pays for what costs ``c / (1 - d)`` USD an hour on demand; use
above that is paid on demand. If an hour's use would cost ``u`` USD on demand, then over a period

    saved(c) = sum over the hours of min(u, c / (1 - d)) - c

A dollar more of cover saves ``d`` in an hour that uses it and loses ``1 - d`` in one that does not. So the
best cover is where the share of hours above it falls to ``1 - d``: of ``n`` hours in ascending order the
``ceil(d * n)``-th. Where several are equally good, this is the smallest of them.

Savings Plans are discounts on on-demand prices. Managed spot and training plans have prices of their own, and
whether a plan covers warm pools could not be confirmed: all three are left out, which errs to the safe side.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.jobs.instances import Capacity

HOUR = timedelta(hours=1)
SHORTEST = 24
"""Hours below which nothing is said: not even a day and its night."""
_TENTH = 10
_ON_DEMAND, _SPOT, _PLAN = "on-demand", "spot", "plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeUse:
    """One instance type on demand; each number is for one hour, in the order of time."""

    used: tuple[float, ...]
    """Mean instances that jobs held."""
    capacity: float
    """The most instances that the pools had in any of the hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastUse:
    """Use of instances in whole hours that follow each other."""

    since: datetime
    hours: int
    by_type: Mapping[str, TypeUse]
    left_out: Mapping[str, float]
    """Instance-hours that are not on-demand use, by kind: spot, training plan, warm pool."""

    @property
    def until(self) -> datetime:
        return self.since + self.hours * HOUR

    @property
    def types(self) -> list[str]:
        """Return the types that were used at all, sorted."""
        return sorted(name for name, use in self.by_type.items() if any(use.used))


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyBase:
    """Instances of a type that were in use at least as often as a commitment for them has to be used."""

    instance_type: str
    instances: float
    """Rounded down to a tenth; 0 if there is no steady use."""
    capacity: float
    share_of_hours: float
    """Share of the hours in which at least so many were in use, 0 to 1; 1 - discount or more."""
    mean: float
    usd_per_hour: Decimal | None
    """Price of one instance; None if it is unknown, and then it is in no sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """A commitment against past hours."""

    discount: Decimal
    """Between 0 and 1."""
    covers: float
    """USD an hour at on-demand prices."""
    use: float
    """Share of the cover that was used, 0 to 1; below ``break_even_use`` it costs more than it saves."""
    saved: float
    """USD over all hours; negative if it would have cost more than on demand."""

    @property
    def usd_per_hour(self) -> float:
        """Return the sum to commit to."""
        return self.covers * float(1 - self.discount)

    @property
    def break_even_use(self) -> float:
        return float(1 - self.discount)


def past_use(points: Iterable[Mapping[str, Any]]) -> PastUse:
    """Read points of ``GET /pools/history`` with a step of an hour, oldest first.

    Raises:
        ValueError: There are none, or one does not follow the one before by an hour.
        KeyError, TypeError, AttributeError: They are not such points.
    """
    rows = list(points)
    instants = [datetime.fromisoformat(row["at"]) for row in rows]
    if not rows or any(at != instants[0] + number * HOUR for number, at in enumerate(instants)):
        raise ValueError("the points are not hours that follow each other")
    names = {name for row in rows for name in row[_ON_DEMAND] if Capacity(name).is_on_demand}
    return PastUse(
        since=instants[0],
        hours=len(rows),
        by_type={name: _type_use(name, rows) for name in sorted(names)},
        left_out=_left_out(rows),
    )


def hourly_usd(past: PastUse, prices: PriceTable) -> tuple[float, ...]:
    """Return what each hour's use costs on demand, in USD; types without a price count as nothing."""
    sums = [0.0] * past.hours
    for name, use in past.by_type.items():
        price = float(prices.usd_per_hour(name) or 0)
        for hour, instances in enumerate(use.used):
            sums[hour] += price * instances
    return tuple(sums)


def best_commitment(hourly: Sequence[float], discount: Decimal) -> Commitment:
    """Return the commitment that would have saved most; it covers nothing where none would have saved.

    Args:
        hourly: USD at on-demand prices, one for each hour; at least one.
        discount: Between 0 and 1, both excluded.
    """
    return assess(hourly, discount, covers=_at_rank(hourly, discount))


def assess(hourly: Sequence[float], discount: Decimal, *, covers: float) -> Commitment:
    """Hold any commitment against past hours; ``covers`` is in USD an hour at on-demand prices."""
    used = math.fsum(min(usd, covers) for usd in hourly)
    paid = covers * len(hourly)
    return Commitment(
        discount=discount,
        covers=covers,
        use=used / paid if paid else 0.0,
        saved=used - paid * float(1 - discount),
    )


def steady_base(past: PastUse, discount: Decimal, prices: PriceTable) -> list[SteadyBase]:
    """Return the steady use of each type that was used, what costs most an hour first."""
    bases = [_base(past, name, discount, prices) for name in past.types]
    return sorted(
        bases, key=lambda base: (-base.instances * float(base.usd_per_hour or 0), base.instance_type)
    )


def _base(past: PastUse, name: str, discount: Decimal, prices: PriceTable) -> SteadyBase:
    use = past.by_type[name]
    # Rounded first: 2.3 * 10 is 22.999... in floats, and the API gives three digits.
    instances = math.floor(round(_at_rank(use.used, discount) * _TENTH, 2)) / _TENTH
    return SteadyBase(
        instance_type=name,
        instances=instances,
        capacity=use.capacity,
        share_of_hours=sum(used >= instances for used in use.used) / past.hours,
        mean=math.fsum(use.used) / past.hours,
        usd_per_hour=prices.usd_per_hour(name),
    )


def _at_rank(values: Sequence[float], discount: Decimal) -> float:
    """Return the value at rank ``ceil(discount * n)`` in ascending order.

    The discount is a decimal, because 0.07 * 100 is more than 7 in floats and its ceiling 8.
    """
    return sorted(values)[math.ceil(discount * len(values)) - 1]


def _type_use(name: str, rows: Sequence[Mapping[str, Any]]) -> TypeUse:
    states = [row[_ON_DEMAND].get(name) or {} for row in rows]
    return TypeUse(
        used=tuple(float(state.get("used") or 0) for state in states),
        capacity=max(float(state.get("capacity") or 0) for state in states),
    )


def _left_out(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    sums = {"spot": 0.0, "training plan": 0.0, "warm pool": 0.0}
    for row in rows:
        sums["spot"] += _used(row[_SPOT].values())
        sums["training plan"] += _used((row.get(_PLAN) or {}).values())  # only where a pool has plans
        for name, state in row[_ON_DEMAND].items():
            if Capacity(name).is_on_demand:
                sums["warm pool"] += float(state.get("warm") or 0)
    return sums


def _used(states: Iterable[Mapping[str, Any]]) -> float:
    return math.fsum(float(state.get("used") or 0) for state in states)
