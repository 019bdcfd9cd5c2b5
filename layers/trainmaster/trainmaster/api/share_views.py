"""Show people fair shares: how a team stands in a pool, and what that does to the priority of its jobs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainmaster.core.planning.fair_share import TeamShare, explained
from trainmaster.core.planning.past_use import hours_of
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.records import TeamState

_PARTS = ("share", "used_share", "times", "points")


def job_share_view(share: TeamShare | None, pool: PoolPolicy | None) -> dict[str, Any] | None:
    """Show a job's fair share; ``message`` is null where it moves the job by less than half a point."""
    if share is None or pool is None:
        return None
    return _standing(share) | {"message": explained(share, pool.order.fair_share)}


def team_share_view(
    team: TeamState, share: TeamShare | None, pool: PoolPolicy, *, now: datetime
) -> dict[str, Any]:
    """Show what a team has used, whatever the weight; without jobs in the pool it has no share now."""
    hours = share.hours if share else hours_of(team.past_use, pool.order.fair_share.half_life, now=now)
    parts: Mapping[str, Any] = _standing(share) if share else dict.fromkeys(_PARTS)
    return {"instance_hours": round(hours, 2), **parts}


def _standing(share: TeamShare) -> dict[str, Any]:
    values = (round(share.share, 4), round(share.used, 4), round(share.times, 2), round(share.points, 2))
    return dict(zip(_PARTS, values, strict=True))
