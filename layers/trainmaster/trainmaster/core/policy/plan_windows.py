"""The windows in which a training plan has instances, what it has as they pass, and when it is looked at.

SageMaker begins to end the instances of a window 30 minutes before it closes. Source: SageMaker developer
guide, training plans for training jobs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.jobs.instances import Capacity, plan_name
from trainmaster.core.policy.training_plans import PlanEntry

ENDS_BEFORE = timedelta(minutes=30)
"""Time before a window closes from which SageMaker ends the instances. Source: as above."""
PLANS_AHEAD = timedelta(days=182)
"""Time ahead in which windows are known: the longest plan. Source: SageMaker developer guide."""
USABLE = frozenset({"Scheduled", "Active"})
"""Statuses of plans, and of their parts, whose windows count. Source: API reference, TrainingPlanSummary."""
EVERY = timedelta(minutes=5)
"""Time between two looks at a plan."""
NEAR = timedelta(minutes=10)
"""Time around the beginning, closing and end of a window in which there is a look each minute."""
LOOKS_UNTIL_LOWERED = 2
"""Looks in a row at which fewer instances must be available than we leave, before they count as taken."""
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_SECOND = timedelta(seconds=1)
_LEAST_PRICE = Decimal("0.0001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time in which a plan has instances."""

    begin: datetime
    end: datetime
    instances: int
    status: str = "Scheduled"

    def closing(self, drain: timedelta) -> datetime:
        """Return the instant from which nothing may run in it, jobs that stop apart."""
        return self.end - ENDS_BEFORE - drain

    def is_open(self, now: datetime, *, drain: timedelta) -> bool:
        return self.status in USABLE and self.begin <= now < self.closing(drain)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSeen:
    """A plan as SageMaker last described it."""

    arn: str
    status: str
    instance_type: str
    """Empty: SageMaker has not said it yet."""
    total: int
    unhealthy: int = 0
    available: int | None = None
    """Instances that no job uses; None: SageMaker does not say."""
    fee_usd: Decimal | None = None
    windows: tuple[Window, ...] = ()
    unseen: int = 0
    """Instances in use by somebody whom the queue does not see."""
    lower: tuple[int, int] = (0, 0)
    """Looks in a row that found fewer available than the queue leaves, and by how many at least."""
    trouble: str | None = None
    """Why it could not be described since; None: the last look succeeded."""
    trouble_since: datetime | None = None

    @property
    def name(self) -> str:
        return plan_name(self.arn)

    @property
    def capacity_key(self) -> Capacity:
        return Capacity.of_plan(self.instance_type, self.name)

    @property
    def instance_hours(self) -> Fraction:
        """Hours of its instances in all its windows."""
        seconds = sum(window.instances * ((window.end - window.begin) // _SECOND) for window in self.windows)
        return Fraction(seconds, 3600)


def usd_per_hour(plan: PlanSeen, fee_usd: Decimal | None) -> Decimal | None:
    """Return the share of the fee of one instance for an hour; None where the fee or the hours are unknown.

    Args:
        plan: The plan, whose own fee counts if SageMaker reports it.
        fee_usd: The fee as the policy has it.
    """
    fee, hours = plan.fee_usd or fee_usd, plan.instance_hours
    if fee is None or not hours:
        return None
    return (fee * hours.denominator / hours.numerator).quantize(_LEAST_PRICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCount:
    """The instances of a plan at an instant."""

    usable: int
    """Instances that jobs may use."""
    kept: int
    """Instances that jobs may keep: those that are broken, or used by others, end no job of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChange:
    """The instances of a plan from an instant on."""

    at: datetime
    capacity: Capacity
    count: PlanCount


def count_at(plan: PlanSeen, drain: timedelta, now: datetime) -> PlanCount:
    if plan.status not in USABLE:
        return PlanCount(usable=0, kept=0)
    bought = sum(window.instances for window in plan.windows if window.is_open(now, drain=drain))
    kept = min(bought, plan.total)
    return PlanCount(usable=max(kept - plan.unhealthy - plan.unseen, 0), kept=kept)


def changes_of(plan: PlanSeen, drain: timedelta, *, now: datetime, until: datetime) -> Iterator[PlanChange]:
    """Yield the changes of its capacity after ``now``, in order."""
    instants = {at for window in plan.windows for at in (window.begin, window.closing(drain))}
    before = count_at(plan, drain, now)
    for at in sorted(instants):
        if now < at < until:
            count = count_at(plan, drain, at)
            if count != before:
                yield PlanChange(at=at, capacity=plan.capacity_key, count=count)
            before = count


def window_at(plan: PlanSeen, now: datetime) -> Window | None:
    """Return the window that an instant lies in, its last half hour included; None if it lies in none."""
    return next((window for window in plan.windows if window.begin <= now < window.end), None)


def is_closing(plan: PlanSeen, instant: datetime) -> bool:
    """Tell whether SageMaker ends instances of a window then, or is about to within ``NEAR``."""
    return any(window.end - ENDS_BEFORE - NEAR <= instant < window.end for window in plan.windows)


def paid_time(plan: PlanSeen, *, since: datetime, until: datetime, instances: int | None = None) -> timedelta:
    """Return the instance-time of its windows within a time.

    Args:
        plan: The plan.
        since: The first instant.
        until: The instant after the last.
        instances: Number of instances that count; None: those of each window.
    """
    inside = timedelta()
    for window in plan.windows:
        covered = max(min(window.end, until) - max(window.begin, since), timedelta())
        inside += covered * (window.instances if instances is None else instances)
    return inside


def next_window(plan: PlanSeen, now: datetime) -> Window | None:
    later = (window for window in plan.windows if window.begin > now and window.status in USABLE)
    return min(later, key=lambda window: window.begin, default=None)


def entries_of(
    plans: Sequence[PlanEntry], seen: Mapping[str, PlanSeen]
) -> Iterator[tuple[PlanEntry, PlanSeen]]:
    """Yield the plans of which SageMaker has told something."""
    for entry in plans:
        if (known := seen.get(entry.arn)) is not None and known.instance_type:
            yield entry, known


# ---- looks


def is_due(known: PlanSeen | None, *, drain: timedelta, turn: int, now: datetime) -> bool:
    """Tell whether a plan is to be described in this minute.

    Args:
        known: What is known of it; None: nothing.
        drain: How long before the end of the instances its jobs are stopped.
        turn: Number of the plan among all, so that not all are described in the same minute.
        now: The instant of the run, of which there is one a minute.
    """
    if known is None or not known.instance_type:
        return True
    if ((now - _EPOCH) // _MINUTE + turn) % (EVERY // _MINUTE) == 0:
        return True
    instants = (
        at
        for window in known.windows
        for at in (window.begin, window.closing(drain), window.end - ENDS_BEFORE, window.end)
    )
    return any(abs(now - at) <= NEAR for at in instants)


def after_look(
    described: PlanSeen, known: PlanSeen | None, *, drain: timedelta, used: int, now: datetime
) -> PlanSeen:
    """Return what is known of a plan after a look.

    Args:
        described: The plan as SageMaker describes it.
        known: What was known before; None: nothing.
        drain: As for ``is_due``.
        used: Instances of it that jobs hold, by our counters.
        now: Instant of the look.
    """
    looks, at_least = known.lower if known is not None else (0, 0)
    missing = _missing(described, drain=drain, used=used, now=now)
    if missing <= 0:
        return replace(described, unseen=0, lower=(0, 0))
    looks, at_least = looks + 1, min(at_least, missing) if looks else missing
    enough = looks >= LOOKS_UNTIL_LOWERED
    # More looks than needed would be a change, and a write, at each of them.
    return replace(
        described, unseen=at_least if enough else 0, lower=(min(looks, LOOKS_UNTIL_LOWERED), at_least)
    )


def _missing(plan: PlanSeen, *, drain: timedelta, used: int, now: datetime) -> int:
    """Return how many of the instances that we leave SageMaker does not call available."""
    usable = count_at(replace(plan, unseen=0), drain, now).usable
    if plan.available is None or plan.status != "Active" or not usable:
        return 0
    return usable - used - plan.available


def unread(arn: str, known: PlanSeen | None, *, why: str, at: datetime) -> PlanSeen:
    """Return what is known of a plan that cannot be described: what was known, and why it may be outdated."""
    before = known or PlanSeen(arn=arn, status="Unknown", instance_type="", total=0)
    return replace(before, trouble=why, trouble_since=at)


# ---- money


def price_table(overrides: Mapping[str, Decimal], plans: Iterable[tuple[PlanEntry, PlanSeen]]) -> PriceTable:
    """Return the prices of instances, those of training plans from what was paid for them."""
    shares = {plan.capacity_key: usd_per_hour(plan, entry.fee_usd) for entry, plan in plans}
    known = {capacity: usd for capacity, usd in shares.items() if usd is not None}
    return PriceTable(overrides=overrides, plans=known)
