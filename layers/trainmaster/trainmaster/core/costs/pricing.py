"""What instances cost: the shipped price table with the policy's figures before it, and the cost of a time.

Money is whole cents (``int``) wherever it is added up, and ``Decimal`` USD where it is a price. A price that
nobody knows is None, and so is every cost made of it: never nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import ROUND_UP, Decimal

from trainmaster.core.costs.prices import USD_PER_HOUR
from trainmaster.core.jobs.instances import Vector

_CENT = Decimal("0.01")
_MICROSECONDS_PER_HOUR = timedelta(hours=1) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """On-demand prices of SageMaker training by instance type, in USD per hour of one instance."""

    overrides: Mapping[str, Decimal] = field(default_factory=dict)
    """The policy's ``prices``."""

    def usd_per_hour(self, instance_type: str) -> Decimal | None:
        """None: the price of this type is unknown."""
        return self.overrides.get(instance_type, USD_PER_HOUR.get(instance_type))

    def vector_usd_per_hour(self, vector: Vector) -> Decimal | None:
        """Of all instances together; None if one type is unknown.

        Spot counts as on-demand: its discount is in the billable time, and the worst case has none.
        """
        total = Decimal(0)
        for capacity, count in vector.items():
            price = self.usd_per_hour(capacity.instance_type)
            if price is None:
                return None
            total += price * count
        return total

    def dearest_usd_per_hour(self, vectors: Iterable[Vector]) -> Decimal | None:
        """Of several forms that a job may run in the dearest; None if one has no price, or there is none."""
        prices = [self.vector_usd_per_hour(vector) for vector in vectors]
        known = [price for price in prices if price is not None]
        return max(known) if known and len(known) == len(prices) else None

    def unpriced(self, instance_types: Iterable[str]) -> tuple[str, ...]:
        """Those whose price is unknown, sorted."""
        return tuple(sorted({one for one in instance_types if self.usd_per_hour(one) is None}))


def cost_cents(usd_per_hour: Decimal | None, time: timedelta) -> int | None:
    """What instances of this price cost for a time, in cents, rounded up to the cent.

    Args:
        usd_per_hour: On-demand price of all instances together; None: unknown, and then so is the cost.
        time: For an attempt that has ended its ``BillableTimeInSeconds``, which is per instance, and for
            managed spot already the discounted time, so the on-demand price is the right factor. For the
            worst case of one that starts its ``MaxRuntimeInSeconds``.

    Raises:
        ValueError: ``time`` is negative.

    Source: SageMaker API reference, DescribeTrainingJob, BillableTimeInSeconds.
    """
    if time < timedelta():
        raise ValueError(f"the time must not be negative: {time}")
    if usd_per_hour is None:
        return None
    # Multiplied before it is divided: a third of an hour has no exact Decimal and would be rounded up a cent.
    usd = usd_per_hour * (time // timedelta(microseconds=1)) / _MICROSECONDS_PER_HOUR
    return int(usd.quantize(_CENT, rounding=ROUND_UP).scaleb(2))


def usd_text(cents: int) -> str:
    """For sentences: ``$1,234.50``."""
    return f"${Decimal(cents).scaleb(-2):,.2f}"
