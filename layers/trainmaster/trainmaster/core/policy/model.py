"""The policy as the planner, the API and identity see it: frozen, complete, already checked."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

from trainmaster.core.errors import FieldError
from trainmaster.core.policy.governing import Governing
from trainmaster.core.policy.images import Image
from trainmaster.core.policy.principals import PrincipalPattern
from trainmaster.core.policy.rules import Allowed, Rules
from trainmaster.core.request.options import MAX_PRIORITY
from trainmaster.core.request.s3_uri import S3Location

DEFAULT_TEAM = "default"
"""Everybody's team as long as the policy has no teams."""
UNMANAGED_TEAM = "unmanaged"
"""Of jobs that went round the queue and belong to no team that the policy knows: admins alone see them."""
STRAYS = "-"
"""In place of a pool's name: what belongs to none. No pool can be called so."""

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
class Quota:
    """What one team may count on in a pool. It counts on-demand instances; spot runs outside of it."""

    nominal: Mapping[str, int] = field(default_factory=dict)
    """Instances by type that are the team's own. A type left out: none."""
    borrowing_limit: Mapping[str, int] | None = None
    """Instances by type beyond nominal. None, or a type left out: whatever others leave idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPool:
    keep_alive: timedelta = timedelta()
    """KeepAlivePeriodInSeconds of on-demand attempts. Zero: no warm pools."""
    retain: timedelta = timedelta()
    """How long a warm pool is kept that no waiting job can use."""
    max_idle: timedelta = timedelta(minutes=30)
    """How long a warm pool is kept in all, whoever waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of each team in the pool."""

    max_waiting: int = 5000
    max_submissions_per_minute: int = 100


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
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    """By team. Empty: nobody borrows. Otherwise a team that is not named has a nominal quota of nothing."""
    warm_pool: WarmPool = field(default_factory=WarmPool)
    limits: Limits = field(default_factory=Limits)

    @property
    def instance_types(self) -> frozenset[str]:
        return frozenset(self.capacity) | frozenset(self.spot_capacity)

    def boost_ms(self, priority: int) -> int:
        """How much earlier than it did a job of this priority counts as having entered."""
        per_ms, add = self._step
        return priority * per_ms // add

    @property
    def order_key(self) -> str:
        """Differs between two orders exactly when some job would have another score in them."""
        by = "length" if self.order.shortest_first else "age"
        return f"{by}-{Fraction(*self._step)}"

    @property
    def _step(self) -> tuple[int, int]:
        """Milliseconds of age, and the points of priority that they are worth."""
        aging = self.order.aging or Aging(per=NO_AGING_STEP, add=1)
        return aging.per // timedelta(milliseconds=1), aging.add


class AtLimit(StrEnum):
    """What becomes of a job that the month's budget does not cover."""

    WAIT = "wait"
    SPOT = "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    usd_per_month: Decimal
    at_limit: AtLimit = AtLimit.WAIT


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPolicy:
    name: str
    principals: tuple[PrincipalPattern, ...] = ()
    max_priority: int = MAX_PRIORITY
    budget: Budget | None = None
    roles: Allowed[str] | None = None
    """What its jobs may run under; None, here and in the two below: whatever the rules allow."""
    images: Allowed[Image] | None = None
    s3_prefixes: Allowed[S3Location] | None = None
    rules: Rules = field(default_factory=Rules)
    """On its jobs, beside those of the whole policy."""


STRAY_POOL = PoolPolicy(name=STRAYS, capacity={}, preemption=Preemption(enabled=False))
"""Rules for adopted jobs whose types no pool has; room is theirs as far as they ask for it."""


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
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    """USD per instance-hour by type; goes before the shipped table."""
    governing: Governing = field(default_factory=Governing)
    """What becomes of jobs while they run, fail or are interrupted."""
    rules: Rules = field(default_factory=Rules)
    """On every job."""

    @property
    def spot_max_wait(self) -> timedelta:
        return self.governing.spot.max_wait

    def pool(self, name: str) -> PoolPolicy | None:
        """None: there is no such pool. ``STRAYS`` is always there, though it is none of ``pools``."""
        if name == STRAYS:
            return STRAY_POOL
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
