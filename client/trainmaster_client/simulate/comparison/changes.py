"""Finds what another policy changes for whom: jobs and teams that wait longer or shorter, by name."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmaster_client.simulate.comparison.outcomes import Fate, JobOutcome

MOST_NAMED = 10
NOTICED_S = 60
"""A shorter change of a wait is none: a pass runs once a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChange:
    """Change of a job that had to start in both replays. Seconds; less is better."""

    job: str
    team: str
    priority: int
    before_s: float
    """Infinite: it never started."""
    after_s: float
    end_change_s: int | None
    """Seconds by which it ended later; None unless it ended in both."""

    @property
    def change_s(self) -> float:
        if self.before_s == self.after_s:  # both may be infinite
            return 0.0
        return self.after_s - self.before_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamChange:
    """Mean waits of a team's jobs that started in both replays; seconds."""

    team: str
    jobs: int
    before_s: float
    after_s: float

    @property
    def change_s(self) -> float:
        return self.after_s - self.before_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes from one replay to another."""

    winners: tuple[JobChange, ...]
    """Jobs whose wait became shorter, the largest change first."""
    losers: tuple[JobChange, ...]
    shorter: int
    """Jobs that wait at least ``NOTICED_S`` less."""
    longer: int
    same: int
    started_before_alone: int
    """Jobs that never started afterwards, though they had."""
    started_after_alone: int
    refused_after_alone: int
    refused_before_alone: int
    teams: tuple[TeamChange, ...]
    """Teams, from the one whose mean wait fell most to the one whose rose most."""


def changes_between(before: Mapping[str, JobOutcome], after: Mapping[str, JobOutcome]) -> Changes:
    changes = [
        change
        for name, outcome in before.items()
        if (change := _job_change(outcome, after[name])) is not None
    ]
    changes.sort(key=lambda change: (change.change_s, change.job))
    winners = [change for change in changes if change.change_s <= -NOTICED_S]
    losers = [change for change in reversed(changes) if change.change_s >= NOTICED_S]
    pairs = [(outcome, after[name]) for name, outcome in before.items()]
    return Changes(
        winners=tuple(winners[:MOST_NAMED]),
        losers=tuple(losers[:MOST_NAMED]),
        shorter=len(winners),
        longer=len(losers),
        same=len(changes) - len(winners) - len(losers),
        started_before_alone=sum(change.after_s == math.inf != change.before_s for change in changes),
        started_after_alone=sum(change.before_s == math.inf != change.after_s for change in changes),
        refused_after_alone=_refused_alone((new, old) for old, new in pairs),
        refused_before_alone=_refused_alone(pairs),
        teams=_team_changes(changes),
    )


def _job_change(before: JobOutcome, after: JobOutcome) -> JobChange | None:
    """Compare a job in two replays; None if it never had to start in one of them."""
    if before.wait_s is None or after.wait_s is None:
        return None
    both_ended = before.fate.is_end and after.fate.is_end and None not in (before.over_s, after.over_s)
    return JobChange(
        job=before.job.name,
        team=before.job.team,
        priority=before.job.priority,
        before_s=before.wait_s,
        after_s=after.wait_s,
        end_change_s=(after.over_s or 0) - (before.over_s or 0) if both_ended else None,
    )


def _refused_alone(pairs: Iterable[tuple[JobOutcome, JobOutcome]]) -> int:
    return sum(first.fate is Fate.REFUSED and other.fate is not Fate.REFUSED for first, other in pairs)


def _team_changes(changes: Sequence[JobChange]) -> tuple[TeamChange, ...]:
    by_team: dict[str, list[JobChange]] = defaultdict(list)
    for change in changes:
        if math.inf not in (change.before_s, change.after_s):
            by_team[change.team].append(change)
    team_changes = [
        TeamChange(
            team=team,
            jobs=len(mine),
            before_s=sum(change.before_s for change in mine) / len(mine),
            after_s=sum(change.after_s for change in mine) / len(mine),
        )
        for team, mine in by_team.items()
    ]
    return tuple(sorted(team_changes, key=lambda change: (change.change_s, change.team)))
