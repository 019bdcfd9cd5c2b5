"""Answers to a team that submits or reads too much."""

from datetime import datetime

from trainmaster.core.errors import FieldError, TeamLimit, TooManyRequestsError
from trainmaster.core.policy import Limits, Policy, PoolPolicy

QUEUE_FULL_SECONDS = 60
"""Seconds after which a retry is worthwhile when too many jobs wait; they start when others end, not by the
clock."""
_MINUTE_SECONDS = 60


def over_limit(team: str, pool: PoolPolicy, limit: TeamLimit, *, at: datetime) -> TooManyRequestsError:
    """Make the answer to a team that has reached a limit of the pool; nothing was stored."""
    field = f"pools.{pool.name}.limits.{limit}"
    if limit is TeamLimit.MAX_WAITING:
        message = f"{pool.limits.max_waiting} jobs of team {team} already wait in pool {pool.name}"
        wait, hint = QUEUE_FULL_SECONDS, "cancel some, or submit again once some have started"
    else:
        most = pool.limits.max_submissions_per_minute
        message = f"team {team} has submitted or changed {most} jobs of pool {pool.name} in this minute"
        wait = _MINUTE_SECONDS - at.second
        hint = f"try again in {wait} s"
    error = FieldError(field=field, message=message, hint=hint, rule=limit.value)
    return TooManyRequestsError(message, retry_after=wait, errors=[error])


def most_reads(policy: Policy) -> int:
    """Return the reads that one team has in a minute.

    A read has no pool, so the most generous pool counts.
    """
    limits = [pool.limits for pool in policy.pools] or [Limits()]
    return max(pool_limits.max_reads_per_minute for pool_limits in limits)


def too_many_reads(team: str, most: int, *, at: datetime) -> TooManyRequestsError:
    message = f"team {team} has already read {most} times in this minute"
    wait = _MINUTE_SECONDS - at.second
    hint = f"try again in {wait} s, and ask less often: one list covers many jobs"
    limit = TeamLimit.MAX_READS_PER_MINUTE.value
    error = FieldError(field=f"pools.limits.{limit}", message=message, hint=hint, rule=limit)
    return TooManyRequestsError(message, retry_after=wait, errors=[error])
