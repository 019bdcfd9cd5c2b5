"""Fair share: a team that has used more of a pool than its share goes later, one that used less earlier.

The score of a job stays as it is stored. The value of its team's past use is added to it here, for one plan:
the same for all jobs of a team, waiting and running, so within a team nothing changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from operator import attrgetter
from typing import TypeVar

from trainmaster.core.planning.past_use import Holding, UseSums, hours_of
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import FairShare, PoolPolicy
from trainmaster.core.policy.kinds import duration_text

MOST = 3
"""Most points, in weights, that can be lost or gained."""
_UNNAMED = 1.0
"""Share of a team that the policy does not name."""
_SHOWN = 0.5
"""Fewest points that are shown."""

JobT = TypeVar("JobT", WaitingJob, RunningJob)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamShare:
    """Standing of one team among those that have jobs in the pool."""

    team: str
    share: float
    """Its part, 0 to 1; all teams together have 1."""
    hours: float
    """Instance-hours that it has used, as they count now."""
    used: float
    """Its part of what all of them have used, 0 to 1."""
    points: float
    """Points of priority that its jobs gain; negative: lose."""

    @property
    def times(self) -> float:
        """Multiple of its share that it has used."""
        return self.used / self.share


def team_shares(
    rules: FairShare,
    teams: Iterable[str],
    *,
    past: Mapping[str, UseSums],
    running: Iterable[RunningJob],
    now: datetime,
) -> dict[str, TeamShare]:
    """Return the standing of each team.

    Args:
        rules: Rules of the pool.
        teams: Teams whose jobs wait for their turn; those of ``running`` are added. A team without a job in
            the pool has no part in it: what is free belongs to the others.
        past: Sums of attempts that have ended.
        running: Running jobs, which count up to now.
        now: Instant of the look.
    """
    hours: dict[str, float] = {}
    for job in running:
        held = Holding(instances=sum(job.vector.values()), since=job.claimed_at, until=now)
        hours[job.team] = hours.get(job.team, 0.0) + held.hours(rules.half_life, now=now)
    for team in {*teams, *hours}:
        hours[team] = hours.get(team, 0.0) + hours_of(past.get(team, {}), rules.half_life, now=now)
    parts = {team: rules.shares.get(team, _UNNAMED) for team in sorted(hours)}
    whole, used = sum(parts.values()), sum(hours[team] for team in parts)
    return {
        team: TeamShare(
            team=team,
            share=part / whole,
            hours=hours[team],
            used=hours[team] / used if used else part / whole,
            points=points(
                rules.weight, share=part / whole, used=hours[team] / used if used else part / whole
            ),
        )
        for team, part in parts.items()
    }


def points(weight: int, *, share: float, used: float) -> float:
    """Return the points of priority gained, by the parts that a team should have and has used, 0 to 1.

    They are 0 at its share; ``weight`` lost at twice it, gained at half of it; ``MOST`` times as many at
    the ends. They always fall as use rises.

    Args:
        weight: Points of priority for half or twice the share.
        share: Part that the team should have.
        used: Part that it has used.
    """
    # At twice the share the fraction is -1/3, which MOST makes one weight; at the ends it is 1 or -1.
    return MOST * weight * ((share - used) / (share + used))


def ranked(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> Snapshot:
    """Return the snapshot with its jobs in the order that past use makes.

    Without fair share it is the very same snapshot.
    """
    shares = shares_seen(snapshot, pool, now=now)
    if not shares:
        return snapshot
    shifts = shifts_of(shares, pool)
    return replace(
        snapshot,
        past_use=None,
        waiting=tuple(shifted(job, shifts) for job in snapshot.waiting),
        running=tuple(shifted(job, shifts) for job in snapshot.running),
    )


def shares_seen(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> dict[str, TeamShare]:
    """Return the standing of each team by a snapshot; empty where there is no fair share."""
    if not pool.order.fair_share.weight or snapshot.past_use is None:
        return {}
    return team_shares(
        pool.order.fair_share,
        {job.team for job in snapshot.waiting},
        past=snapshot.past_use,
        running=snapshot.running,
        now=now,
    )


def shifts_of(shares: Mapping[str, TeamShare], pool: PoolPolicy) -> dict[str, int]:
    """Return the milliseconds to add to the score of each team's jobs; empty without fair share."""
    if not pool.order.fair_share.weight:
        return {}
    return {team: -round(team_share.points * float(pool.point_ms)) for team, team_share in shares.items()}


def shifted(job: JobT, shifts: Mapping[str, int]) -> JobT:
    """Return a job with its shift.

    It is made for each job of each plan: ``replace`` would take twice as long.
    """
    shift = shifts.get(job.team)
    if shift == job.share_ms:
        return job
    names, values = _FIELDS[type(job)]
    return type(job)(**dict(zip(names, values(job), strict=True)) | {"share_ms": shift})


_NAMES = {
    entry_type: tuple(attribute.name for attribute in fields(entry_type) if attribute.init)
    for entry_type in (WaitingJob, RunningJob)
}
_FIELDS = {entry_type: (names, attrgetter(*names)) for entry_type, names in _NAMES.items()}


def explained(team_share: TeamShare, rules: FairShare) -> str | None:
    """Explain a standing to people; None if it is too small to be shown."""
    if abs(team_share.points) < _SHOWN:
        return None
    lately = f"of the last {duration_text(rules.half_life)}"
    change = "more" if team_share.points > 0 else "less"
    count = f"{abs(team_share.points):.0f} point{'' if round(abs(team_share.points)) == 1 else 's'} {change}"
    return (
        f"{team_share.team} has used {team_share.times:.1f} times its share {lately}: its jobs count {count}"
    )
