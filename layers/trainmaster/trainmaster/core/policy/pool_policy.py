"""One pool of the policy document: its instances, its queue, and what teams may count on in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction

from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.policy.calendar import MOST_ENTRIES, CalendarEntry, CapacityFrom, check_calendar
from trainmaster.core.policy.findings import Location, nearest
from trainmaster.core.policy.keys import Keys, Section, key, needed
from trainmaster.core.policy.kinds import ByName, Duration, duration_text, list_of
from trainmaster.core.policy.names import COUNTS, NAME, NAME_HINT
from trainmaster.core.policy.plan_windows import (
    PlanChange,
    PlanCount,
    PlanSeen,
    changes_of,
    count_at,
    entries_of,
)
from trainmaster.core.policy.pool_elastic import Elastic
from trainmaster.core.policy.pool_limits import Limits, WarmPool
from trainmaster.core.policy.pool_order import Order
from trainmaster.core.policy.pool_overrides import Overrides
from trainmaster.core.policy.pool_preemption import Preemption
from trainmaster.core.policy.pool_quotas import Quota, TeamQuota
from trainmaster.core.policy.reservation import (
    MOST_RESERVATIONS,
    Reservation,
    check_reservations,
    warn_of_small_quotas,
)
from trainmaster.core.policy.training_plans import MOST_PLANS, PlanEntry
from trainmaster.core.request.request_shapes import INSTANCE_TYPES

UNMANAGED = "-"
"""Stands in place of a pool's name for jobs that belong to none. No pool can have this name."""

# Bounds of MaxPendingTimeInSeconds: SageMaker API reference, StoppingCondition.
_CAPACITY_WAIT = Duration(least=timedelta(minutes=30), most=timedelta(days=28))
_LONG_LOAN = timedelta(hours=4)
"""Longest time that a team can be expected to wait for instances that it has lent."""
_NO_TYPES_HINT = "write capacity: {TYPE: COUNT}, 0 while it drains; or remove the pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPolicy(Section):
    name: str = needed(NAME, f"The pool's name: {NAME_HINT}.", stand_in="", hint=NAME_HINT)
    capacity: Mapping[str, int] = key(
        COUNTS, {}, "On-demand instances by type. 0 drains a type.", example="{ml.p5.48xlarge: 2}"
    )
    spot_capacity: Mapping[str, int] = key(
        COUNTS, {}, "Managed spot instances by type, counted apart.", example="{ml.g5.12xlarge: 8}"
    )
    order: Order = key(Keys(Order), {}, "The order of the queue.")
    preemption: Preemption = key(Keys(Preemption), {}, "When a waiting job may stop running ones.")
    capacity_wait: timedelta = key(
        _CAPACITY_WAIT,
        "30m",
        "`MaxPendingTimeInSeconds` of attempts on `ml.p*`, `ml.g*` and `ml.trn*`, unless the request has its "
        "own.",
    )
    quotas: Mapping[str, Quota] = key(
        ByName(NAME, TeamQuota()),
        {},
        "By team: the on-demand instances that it may count on. Spot instances are outside quotas.",
        example="{vision: {nominal: {ml.p5.48xlarge: 4}, borrowing_limit: {ml.p5.48xlarge: 2}}}",
    )
    """If empty, no team borrows. Otherwise a team that is not named has a nominal quota of nothing."""
    elastic: Elastic = key(Keys(Elastic), {}, "When an elastic job grows into instances that are free.")
    warm_pool: WarmPool = key(Keys(WarmPool), {}, "Instances kept ready after an on-demand job.")
    limits: Limits = key(Keys(Limits), {}, "Limits of each team in the pool.")
    overrides: Overrides = key(
        Keys(Overrides),
        {},
        "Fields that the pool writes into each request at its submission, before rules judge it. Jobs that "
        "wait already keep theirs.",
    )
    calendar: tuple[CalendarEntry, ...] = key(
        list_of(Keys(CalendarEntry), "write a list of entries"),
        [],
        "Other capacities at times of the week or between two instants; of two at one time the later in the "
        f"list counts. At most {MOST_ENTRIES}.",
        example='[{every: "Mon-Fri 08:00-18:00", timezone: Europe/Berlin, capacity: {ml.p5.48xlarge: 1}}]',
    )
    reservations: tuple[Reservation, ...] = key(
        list_of(Keys(Reservation), "write a list of reservations"),
        [],
        f"Instances that are one team's alone between two instants. At most {MOST_RESERVATIONS}.",
        example="[{name: demo-day, team: vision, from: 2026-12-01T08:00Z, to: 2026-12-01T20:00Z, "
        "instances: {ml.p5.48xlarge: 1}}]",
    )
    plans: tuple[PlanEntry, ...] = key(
        list_of(Keys(PlanEntry), "write a list of plans"),
        [],
        f"SageMaker training plans, whose instances are counted apart. At most {MOST_PLANS}.",
        example='[{arn: "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring", drain: 10m}]',
    )
    base: Mapping[str, int] | None = None
    """``capacity`` as written, where ``capacity`` is that of an instant of the calendar."""
    stops: frozenset[str] = frozenset()
    """Types that the calendar has lowered: what runs above the capacity is stopped."""
    reserved: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Instances of ``capacity`` that are a team's alone at this instant, by team and type."""
    ahead: tuple[CapacityFrom, ...] = ()
    """Changes by the calendar and by reservations that are to come, in order; weeks, not for ever."""
    seen_plans: Mapping[str, PlanSeen] = field(default_factory=dict)
    """The plans as SageMaker described them, by ARN."""
    plan_counts: Mapping[Capacity, PlanCount] = field(default_factory=dict)
    """Instances of the plans at an instant."""
    plans_ahead: tuple[PlanChange, ...] = ()
    """Changes of those that are to come, in order."""

    @property
    def instance_types(self) -> frozenset[str]:
        return frozenset(self.capacity) | frozenset(self.spot_capacity)

    @property
    def most_capacity(self) -> Mapping[str, int]:
        """On-demand instances by type that there are at some time of the calendar."""
        most = dict(self.base or self.capacity)
        for entry in self.calendar:
            for instance_type, count in entry.capacity.items():
                most[instance_type] = max(most.get(instance_type, 0), count)
        return most

    @property
    def known_plans(self) -> tuple[tuple[PlanEntry, PlanSeen], ...]:
        """The plans of which SageMaker has told something, in the order of the policy."""
        return tuple(entries_of(self.plans, self.seen_plans))

    def with_plans(self, seen: Mapping[str, PlanSeen], *, now: datetime, until: datetime) -> "PoolPolicy":
        """Return the pool with the instances that its plans have at an instant.

        Args:
            seen: What SageMaker has told of plans, by ARN.
            now: The instant, UTC.
            until: The instant up to which changes ahead are of interest.
        """
        known = tuple(entries_of(self.plans, seen))
        changes = (
            change for entry, plan in known for change in changes_of(plan, entry.drain, now=now, until=until)
        )
        return replace(
            self,
            seen_plans={entry.arn: plan for entry, plan in known},
            plan_counts={plan.capacity_key: count_at(plan, entry.drain, now) for entry, plan in known},
            plans_ahead=tuple(sorted(changes, key=lambda change: (change.at, change.capacity))),
        )

    @property
    def plans_unlimited(self) -> Mapping[Capacity, PlanCount]:
        """All instances of the plans, as if their windows were open."""
        return {
            plan.capacity_key: PlanCount(usable=plan.total, kept=plan.total) for _, plan in self.known_plans
        }

    def since(self, change: CapacityFrom | PlanChange) -> "PoolPolicy":
        """Return the pool as it is from a change of its calendar, reservations or plans on."""
        if isinstance(change, PlanChange):
            return replace(
                self,
                plan_counts={**self.plan_counts, change.capacity: change.count},
                plans_ahead=tuple(later for later in self.plans_ahead if later is not change),
            )
        return replace(
            self,
            capacity=change.capacity,
            base=self.base or self.capacity,
            stops=change.stops,
            reserved=change.reserved,
            ahead=tuple(later for later in self.ahead if later.at > change.at),
        )

    def states_ahead(self, *, until: datetime) -> Iterator[tuple[datetime, "PoolPolicy"]]:
        """Yield each instant at which the pool changes, and the pool as it is from then on.

        Args:
            until: The last instant of interest; changes of the same instant count as one.
        """
        pool = self
        changes: list[CapacityFrom | PlanChange] = [*self.ahead, *self.plans_ahead]
        for at in sorted({change.at for change in changes if change.at <= until}):
            for change in changes:
                if change.at == at:
                    pool = pool.since(change)
            yield at, pool

    def boost_ms(self, priority: int) -> int:
        """Return how many milliseconds earlier a job of this priority counts as having entered the queue."""
        per_ms, add = self.order.step
        return priority * per_ms // add

    @property
    def point_ms(self) -> Fraction:
        """Milliseconds of age that a point of priority is worth."""
        return Fraction(*self.order.step)

    @property
    def order_key(self) -> str:
        return self.order.key

    def check(self, at: Location) -> None:
        quotas = at.below("quotas")
        if at.is_sound("capacity"):
            self._refuse_too_much(quotas)
            for team, quota in self.quotas.items():
                self._warn_of_idle_limits(quota, quotas.below(team).below("borrowing_limit"))
        check_calendar(self.calendar, self.capacity, at)
        check_reservations(self.reservations, self.capacity, at)
        warn_of_small_quotas(self.reservations, self.quotas, at.below("reservations"))
        if self.quotas and at.is_sound("preemption"):
            self._warn_of_slow_reclaims(at.below("preemption"))
        self._warn_of_unknown_types(at)
        if not self.instance_types and at.is_sound("capacity", "spot_capacity"):
            at.warn("has no instance types: no job can wait in it", _NO_TYPES_HINT)

    def _warn_of_unknown_types(self, at: Location) -> None:
        """Warn of an unknown type; it is no error, as AWS may have it by now.

        A stored document does not warn again: it was accepted with the type.
        """
        if at.findings.is_lenient:
            return
        for key_, counts in (("capacity", self.capacity), ("spot_capacity", self.spot_capacity)):
            for instance_type in counts:
                if instance_type not in INSTANCE_TYPES:
                    at.below(key_).below(instance_type).warn(
                        "is not among the known instance types",
                        nearest(instance_type, INSTANCE_TYPES) or "ignore this if AWS has it by now",
                    )

    def _refuse_too_much(self, at: Location) -> None:
        for instance_type, there in self.capacity.items():
            promised = sum(quota.nominal.get(instance_type, 0) for quota in self.quotas.values())
            if promised > there:
                at.refuse(
                    f"the nominal quotas of {instance_type} add up to {promised}, the pool has {there}",
                    f"lower them to {there} in all, or raise the capacity",
                )

    def _warn_of_slow_reclaims(self, at: Location) -> None:
        """Warn of settings that keep all jobs from being stopped: they keep a team from what it has lent."""
        if not self.preemption.enabled:
            message = "a team gets back what it has lent only when the jobs on it end"
            at.below("enabled").warn(message, "write true, or a borrowing_limit of 0 for each team")
        elif self.preemption.min_runtime > _LONG_LOAN:
            message = f"a team waits up to {duration_text(self.preemption.min_runtime)} for what it has lent"
            at.below("min_runtime").warn(message, f"write at most {duration_text(_LONG_LOAN)}")

    def _warn_of_idle_limits(self, quota: Quota, at: Location) -> None:
        for instance_type, limit in (quota.borrowing_limit or {}).items():
            nominal = quota.nominal.get(instance_type, 0)
            rest = max(self.capacity[instance_type] - nominal, 0)
            if limit > rest:
                at.below(instance_type).warn(
                    f"limits nothing: beyond the team's {nominal} the pool has {rest}, the limit is {limit}",
                    f"write less than {rest}, or leave it out",
                )


UNMANAGED_POOL = PoolPolicy(
    name=UNMANAGED,
    capacity={},
    preemption=Preemption(enabled=False),
    warm_pool=WarmPool(keep_alive=timedelta(), retain=timedelta()),
)
"""Pool of adopted jobs whose types no pool has; these always find room, and are never preempted."""
