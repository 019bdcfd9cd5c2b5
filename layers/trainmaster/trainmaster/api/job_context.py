"""Find out where a job stands now: its position, the reason it waits, and when it may start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from trainmaster.api.pool_forecasts import ANSWER_CPU_SECONDS, PoolForecast, SeenQueue, forecast_of
from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import JobContext, View, instant_text
from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.actions import Plan, Start
from trainmaster.core.planning.fair_share import TeamShare, ranked, shares_seen, shifted, shifts_of
from trainmaster.core.planning.planner import plan, starts_in_empty_pool
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.planning.wait_reasons import MAX_POSITION, NO_POSITION, PAUSED, QueuePosition
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.unmanaged.decisions import rules_for
from trainmaster.ports import QueueReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Holds a pool as a pass would read it at this instant, and what the pass would decide."""

    pool: PoolPolicy
    snapshot: Snapshot
    read: Snapshot
    """The same before past use changed the order of its jobs."""
    decided: Plan
    at: datetime
    shares: Mapping[str, TeamShare] = field(default_factory=dict)
    """Shares by team, where past use affects the order."""

    @property
    def shifts(self) -> dict[str, int]:
        return shifts_of(self.shares, self.pool)


def look_at(pool: PoolPolicy | None, context: RequestContext) -> Look | None:
    """Look at a pool; None if there is no such pool, or no time to look."""
    if pool is None or not context.has_time:
        return None
    now = context.outside.clock()
    snapshot = snapshot_of(pool, context, now=now)
    return looked(snapshot, rules_for(pool, snapshot), now=now)


def looked(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> Look:
    """Plan a snapshot, with the jobs in the order that past use makes."""
    shares = shares_seen(snapshot, pool, now=now)
    in_order = ranked(snapshot, pool, now=now)
    decided = plan(in_order, pool, now=now)
    return Look(pool=pool, snapshot=in_order, read=snapshot, decided=decided, at=now, shares=shares)


def snapshot_of(pool: PoolPolicy, context: RequestContext, *, now: datetime) -> Snapshot:
    """Read the pool as a pass would now, except for the lanes that take turns."""
    reader = context.outside.reader
    return reader.overview(pool, policy=context.policy, paused=context.stored.paused, now=now)


def reason_now(job: Job, position: QueuePosition, look: Look | None, *, paused: bool) -> Reason | None:
    """Return why a job waits for its turn; None for one without a turn."""
    if not job.is_waiting or job.is_parked:
        return None
    if paused:
        return PAUSED
    if look is None:
        return wait_reasons.in_line(position)
    if any(isinstance(action, Start) and action.job.name == job.name for action in look.decided.actions):
        return _kept_from_starting(job) or wait_reasons.NEXT
    return look.decided.reasons.get(job.name) or wait_reasons.in_line(position)


def share_of(job: Job, look: Look | None) -> TeamShare | None:
    """Return how the job's team stands while the job waits; None where that has no effect."""
    return look.shares.get(job.spec.team) if look and job.is_waiting else None


def _kept_from_starting(job: Job) -> Reason | None:
    """Return the reason of the last failed start, if trying again cannot help."""
    is_known = job.starts.faults and job.waiting is not None and job.waiting.code is ReasonCode.BACKOFF
    return job.waiting if is_known else None


MOST_COUNTED = 50
"""Jobs counted ahead of a submitted one; counting more would slow down submissions."""


def first_in_queue(
    pool: str, queue: QueueReader, shifts: Mapping[str, int] | None = None, *, most: int = MAX_POSITION
) -> tuple[WaitingJob, ...]:
    """Read a pool's queue in its order, as far as positions are counted."""
    return queue.waiting(pool, after=None, limit=most, shifts=shifts)


def jobs_ahead(
    job: Job, queued: Sequence[WaitingJob], shifts: Mapping[str, int] | None = None
) -> tuple[WaitingJob, ...]:
    """Return the jobs of a queue that go before the job; nobody is ahead of a job that has no turn."""
    if not _has_a_turn(job):
        return ()
    mine = (job.score + (shifts or {}).get(job.spec.team, 0), job.name)
    return tuple(entry for entry in queued if entry.rank < mine)


def position_behind(job: Job, ahead: Sequence[WaitingJob]) -> QueuePosition:
    return QueuePosition.behind(len(ahead)) if _has_a_turn(job) else NO_POSITION


def position_if_near(job: Job, context: RequestContext) -> QueuePosition:
    """Return the job's position, unless many are ahead: then GET /jobs/{name} tells it."""
    if not _has_a_turn(job):
        return NO_POSITION
    reader, shifts = context.outside.reader, shifts_in(context.policy.pool(job.spec.pool), context)
    if shifts:
        queued = first_in_queue(job.spec.pool, reader, shifts, most=MOST_COUNTED)
        ahead = len(jobs_ahead(job, queued, shifts))
    else:
        ahead = reader.entries_before(job.spec.pool, (job.score, job.name), most=MOST_COUNTED)
    return QueuePosition.behind(ahead) if ahead < MOST_COUNTED else QueuePosition(waiting=MOST_COUNTED)


def _has_a_turn(job: Job) -> bool:
    return job.is_waiting and not job.is_parked


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Holds what was read about one job and its pool."""

    look: Look | None
    """None if the job does not wait, or there was no time to look."""
    position: QueuePosition
    queued: tuple[WaitingJob, ...] = ()
    """The first of the pool's queue, for an estimate; empty where the job has no turn or none was asked."""


def standing_of(job: Job, context: RequestContext, *, estimate: bool = False) -> Standing:
    """Count the jobs ahead; read them for an estimate, and while old lanes are not in the pool's order."""
    reader = context.outside.reader
    asks_planner = job.is_waiting or (job.is_live and job.spec.widths is not None)
    look = look_at(context.policy.pool(job.spec.pool), context) if asks_planner else None
    shifts = look.shifts if look else shifts_in(context.policy.pool(job.spec.pool), context)
    if _has_a_turn(job) and not estimate and not shifts and not (look and look.snapshot.earlier_lanes):
        count = reader.entries_before(job.spec.pool, (job.score, job.name), most=MAX_POSITION)
        return Standing(look=look, position=QueuePosition.behind(count))
    queued = first_in_queue(job.spec.pool, reader, shifts) if _has_a_turn(job) else ()
    position = position_behind(job, jobs_ahead(job, queued, shifts))
    return Standing(look=look, position=position, queued=queued)


def job_context_of(
    job: Job, standing: Standing, context: RequestContext, *, latest: Attempt | None = None
) -> JobContext:
    return JobContext(
        now=context.outside.clock(),
        pool=context.policy.pool(job.spec.pool),
        position=standing.position,
        why=reason_now(job, standing.position, standing.look, paused=context.stored.paused),
        share=share_of(job, standing.look),
        latest=latest,
        width=standing.look.decided.widths.get(job.name) if standing.look else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Likely:
    """Something is as likely to happen before ``p50`` as after it; nine times out of ten before ``p90``."""

    p50: datetime
    p90: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """When a job is likely to start; where that is None for a job that waits, ``note`` says why."""

    likely: Likely | None = None
    note: str | None = None

    @property
    def start(self) -> View | None:
        """Return the estimate as an answer has it."""
        likely = self.likely
        return None if likely is None else {"p50": instant_text(likely.p50), "p90": instant_text(likely.p90)}


NO_PROSPECT = Prospect()
TOO_SLOW = Prospect(note="not estimated: the table answers slowly, and there was no time")


def estimated_start(job: Job, standing: Standing, context: RequestContext) -> Prospect:
    """Quote the pool's forecast for one job, which is put into the queue if it is not there yet."""
    if not job.is_waiting:
        return NO_PROSPECT
    if not context.has_time:
        return TOO_SLOW
    look, why_not = standing.look, _no_turn(job, standing, context)
    if look is None or why_not is not None:
        return _not_estimated(why_not or "its pool is not in the policy")
    seen = SeenQueue(pool=look.pool, snapshot=look.read, waiting=_with(job, standing, look), at=look.at)
    until = context.began_at_cpu + ANSWER_CPU_SECONDS

    def in_time() -> bool:
        return context.outside.cpu_seconds() < until and context.has_time

    forecast = forecast_of(seen, context, in_time=in_time)
    start = forecast.by_job.get(job.name)
    if start is not None:
        return Prospect(likely=Likely(p50=start.p50, p90=start.p90))
    return _not_estimated(_why_none(job, look, forecast))


def _no_turn(job: Job, standing: Standing, context: RequestContext) -> str | None:
    if job.is_parked:
        return "it is held or waits for another try, so it has no turn"
    if context.stored.paused:
        return "the queue is paused"
    if standing.position.ahead_at_least is not None:
        return f"{MAX_POSITION} jobs or more go before it"
    return None


def _with(job: Job, standing: Standing, look: Look) -> tuple[WaitingJob, ...]:
    """Return the queue with the job in it, at most as long as positions are counted."""
    if any(entry.name == job.name for entry in standing.queued):
        return standing.queued
    entries = [*standing.queued, shifted(waiting_entry(job), look.shifts)]
    return tuple(sorted(entries, key=attrgetter("rank"))[:MAX_POSITION])


def _why_none(job: Job, look: Look, forecast: PoolForecast) -> str:
    if forecast.why_none is not None:
        return forecast.why_none
    if job.name in forecast.notes:
        return forecast.notes[job.name]
    if forecast.is_cut:
        return "there was no time to work it out behind so many others"
    entry = shifted(waiting_entry(job), look.shifts)
    if not starts_in_empty_pool(entry, look.snapshot, look.pool, now=look.at):
        # said only of what no wait can change: the policy has to
        return "as the policy is it never starts, not even in an empty pool at the beginning of a month"
    if look.snapshot.account_limits or entry.refused is not None:
        return "AWS refuses it for now, and when it will accept it nobody can tell"
    return "what it waits for ends in none of the courses that were tried"


def _not_estimated(why: str) -> Prospect:
    return Prospect(note=f"not estimated: {why}")


def shifts_in(pool: PoolPolicy | None, context: RequestContext) -> Mapping[str, int] | None:
    """Return the milliseconds to add to the scores of each team's jobs; None without fair share."""
    if pool is None or not pool.order.fair_share.weight:
        return None
    state = context.outside.reader.pool_state(pool.name)
    return shifts_of(state.shares(pool, now=context.outside.clock()), pool)
