"""Foresee what would become of a job that is not submitted: plan the pool with the job added."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from trainmaster.api.job_context import (
    NO_PROSPECT,
    TOO_SLOW,
    Likely,
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
from trainmaster.core.durations.work_speeds import speeds_by_shape
from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Shape, parse_vector
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.run_time import attempt_run_time, likely_length
from trainmaster.core.planning.actions import Plan, Preempt, Start
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import BudgetState, Snapshot
from trainmaster.core.planning.wait_reasons import NO_POSITION, QueuePosition
from trainmaster.core.planning.width_worth import speed_up
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.submission.admission import Submission


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


def measured_speeds(
    submission: Submission, pool: PoolPolicy | None, context: RequestContext
) -> list[View] | None:
    """Show how fast earlier runs of the submission's program were in their shapes; none without a pool.

    None where the table does not answer: a dry run decides nothing by them, so it does without.
    """
    if pool is None:
        return []
    kind = submission.traits.work_kind
    try:
        runs = context.outside.reader.work_speeds(pool.name, submission.team, kind)
    except UnavailableError:
        return None
    settings = kind.partition(":")[2]
    return [
        {
            "instance_type": capacity.instance_type,
            "capacity_type": capacity.capacity_type.value,
            "instances": count,
            "unit": speed.unit,
            "per_second": round(speed.per_second, 3),
            "runs": speed.runs,
        }
        for speed in speeds_by_shape(runs, settings=settings, now=context.outside.clock())
        for capacity, count in parse_vector(speed.shape).items()
    ]


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
    widths: tuple[View, ...] | None = None
    """Start, end, time and cost at each width, the largest first; None if the job is not elastic."""


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
    shape = _shape(job, decided)
    rate = _usd_per_hour(job, shape, snapshot.prices)
    prospect = estimated_start(job, standing, context)
    starts = _starts_by_width(job, prospect, shape, standing, context)
    return Foreseen(
        position=standing.position,
        victims=tuple(_victims(job, decided, context)),
        prospect=prospect,
        usd_per_hour=None if rate is None else float(rate),
        cost_usd=_cost_usd(job, rate, shape),
        spot_record=spot_chances(job, context),
        widths=_width_views(job, starts, snapshot.prices),
    )


def _foresee_child(job: Job, pool: PoolPolicy, context: RequestContext) -> Foreseen:
    """Foresee a job that waits for others: it has no position, and whom it would stop is not known yet."""
    snapshot = snapshot_of(pool, context, now=context.outside.clock())
    shape = job.shapes[0]
    rate = _usd_per_hour(job, shape, snapshot.prices)
    return Foreseen(
        position=NO_POSITION,
        victims=(),
        prospect=ParentEnds(context=context).prospect(job, Standing(look=None, position=NO_POSITION)),
        usd_per_hour=None if rate is None else float(rate),
        cost_usd=_cost_usd(job, rate, shape),
        spot_record=spot_chances(job, context),
        widths=_width_views(job, {}, snapshot.prices),
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


def _cost_usd(job: Job, usd_per_hour: Decimal | None, shape: Shape) -> float | None:
    """Price the time that such jobs are expected to train, else all of the job's MaxRuntimeInSeconds."""
    length = _training_time(job, shape)
    cents = cost_cents(usd_per_hour, attempt_run_time(job, shape) if length is None else length)
    return None if cents is None else cents / 100


def _training_time(job: Job, shape: Shape) -> timedelta | None:
    """Predict the training in a shape; None if no job like it has ended.

    Lengths of elastic jobs are known as if at the largest width. How well a job that has not begun uses more
    instances, earlier runs of its program say, else it counts as in ``width_worth``.
    """
    length, widths = likely_length(job.spec), job.spec.widths
    if length is None or widths is None:
        return length
    return length * speed_up(None, shape.instances, widths.largest, widths.measured)


def _starts_by_width(
    job: Job, prospect: Prospect, shape: Shape, standing: Standing, context: RequestContext
) -> Mapping[int, Likely | None]:
    """Estimate the starts of an elastic job at just one width each, as far as the time of an answer goes.

    Args:
        job: The job; any but an elastic one has no widths.
        prospect: When it is likely to start at its least width or more.
        shape: The shape in which it would start now, else its largest.
        standing: Its place in the queue.
        context: The call.
    """
    if job.spec.widths is None or standing.look is None:
        return {}
    begins_now = any(
        isinstance(action, Start) and action.job.name == job.name for action in standing.look.decided.actions
    )
    now = shape.instances if begins_now else job.spec.widths.least
    return {
        choice.instances: prospect.likely
        if choice.instances <= now
        else _start_at(job, choice, standing, context)
        for choice in job.shapes
    }


def _start_at(job: Job, shape: Shape, standing: Standing, context: RequestContext) -> Likely | None:
    """Estimate when the job would start if it could run in no other shape."""
    assert standing.look is not None, job.name
    rigid = replace(job, spec=replace(job.spec, shapes=(shape,), widths=None))
    read = standing.look.read
    others = tuple(entry for entry in read.waiting if entry.name != job.name)
    read = replace(read, waiting=(*others, waiting_entry(rigid)))
    seen = replace(standing, look=replace(standing.look, read=read))
    return estimated_start(rigid, seen, context).likely


def _width_views(
    job: Job, starts: Mapping[int, Likely | None], prices: PriceTable
) -> tuple[View, ...] | None:
    """Show what each width of an elastic job would take; None for other jobs."""
    if job.spec.widths is None:
        return None
    return tuple(_width_view(job, shape, starts.get(shape.instances), prices) for shape in job.shapes)


def _width_view(job: Job, shape: Shape, start: Likely | None, prices: PriceTable) -> View:
    length, rate = _training_time(job, shape), _usd_per_hour(job, shape, prices)
    end = None
    if start is not None and length is not None:
        end = Prospect(likely=Likely(p50=start.p50 + length, p90=start.p90 + length)).start
    return {
        "width": shape.instances,
        "estimated_start": Prospect(likely=start).start,
        "estimated_end": end,
        "training_hours": None if length is None else round(length / timedelta(hours=1), 2),
        "max_runtime_s": int(attempt_run_time(job, shape).total_seconds()),
        "usd_per_hour": None if rate is None else float(rate),
        "estimated_cost_usd": _cost_usd(job, rate, shape),
    }
