"""What people see of shares: how a team stands in a pool, and what that does to a job of its."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainmaster.core.planning.fair_share import TeamShare, explained
from trainmaster.core.planning.past_use import hours_of
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.records import TeamState

_PARTS = ("share", "used_share", "times", "points")


def job_share_view(one: TeamShare | None, pool: PoolPolicy | None) -> dict[str, Any] | None:
    """``message`` is null where it is less than half a point."""
    if one is None or pool is None:
        return None
    return _standing(one) | {"message": explained(one, pool.order.fair_share)}


def team_share_view(
    team: TeamState, one: TeamShare | None, pool: PoolPolicy, *, now: datetime
) -> dict[str, Any]:
    """What it has used, however the weight is; a team without jobs in the pool has no part in it now."""
    hours = one.hours if one else hours_of(team.past_use, pool.order.fair_share.half_life, now=now)
    parts: Mapping[str, Any] = _standing(one) if one else dict.fromkeys(_PARTS)
    return {"instance_hours": round(hours, 2), **parts}


def _standing(one: TeamShare) -> dict[str, Any]:
    values = (round(one.share, 4), round(one.used, 4), round(one.times, 2), round(one.points, 2))
    return dict(zip(_PARTS, values, strict=True))
