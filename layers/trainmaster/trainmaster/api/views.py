"""Show a job, a pool and the policy to people as plain JSON values; every key is always present."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from trainmaster.api.capacity_views import by_capacity_type, by_type, elastic_view, free_view, used_view
from trainmaster.api.paging import fitting
from trainmaster.api.share_views import job_share_view, team_share_view
from trainmaster.core.costs.prices import cost_cents
from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.instances import Capacity, total
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.run_time import ends_by
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.fair_share import TeamShare
from trainmaster.core.planning.quotas import Quotas
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.planning.wait_reasons import NO_POSITION, QueuePosition
from trainmaster.core.policy import PoolPolicy, Quota
from trainmaster.core.policy.kinds import duration_text
from trainmaster.core.records import PoolState, StoredPolicy, TeamState

View: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """Holds what a view of a job needs besides the job."""

    now: datetime
    pool: PoolPolicy | None
    position: QueuePosition = NO_POSITION
    why: Reason | None = None
    """Why the job waits for its turn, as the planner says now; None where it was not asked."""
    share: TeamShare | None = None
    """How the job's team stands; None where that has no effect, or was not asked."""
    latest: Attempt | None = None
    """The last attempt of a job that has no live one, if it was read."""
    width: str | None = None
    """The planner's words about an elastic job's width; None where it was not asked, or says nothing."""
    parents: tuple[View, ...] = ()  # its conditions, with the states of their jobs


def job_view(job: Job, around: JobContext) -> View:
    """Show a whole job, to its team and to admins."""
    attempt = job.live or around.latest
    return {
        "name": job.name,
        "team": job.spec.team,
        "submitted_by": job.spec.submitted_by,
        "pool": job.spec.pool,
        "state": job.state.value,
        "reason": reason_view(job.reason),
        "priority": job.priority,
        "effective_priority": effective_priority(job, around.pool, now=around.now, share=around.share),
        "instances": by_type(job.vector),
        "capacity_type": (job.live or job.shapes[0]).capacity_type.value,
        "submitted_at": instant_text(job.spec.submitted_at),
        "started_at": instant_text(job.started_at),
        "ended_at": instant_text(job.ended_at),
        **_times_of_the_live_attempt(job),
        **_position_view(around.position),
        "waiting": reason_view(_why_it_waits(job, around)),
        "after": list(around.parents),
        "eligible_at": instant_text(job.queued_since),
        "fair_share": job_share_view(around.share, around.pool),
        "attempt": job.attempt,
        "elastic": elastic_view(job, around.width),
        "array": job.spec.array.facts if job.spec.array else None,
        "training_job_name": attempt.training_job_name if attempt else None,
        "training_job_arn": attempt.training_job_arn if attempt else None,
        "preemptions": job.preemptions,
        "retries": job.comebacks.retries,
        "wasted_seconds": job.spent.all_wasted(),
        "cost_usd": _cost_usd(job, now=around.now),
        "cost_is_estimate": not job.is_final,
    }


def masked_view(job: Job, position: QueuePosition = NO_POSITION) -> View:
    """Show what other teams may see: enough to understand the queue, nothing that identifies the job."""
    return {
        "name": None,
        "team": job.spec.team,
        "pool": job.spec.pool,
        "state": job.state.value,
        "priority": job.priority,
        "instances": by_type(job.vector),
        "position": position.number,
        "started_at": instant_text(job.started_at),
        **_times_of_the_live_attempt(job),
    }


def _times_of_the_live_attempt(job: Job) -> View:
    """Show since when it trains and when its instances are free at the latest; None until that is known."""
    return {
        "training_since": instant_text(job.live.training_since if job.live else None),
        "ends_by": instant_text(ends_by(job)),
    }


def effective_priority(
    job: Job, pool: PoolPolicy | None, *, now: datetime, share: TeamShare | None = None
) -> float:
    """Add to the base priority what waiting and past use add; it stands still once the job has ended."""
    base = job.priority + (share.points if share else 0.0)
    aging = pool.order.aging if pool else None
    if aging is None or job.queued_since is None:
        return round(base, 2)
    age = max((job.ended_at or now) - job.queued_since, timedelta())
    return round(base + age / aging.per * aging.add, 2)


def _cost_usd(job: Job, *, now: datetime) -> float | None:
    """Add up bills of ended attempts and the live one's cost since its claim; None if a price is unknown."""
    live = job.live
    so_far = cost_cents(live.claim.usd_per_hour, max(now - live.claim.at, timedelta())) if live else 0
    return None if so_far is None or job.spent.unpriced else (job.spent.cents + so_far) / 100


def pool_view(
    pool: PoolPolicy,
    state: PoolState,
    oldest_waiting_since: datetime | None,
    *,
    now: datetime,
    set_aside: int = 0,
) -> View:
    """Show a pool for ``GET /pools``. Teams with a quota are listed even if they use nothing."""
    taken = total((state.used, state.warm))
    shares, rules = state.shares(pool, now=now), pool.order.fair_share
    return {
        "name": pool.name,
        "capacity": dict(pool.capacity),
        "spot_capacity": dict(pool.spot_capacity),
        "used": used_view(pool, state.used),
        "warm": by_capacity_type(state.warm),
        "free": free_view(pool, taken),
        "warm_pools": [view for warm in state.warm_pools for view in _warm_pool_views(warm)],
        "fair_share": {"half_life": duration_text(rules.half_life), "weight": rules.weight},
        "teams": [
            _team_view(name, pool, state, shares.get(name), now=now)
            for name in sorted({*state.teams, *pool.quotas})
        ],
        "waiting": sum(team.waiting for team in state.teams.values()),
        "oldest_waiting_since": instant_text(oldest_waiting_since),
        "account_limits": [_limit_view(*limit) for limit in sorted(state.account_limits.items())],
        "set_aside": set_aside,
        "recount": reason_view(state.recount),
        "reranking": state.order_key not in {None, pool.order_key},
    }


def _limit_view(capacity: Capacity, limit: AccountLimit) -> View:
    return {
        "instance_type": capacity.instance_type,
        "capacity_type": capacity.capacity_type.value,
        "limit": limit.limit,
        "until": instant_text(limit.until),
    }


def _warm_pool_views(warm: WarmPool) -> list[View]:
    return [
        {
            "instance_type": capacity.instance_type,
            "instances": count,
            "expires_at": instant_text(warm.expires_at),
        }
        for capacity, count in sorted(warm.vector.items())
    ]


def _team_view(
    name: str, pool: PoolPolicy, state: PoolState, share: TeamShare | None, *, now: datetime
) -> View:
    team = state.teams.get(name, TeamState(used={}, waiting=0))
    quotas = Quotas(quotas=pool.quotas)
    quotas.count(name, team.used)
    return {
        "name": name,
        "used": used_view(pool, team.used),
        "borrowed": by_capacity_type(quotas.borrowed(name) if pool.quotas else {}),
        "quota": quota_view(pool.quotas.get(name, Quota())) if pool.quotas else None,
        "waiting": team.waiting,
        "fair_share": team_share_view(team, share, pool, now=now),
    }


def quota_view(quota: Quota) -> View:
    """Show a quota as the policy writes it; a borrowing limit of None means whatever others leave idle."""
    limit = quota.borrowing_limit
    return {"nominal": dict(quota.nominal), "borrowing_limit": None if limit is None else dict(limit)}


MOST_WARNING_BYTES = 500_000
"""Most bytes of warnings beside a policy, which is a body of 256 KiB and a text of 100 KiB at most."""


def policy_view(stored: StoredPolicy, warnings: tuple[FieldError, ...] = ()) -> View:
    return {
        "revision": stored.revision,
        "paused": stored.paused,
        "policy": dict(stored.document),
        "warnings": fitting(map(field_error_view, warnings), most=MOST_WARNING_BYTES),
    }


def field_error_view(error: FieldError) -> View:
    view = {"field": error.field, "message": error.message, "hint": error.hint}
    return view if error.rule is None else {**view, "rule": error.rule}


def reason_view(reason: Reason | None) -> View | None:
    return None if reason is None else {"code": reason.code, "message": reason.message}


def instant_text(instant: datetime | None) -> str | None:
    """Write an instant as ISO 8601 in UTC, to the millisecond."""
    text = instant.astimezone(UTC).isoformat(timespec="milliseconds") if instant else None
    return text.replace("+00:00", "Z") if text else None


def _position_view(position: QueuePosition) -> View:
    if position.ahead_at_least is None:
        return {"position": position.number}
    return {"position": None, "ahead_at_least": position.ahead_at_least}


_BEHIND_A_REFUSAL = frozenset(
    {ReasonCode.AHEAD, ReasonCode.CAPACITY, ReasonCode.RESERVATION, ReasonCode.UNAVAILABLE}
)
"""Reasons that a refusal replaces: a job that AWS refused waits for that until AWS accepts a start."""
_REFUSALS = frozenset({ReasonCode.ACCOUNT_LIMIT, ReasonCode.REFUSED})


def _why_it_waits(job: Job, around: JobContext) -> Reason | None:
    """Return the reason found just now, else the one stored; a refusal by AWS takes precedence."""
    if job.is_final or job.is_live:
        return job.waiting if job.is_live else None
    if job.is_waiting and job.not_before is not None and not job.waits_for_others:
        return _backs_off(job, until=job.not_before, now=around.now)
    why = around.why or job.waiting or wait_reasons.in_line(around.position)
    refused_with = job.starts.refused_with
    code = refused_with if refused_with and why.code in _BEHIND_A_REFUSAL else why.code
    if code not in _REFUSALS:
        return why
    return Reason(code=code, message=_with_words_of_aws(job, why, code=code))


def _with_words_of_aws(job: Job, why: Reason, *, code: str) -> str:
    """Put AWS's words about the job's own refusal, which its row keeps, before the planner's; none twice."""
    stored = job.waiting
    is_own = stored is not None and stored.code == job.starts.refused_with == code
    if stored is None or not is_own or stored.message in why.message:
        return why.message
    return stored.message if why.message in stored.message else f"{stored.message}; {why.message}"


def _backs_off(job: Job, *, until: datetime, now: datetime) -> Reason:
    why = f"{job.waiting.message}; " if job.waiting else ""
    if job.futile is not None and job.futile.until > now:
        why += f"{wait_reasons.stops_nobody(job.futile)}; "
    is_due = until <= now  # a pass takes it back: they come each minute at least
    then = "it is tried again within a minute" if is_due else f"the next try is at {instant_text(until)}"
    tries = job.starts.refused + (job.starts.no_capacity or 0)
    tried = f", after {tries} so far" if tries else ""
    code = job.starts.refused_with or ReasonCode.BACKOFF
    return Reason(code=code, message=f"{why}{then}{tried}")
