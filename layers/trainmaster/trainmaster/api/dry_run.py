"""Foresee what would become of a job that is not submitted: plan the pool with the job added."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from trainmaster.api.job_context import (
    NO_PROSPECT,
    TOO_SLOW,
    Prospect,
    Standing,
    estimated_start,
    first_in_queue,
    jobs_ahead,
    looked,
    position_behind,
    snapshot_of,
)
from trainmaster.api.parent_ends import ParentEnds
from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import View
from trainmaster.core.costs.ledger import budget_cents, month_of
from trainmaster.core.costs.prices import PriceTable, cost_cents
from trainmaster.core.costs.spot_record import record_of
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Shape
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.run_time import likely_length
from trainmaster.core.planning.actions import Plan, Preempt, Start
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import BudgetState, Snapshot
from trainmaster.core.planning.wait_reasons import NO_POSITION, QueuePosition
from trainmaster.core.policy import PoolPolicy


def spot_chances(job: Job, context: RequestContext) -> tuple[View, ...]:
    """Show how often instances of each spot shape were interrupted recently; null without records."""
    return tuple(
        _chances(job, capacity, count, context)
        for shape in job.shapes
        if shape.capacity_type is CapacityType.SPOT
        for capacity, count in sorted(shape.vector.items())
    )


def _chances(job: Job, capacity: Capacity, instances: int, context: RequestContext) -> View:
    """Show one type's record, and the interruptions to expect while the job may run."""
    days = context.outside.reader.spot_days(capacity.instance_type)
    record = record_of(days, today=context.outside.clock().astimezone(UTC).date())
    expected = record.expected(instances=instances, runtime=job.spec.max_runtime)
    return {
        "instance_type": capacity.instance_type,
        "instances": instances,
        "instance_hours": round(record.instance_hours, 2),
        "interruptions": round(record.interruptions, 2),
        "interruptions_per_instance_hour": _rounded(record.per_instance_hour),
        "expected_interruptions": _rounded(expected),
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    position: QueuePosition
    victims: tuple[str | None, ...]
    """Names of the jobs it would preempt; jobs of other teams have no names."""
    prospect: Prospect
    usd_per_hour: float | None
    """On-demand price of all its instances together; None if a price is unknown."""
    cost_usd: float | None
    """Expected cost in USD; None if a price is unknown."""
    spot_record: tuple[View, ...]
    """Interruption record of each spot shape."""


UNFORESEEN = Foreseen(
    position=NO_POSITION, victims=(), prospect=NO_PROSPECT, usd_per_hour=None, cost_usd=None, spot_record=()
)


def foresee(job: Job, pool: PoolPolicy, context: RequestContext) -> Foreseen:
    if not context.has_time:
        return replace(UNFORESEEN, prospect=TOO_SLOW)
    if job.waits_for_others:
        return _foresee_child(job, pool, context)
    now, entry = context.outside.clock(), waiting_entry(job)
    snapshot = _with_budget(snapshot_of(pool, context, now=now), job.spec.team, context, now=now)
    others = tuple(
        waiting_job for waiting_job in snapshot.waiting if waiting_job.name != job.name
    )  # the same request, sent already
    snapshot = replace(snapshot, waiting=(*others, entry))
    look = looked(snapshot, pool, now=now)
    decided, queued = look.decided, first_in_queue(pool.name, context.outside.reader, look.shifts)
    queued = tuple(other for other in queued if other.name != job.name)  # the same request, sent already
    position = position_behind(job, jobs_ahead(job, queued, look.shifts))
    standing = Standing(look=look, position=position, queued=queued)
    rate = _usd_per_hour(job, _shape(job, decided), snapshot.prices)
    return Foreseen(
        position=standing.position,
        victims=tuple(_victims(job, decided, context)),
        prospect=estimated_start(job, standing, context),
        usd_per_hour=None if rate is None else float(rate),
        cost_usd=_cost_usd(job, rate),
        spot_record=spot_chances(job, context),
    )


def _foresee_child(job: Job, pool: PoolPolicy, context: RequestContext) -> Foreseen:
    """Foresee a job that waits for others: it has no position, and whom it would stop is not known yet."""
    snapshot = snapshot_of(pool, context, now=context.outside.clock())
    rate = _usd_per_hour(job, job.shapes[0], snapshot.prices)
    return Foreseen(
        position=NO_POSITION,
        victims=(),
        prospect=ParentEnds(context=context).prospect(job, Standing(look=None, position=NO_POSITION)),
        usd_per_hour=None if rate is None else float(rate),
        cost_usd=_cost_usd(job, rate),
        spot_record=spot_chances(job, context),
    )


def _with_budget(snapshot: Snapshot, team: str, context: RequestContext, *, now: datetime) -> Snapshot:
    """Add the team's budget: a snapshot has only the budgets of teams with waiting jobs."""
    team_policy = context.policy.team(team)
    if team in snapshot.budgets or team_policy is None or team_policy.budget is None:
        return snapshot
    month = month_of(now)
    state = BudgetState(
        month=month,
        account=context.outside.reader.month(team, month),
        limit_cents=budget_cents(team_policy.budget.usd_per_month),
        at_limit=team_policy.budget.at_limit,
    )
    return replace(snapshot, budgets={**snapshot.budgets, team: state})


def _victims(job: Job, decided: Plan, context: RequestContext) -> Iterator[str | None]:
    for action in decided.actions:
        if isinstance(action, Preempt) and action.job.name == job.name:
            yield from (victim.name if context.sees(victim.team) else None for victim in action.victims)


def _shape(job: Job, decided: Plan) -> Shape:
    """Return the shape the job would start in now, else the first one it allows."""
    picked = (
        action.shape
        for action in decided.actions
        if isinstance(action, Start | Preempt) and action.job.name == job.name
    )
    return next(picked, job.shapes[0])


def _usd_per_hour(job: Job, shape: Shape, prices: PriceTable) -> Decimal | None:
    if job.spec.choice is Choice.SAGEMAKER:
        return prices.dearest_usd_per_hour(shape.vector for shape in job.shapes)
    return prices.vector_usd_per_hour(shape.vector)


def _cost_usd(job: Job, usd_per_hour: Decimal | None) -> float | None:
    """Price the time that such jobs are expected to train, else all of the job's MaxRuntimeInSeconds."""
    length = likely_length(job.spec)
    cents = cost_cents(usd_per_hour, job.spec.max_runtime if length is None else length)
    return None if cents is None else cents / 100
