"""The shipped table: on-demand prices of SageMaker training in us-east-1, in USD per hour of one instance.

Transcribed by hand from published figures; nothing here is computed. Each family says where its figures come
from and how old the oldest of them is. Where one is wrong for an account (another region, a private price, a
change since), the policy's ``prices`` goes before it. A type that is not here has no price until the policy
gives it one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

PRICE_LIST = "AWS Price List API, AmazonSageMaker, as quoted in public source code"
PRICING_PAGE = "the SageMaker pricing page, as quoted in public source code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Instance types whose prices have one source."""

    name: str
    prices: Mapping[str, str]
    """By what stands behind the family in the type's name."""
    as_of: str
    """Year and month of the oldest figure, as its source gives it."""
    source: str
    doubt: str = ""
    """Why a figure may not be that of training in us-east-1."""


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
