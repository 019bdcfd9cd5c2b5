"""Fair share: a team that has used more of a pool than its share goes later, one that used less earlier.

The score of a job stays as it is stored. What its team's past use is worth is added to it here, for one plan:
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
"""Times the weight: more points than that are neither lost nor gained."""
_UNNAMED = 1.0
"""Share of a team that the policy does not name."""
_SHOWN = 0.5
"""Points from which on it is worth saying."""

JobT = TypeVar("JobT", WaitingJob, RunningJob)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamShare:
    """How one team stands among those that have jobs in the pool."""

    team: str
    share: float
    """Its part, 0 to 1; of all teams together 1."""
    hours: float
    """Instance-hours that it has used, as they count now."""
    used: float
    """Of what all of them have used: 0 to 1."""
    points: float
    """Of priority that its jobs gain; less than nothing: lose."""

    @property
    def times(self) -> float:
        """How many times its share it has used."""
        return self.used / self.share


def team_shares(
    rules: FairShare,
    teams: Iterable[str],
    *,
    past: Mapping[str, UseSums],
    running: Iterable[RunningJob],
    now: datetime,
) -> dict[str, TeamShare]:
    """How the teams stand.

    Args:
        rules: The pool's.
        teams: Whose jobs wait for their turn; those of ``running`` are added. Who has no job in the pool has
            no part in it: what is free belongs to those who are there.
        past: Sums of attempts that have ended.
        running: Counts up to now.
        now: The instant of the look.
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
    """Points of priority gained, by the parts that a team should have and has used, 0 to 1.

    None at its share; ``weight`` lost at twice it, gained at half of it; ``MOST`` times as many at the ends.
    It always falls as use rises.
    """
    return MOST * weight * ((share - used) / (share + used))


def ranked(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> Snapshot:
    """The snapshot with its jobs in the order that past use makes; without fair share the very same."""
    found = shares_seen(snapshot, pool, now=now)
    if not found:
        return snapshot
    shifts = shifts_of(found, pool)
    return replace(
        snapshot,
        past_use=None,
        waiting=tuple(shifted(job, shifts) for job in snapshot.waiting),
        running=tuple(shifted(job, shifts) for job in snapshot.running),
    )


def shares_seen(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> dict[str, TeamShare]:
    """How the teams stand by a snapshot; of none where there is no fair share."""
    if not pool.order.fair_share.weight or snapshot.past_use is None:
        return {}
    return team_shares(
        pool.order.fair_share,
        {job.team for job in snapshot.waiting},
        past=snapshot.past_use,
        running=snapshot.running,
        now=now,
    )


def shifts_of(found: Mapping[str, TeamShare], pool: PoolPolicy) -> dict[str, int]:
    """Milliseconds to add to the score of each team's jobs; nothing without fair share."""
    if not pool.order.fair_share.weight:
        return {}
    return {team: -round(one.points * float(pool.point_ms)) for team, one in found.items()}


def shifted(job: JobT, shifts: Mapping[str, int]) -> JobT:
    """Made for each job of each plan, so without ``replace``, which takes twice as long."""
    shift = shifts.get(job.team)
    if shift == job.share_ms:
        return job
    names, values = _FIELDS[type(job)]
    return type(job)(**dict(zip(names, values(job), strict=True)) | {"share_ms": shift})


_NAMES = {one: tuple(each.name for each in fields(one) if each.init) for one in (WaitingJob, RunningJob)}
_FIELDS = {one: (names, attrgetter(*names)) for one, names in _NAMES.items()}


def explained(one: TeamShare, rules: FairShare) -> str | None:
    """For people; None where it is not worth saying."""
    if abs(one.points) < _SHOWN:
        return None
    lately = f"of the last {duration_text(rules.half_life)}"
    change = "more" if one.points > 0 else "less"
    count = f"{abs(one.points):.0f} point{'' if round(abs(one.points)) == 1 else 's'} {change}"
    return f"{one.team} has used {one.times:.1f} times its share {lately}: its jobs count {count}"
