"""Computes what a replay costs: instances are billed from an attempt's start until they are free.

Training plans are paid in advance: attempts on one cost their share of its fee, and the rest is unused.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.core.costs.prices import PriceTable

from trainmaster_client.simulate.comparison.figures import HOUR_S, idle_s
from trainmaster_client.simulate.comparison.outcomes import JobOutcome
from trainmaster_client.simulate.engine.replays import Replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """USD at on-demand prices; spot counts as on-demand, its discount is not known."""

    jobs_usd: float
    idle_warm_usd: float
    lost_usd: float
    """Part of ``jobs_usd`` for training that had to be done again, and for stopping."""
    startup_usd: float
    """Part of ``jobs_usd`` for start-up."""
    by_team: Mapping[str, float]
    """``jobs_usd`` by team."""
    unpriced: tuple[str, ...]
    """Instance types, and training plans, without a price: what ran on them is in no sum."""
    plans: "PlanBill | None" = None
    """Fees of training plans and what is unused of them; None if there are no plans."""

    @property
    def useful_usd(self) -> float:
        return max(0.0, self.jobs_usd - self.lost_usd - self.startup_usd)

    @property
    def total_usd(self) -> float:
        return self.jobs_usd + self.idle_warm_usd + self.unused_plan_usd

    @property
    def unused_plan_usd(self) -> float:
        """Return the part of the fees of plans for hours in which no job held an instance."""
        return self.plans.unused_usd if self.plans is not None else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBill:
    """All training plans of a replay together."""

    fee_usd: float
    paid_h: float
    """Instance-hours of all windows."""
    unused_h: float
    """Those in which no job held the instance."""
    unused_usd: float

    @property
    def use(self) -> float | None:
        """Return the share of the instance-hours in which jobs held instances; None if none were paid."""
        return 1 - self.unused_h / self.paid_h if self.paid_h else None


def bill_of(replay: Replay, outcomes: Mapping[str, JobOutcome], prices: PriceTable) -> Bill:
    types = {attempt.instance_type for attempt in replay.attempts if not attempt.is_on_plan} | {
        interval.instance_type for interval in replay.warm
    }
    plan_rates = {
        (plan.pool, plan.capacity_type): plan.fee_usd * HOUR_S / plan.paid_s
        for plan in replay.plans
        if plan.fee_usd is not None and plan.paid_s
    }
    rates = {
        instance_type: float(price)
        for instance_type in types
        if (price := prices.usd_per_hour(instance_type)) is not None
    }
    by_team: dict[str, float] = defaultdict(float)
    lost = startup = 0.0
    for attempt in replay.attempts:
        if attempt.is_on_plan:
            usd_per_hour = plan_rates.get((attempt.pool, attempt.capacity_type), 0.0)
        else:
            usd_per_hour = rates.get(attempt.instance_type, 0.0)
        rate = attempt.instances * usd_per_hour / HOUR_S
        by_team[outcomes[attempt.job].job.team] += (attempt.end_s - attempt.start_s) * rate
        lost += (attempt.lost_s + attempt.stopping_s) * rate
        startup += (attempt.train_s - attempt.start_s) * rate
    return Bill(
        jobs_usd=sum(by_team.values()),
        idle_warm_usd=sum(
            idle_s(interval) * interval.instances * rates.get(interval.instance_type, 0.0) / HOUR_S
            for interval in replay.warm
        ),
        lost_usd=lost,
        startup_usd=startup,
        by_team=dict(by_team),
        unpriced=(*prices.unpriced(types), *_without_fee(replay)),
        plans=_plan_bill(replay) if replay.plans else None,
    )


def _without_fee(replay: Replay) -> list[str]:
    """Return the plans whose fee is not known; of a plan without windows nothing is, either."""
    priced = {plan.capacity_type for plan in replay.plans if plan.fee_usd is not None and plan.paid_s}
    named = {attempt.capacity_type for attempt in replay.attempts if attempt.is_on_plan}
    return sorted(named.union(plan.capacity_type for plan in replay.plans) - priced)


def _plan_bill(replay: Replay) -> PlanBill:
    used: dict[tuple[str, str], int] = defaultdict(int)
    for attempt in replay.attempts:
        if attempt.is_on_plan:
            held = (attempt.end_s - attempt.start_s) * attempt.instances
            used[attempt.pool, attempt.capacity_type] += held
    unused_h = unused_usd = 0.0
    for plan in replay.plans:
        unused_s = max(0, plan.paid_s - used[plan.pool, plan.capacity_type])
        unused_h += unused_s / HOUR_S
        if plan.fee_usd is not None and plan.paid_s:
            unused_usd += plan.fee_usd * unused_s / plan.paid_s
    return PlanBill(
        fee_usd=sum(plan.fee_usd or 0.0 for plan in replay.plans),
        paid_h=sum(plan.paid_s for plan in replay.plans) / HOUR_S,
        unused_h=unused_h,
        unused_usd=unused_usd,
    )
