"""The order of a pool's queue: priority, age, length, and what teams have used."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from trainmaster.core.policy.findings import Location
from trainmaster.core.policy.keys import Keys, Section, key, key_or_off
from trainmaster.core.policy.kinds import ByName, Duration, Flag, Number, Whole
from trainmaster.core.policy.names import NAME
from trainmaster.core.request.options import MAX_PRIORITY

# Without ageing a step of priority must outweigh any wait.
NO_AGING_STEP = timedelta(days=36_525)  # 100 years
PRIORITY_POINTS = Whole(least=1, most=MAX_PRIORITY)
# Shorter than an hour, or longer than a year, nobody's share of the recent past is meant.
_HALF_LIFE = Duration(least=timedelta(hours=1), most=timedelta(days=365))
_SHARE = Number(least=0.001, most=1_000_000)
_BY_LENGTH = "length-left"


def is_by_length(order_key: str) -> bool:
    """Tell whether the scores of an order count how long a job is likely to train."""
    return order_key.startswith(_BY_LENGTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aging(Section):
    """The priority that waiting adds: each ``per`` is worth ``add`` points."""

    per: timedelta = key(
        Duration(least=timedelta(seconds=1)), "24h", "Waiting this long is worth `add` points of priority."
    )
    add: int = key(PRIORITY_POINTS, 1, "Points of priority.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FairShare(Section):
    """How a team's recent use of a pool, against its share, moves its jobs in the order."""

    half_life: timedelta = key(
        _HALF_LIFE, "7d", "After this long what a team has used counts half: the memory of the order."
    )
    weight: int = key(
        Whole(most=MAX_PRIORITY),
        0,
        "Points of priority that a team's jobs lose when it has used twice its share, and gain at half. "
        "At most three times as many. `0`: off.",
    )
    shares: Mapping[str, float] = key(
        ByName(NAME, _SHARE),
        {},
        "By team: its part, in proportion to those of the other teams with jobs in the pool. A team that is "
        "not named has 1.",
        example="{vision: 3, speech: 1}",
    )

    def check(self, at: Location) -> None:
        if self.shares and not self.weight and at.is_sound("weight"):
            at.below("shares").warn("have no effect: the weight is 0", "write a weight, e.g. 10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Section):
    aging: Aging | None = key_or_off(
        Keys(Aging),
        {},
        "What waiting adds to the priority. `off`: priority alone decides, age only among equals.",
    )
    backfill: bool = key(
        Flag(), True, "Whether a job may start before one that waits for capacity, if it cannot delay it."
    )
    shortest_first: bool = key(Flag(), False, "Whether short jobs go before long ones.")
    fair_share: FairShare = key(
        Keys(FairShare), {}, "Whether teams that have used more than their share go later."
    )

    @property
    def key(self) -> str:
        """Text that differs between two orders exactly when some job has another score in them."""
        by = _BY_LENGTH if self.shortest_first else "age"
        return f"{by}-{Fraction(*self.step)}"

    @property
    def step(self) -> tuple[int, int]:
        """Milliseconds of age, and the points of priority that they are worth."""
        aging = self.aging or Aging(per=NO_AGING_STEP, add=1)
        return aging.per // timedelta(milliseconds=1), aging.add
