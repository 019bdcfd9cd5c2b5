"""On-demand prices of SageMaker training in us-east-1, and what instances cost for a time.

The table is transcribed by hand from published figures. Each family says where its figures come
from and how old the oldest of them is. Where one is wrong for an account (another region, a private price, a
change since), the policy's ``prices`` goes before it. A type that is not here has no price until the policy
gives it one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import ROUND_UP, Decimal
from types import MappingProxyType

from trainmaster.core.jobs.instances import Capacity, Vector

PRICE_LIST = "AWS Price List API, AmazonSageMaker, as quoted in public source code"
PRICING_PAGE = "the SageMaker pricing page, as quoted in public source code"
SPOT_SHARE = 0.5
"""Share of the on-demand price assumed for spot. AWS says up to 90 % less; the bill comes later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Instance types whose prices have one source."""

    name: str
    prices: Mapping[str, str]
    """USD per hour by instance size, which is what follows the family in the type's name."""
    as_of: str
    """Year and month of the oldest figure, as its source gives it."""
    source: str
    doubt: str = ""
    """Reason why a figure may not be that of training in us-east-1; empty if there is none."""


FAMILIES = (
    Family(
        name="ml.m5",
        prices={
            "large": "0.115",
            "xlarge": "0.23",
            "2xlarge": "0.461",
            "4xlarge": "0.922",
            "12xlarge": "2.765",
            "24xlarge": "5.53",
        },
        as_of="2024",
        source=PRICE_LIST,
        doubt="up to 4xlarge confirmed for us-west-2 in 2026-09, large for us-east-1 in 2026-08",
    ),
    Family(
        name="ml.c5",
        prices={
            "xlarge": "0.204",
            "2xlarge": "0.408",
            "4xlarge": "0.816",
            "9xlarge": "1.836",
            "18xlarge": "3.672",
        },
        as_of="2024",
        source=PRICING_PAGE,
        doubt="up to 2xlarge confirmed for us-west-2 in 2026-09",
    ),
    Family(
        name="ml.g4dn",
        prices={
            "xlarge": "0.7364",
            "2xlarge": "0.94",
            "4xlarge": "1.505",
            "8xlarge": "2.72",
            "12xlarge": "4.89",
            "16xlarge": "5.44",
        },
        as_of="2021-11",
        source=PRICING_PAGE,
        doubt="up to 2xlarge confirmed for us-west-2 in 2026-09",
    ),
    Family(
        name="ml.g5",
        prices={
            "xlarge": "1.408",
            "2xlarge": "1.515",
            "4xlarge": "2.03",
            "8xlarge": "3.06",
            "12xlarge": "7.09",
            "16xlarge": "5.12",
            "24xlarge": "10.18",
            "48xlarge": "20.36",
        },
        as_of="2026-07",
        source=PRICE_LIST,
        doubt="16xlarge, 24xlarge and 48xlarge are training in us-west-2",
    ),
    Family(
        name="ml.g6",
        prices={
            "xlarge": "1.127",
            "2xlarge": "1.222",
            "4xlarge": "1.654",
            "8xlarge": "2.518",
            "12xlarge": "5.752",
            "16xlarge": "4.246",
            "24xlarge": "8.344",
            "48xlarge": "16.688",
        },
        as_of="2024",
        source=PRICE_LIST,
        doubt="16xlarge is of 2024; xlarge, 8xlarge, 24xlarge and 48xlarge are training in us-west-2",
    ),
    Family(
        name="ml.g6e",
        prices={
            "xlarge": "2.61",
            "2xlarge": "2.80",
            "4xlarge": "3.76",
            "8xlarge": "5.6607",
            "12xlarge": "13.12",
            "24xlarge": "18.83",
            "48xlarge": "37.66",
        },
        as_of="2026-06",
        source=PRICE_LIST,
        doubt="24xlarge and 48xlarge are training in us-west-2",
    ),
    Family(
        name="ml.p3",
        prices={"2xlarge": "3.825", "8xlarge": "14.688", "16xlarge": "28.152"},
        as_of="2021-11",
        source=PRICING_PAGE,
        doubt="on its way out: us-west-2 had no price for it in 2026-09",
    ),
    Family(
        name="ml.p3dn",
        prices={"24xlarge": "35.894"},
        as_of="2021-11",
        source=PRICING_PAGE,
    ),
    Family(
        name="ml.p4d",
        prices={"24xlarge": "25.251286"},
        as_of="2026-09",
        source=PRICE_LIST,
        doubt="of notebooks in us-west-2",
    ),
    Family(
        name="ml.p4de",
        prices={"24xlarge": "31.5641075"},
        as_of="2026",
        source="a public launch script for training in us-east-1",
        doubt="one source, without a date of its own",
    ),
    Family(
        name="ml.p5",
        prices={"48xlarge": "63.296"},
        as_of="2026-09",
        source=PRICE_LIST,
        doubt="of notebooks in us-west-2; a price calculator has the same for training",
    ),
    Family(
        name="ml.trn1",
        prices={"32xlarge": "28.497"},
        as_of="2024",
        source="aws-samples/foundation-model-benchmarking-tool, pricing.yml",
        doubt="a table for endpoints",
    ),
)

USD_PER_HOUR: Mapping[str, Decimal] = MappingProxyType(
    {f"{family.name}.{size}": Decimal(usd) for family in FAMILIES for size, usd in family.prices.items()},
)


SHIPPED_REGION = "us-east-1"
"""The region whose prices are in the table."""

_CENT = Decimal("0.01")
_MICROSECONDS_PER_HOUR = timedelta(hours=1) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """On-demand prices of SageMaker training by instance type, in USD per hour of one instance."""

    overrides: Mapping[str, Decimal] = field(default_factory=dict)
    """The policy's ``prices``."""
    plans: Mapping[Capacity, Decimal] = field(default_factory=dict)
    """USD per hour of one instance of a training plan: its share of the plan's fee."""

    def usd_per_hour(self, instance_type: str) -> Decimal | None:
        """Return the price of one instance, the policy's first; None if it is unknown."""
        return self.overrides.get(instance_type, USD_PER_HOUR.get(instance_type))

    def vector_usd_per_hour(self, vector: Vector) -> Decimal | None:
        """Return the price of all instances together; None if that of one type is unknown.

        Spot counts as on-demand: its discount is in the billable time, and the worst case has none.
        """
        total = Decimal(0)
        for capacity, count in vector.items():
            price = self._of(capacity)
            if price is None:
                return None
            total += price * count
        return total

    def _of(self, capacity: Capacity) -> Decimal | None:
        """Return the price of one instance; of any training plan the highest that there is."""
        if not capacity.is_plan:
            return self.usd_per_hour(capacity.instance_type)
        if capacity.plan is not None:
            return self.plans.get(capacity)
        prices = (usd for plan, usd in self.plans.items() if plan.instance_type == capacity.instance_type)
        return max(prices, default=None)

    def dearest_usd_per_hour(self, vectors: Iterable[Vector]) -> Decimal | None:
        """Return the price of the most expensive form a job may run in.

        None if one has no price, or there is none.
        """
        prices = [self.vector_usd_per_hour(vector) for vector in vectors]
        known = [price for price in prices if price is not None]
        return max(known) if known and len(known) == len(prices) else None

    def shipped(self, instance_types: Iterable[str]) -> tuple[str, ...]:
        """Return, sorted, the types whose price comes from the table of ``SHIPPED_REGION``."""
        return tuple(
            sorted(
                {
                    instance_type
                    for instance_type in instance_types
                    if instance_type in USD_PER_HOUR.keys() - self.overrides
                }
            )
        )

    def unpriced(self, instance_types: Iterable[str]) -> tuple[str, ...]:
        """Return, sorted, the types whose price is unknown."""
        return tuple(
            sorted(
                {
                    instance_type
                    for instance_type in instance_types
                    if self.usd_per_hour(instance_type) is None
                }
            )
        )


def cost_cents(usd_per_hour: Decimal | None, time: timedelta) -> int | None:
    """Return what instances of this price cost for a time, in cents, rounded up to the cent.

    Args:
        usd_per_hour: On-demand price of all instances together; None if it is unknown, and then so is the
            cost.
        time: For an attempt that has ended, its ``BillableTimeInSeconds``, which is per instance, and for
            managed spot already the discounted time, so the on-demand price is the right factor. For the
            worst case of one that starts, its ``MaxRuntimeInSeconds``.

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
    """Write cents as they stand in sentences: ``$1,234.50``."""
    return f"${Decimal(cents).scaleb(-2):,.2f}"
