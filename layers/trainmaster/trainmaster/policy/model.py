"""The policy as the planner, the API and identity see it: frozen, complete, already checked."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from trainmaster.errors import FieldError
from trainmaster.policy.principals import PrincipalPattern
from trainmaster.user_options import MAX_PRIORITY

# Without ageing a step of priority must outweigh any wait.
NO_AGING_STEP = timedelta(days=36_525)  # 100 years


@dataclass(frozen=True, slots=True, kw_only=True)
class Aging:
    """Waiting for ``per`` is worth ``add`` points of priority."""

    per: timedelta = timedelta(hours=24)
    add: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    aging: Aging | None = field(default_factory=Aging)
    """None: priority alone decides, age only among equals."""
    backfill: bool = True
    shortest_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    enabled: bool = True
    min_priority_gap: int = 1
    min_runtime: timedelta = timedelta()
    """Productive time that an attempt is left alone for."""
    preempt_delay: timedelta = timedelta()
    """No preemption when enough is certain to become free within this time."""
    max_per_job: int = 3
    needs_checkpoint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPolicy:
    name: str
    capacity: Mapping[str, int]
    """On-demand instances by type."""
    spot_capacity: Mapping[str, int] = field(default_factory=dict)
    """Spot instances by type, counted apart."""
    order: Order = field(default_factory=Order)
    preemption: Preemption = field(default_factory=Preemption)
    capacity_wait: timedelta = timedelta(minutes=30)
    """MaxPendingTimeInSeconds on accelerated types."""

    @property
    def instance_types(self) -> frozenset[str]:
        return frozenset(self.capacity) | frozenset(self.spot_capacity)

    def boost_ms(self, priority: int) -> int:
        """How much earlier than it did a job of this priority counts as having entered."""
        aging = self.order.aging or Aging(per=NO_AGING_STEP, add=1)
        return priority * (aging.per // timedelta(milliseconds=1)) // aging.add


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPolicy:
    name: str
    principals: tuple[PrincipalPattern, ...] = ()
    max_priority: int = MAX_PRIORITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One checked document. Made by ``parse_policy`` alone."""

    pools: tuple[PoolPolicy, ...]
    teams: tuple[TeamPolicy, ...]
    admins: tuple[PrincipalPattern, ...]
    warnings: tuple[FieldError, ...]
    """What is legal, but not what its author may think."""
    source: Mapping[str, Any]
    """As written: people read back what they wrote, with the keys that only later versions act on."""

    def pool(self, name: str) -> PoolPolicy | None:
        return next((pool for pool in self.pools if pool.name == name), None)

    def pool_of(self, instance_types: Iterable[str]) -> PoolPolicy | None:
        """The one pool that owns all of these types; None when there is none such."""
        wanted = frozenset(instance_types)
        owners = (pool for pool in self.pools if wanted and wanted <= pool.instance_types)
        return next(owners, None)

    def team(self, name: str) -> TeamPolicy | None:
        return next((team for team in self.teams if team.name == name), None)

    def to_document(self) -> dict[str, Any]:
        """The JSON document; ``parse_policy`` makes this policy of it again."""
        return copy.deepcopy(dict(self.source))
