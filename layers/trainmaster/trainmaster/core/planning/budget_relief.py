"""Relief of a budget: what ends a wait for it, and when.

Running jobs give back what they do not use, and months end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from trainmaster.core.costs.prices import usd_text
from trainmaster.core.planning.expected_ends import chances
from trainmaster.core.planning.snapshot import BudgetState, RunningJob
from trainmaster.core.planning.wait_reasons import minute_text

MOST_NAMED = 3
"""Most reserving jobs that a reason names, as it is kept in the job's row."""


def month_end(month: str) -> datetime:
    """Return the instant at which a month (``YYYY-MM``) is over, UTC."""
    year, number = (int(part) for part in month.split("-"))
    return datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reserves:
    """One job of the team that runs in this pool and reserves money."""

    name: str
    ends_at: datetime
    """Median of its likely end."""
    is_learned: bool
    """Whether jobs like it were seen to end; else its end is a guess that is not shown."""
    gives_back: int
    """Cents that it is likely to have reserved and not used."""


@dataclass(kw_only=True)
class BudgetRelief:
    """The reliefs of one plan; a team's jobs are sorted at the first question about it."""

    running: Iterable[RunningJob]
    now: datetime
    by_team: dict[str, tuple[_Reserves, ...]] = field(default_factory=dict)

    def text(self, team: str, budget: BudgetState, *, short: int) -> str:
        """Say what a job that lacks ``short`` cents of its team's month waits for: the end of its reason."""
        month_over = f"when the month ends, {minute_text(month_end(budget.month))}"
        # Only reservations come back before the month ends; money that was spent does not.
        if short > budget.account.reserved:
            return f"; it starts {month_over}: all that runs cannot give back so much"
        who = self._from(team, short)
        return f"; it starts when {usd_text(short)} of that is free again{who}, at the latest {month_over}"

    def _from(self, team: str, short: int) -> str:
        """Name the jobs that give it back by ending before their time is up, as far as this pool knows."""
        enough = self._enough(team, short)
        if not enough:
            return ""
        names = ", ".join(reserving.name for reserving in enough[:MOST_NAMED])
        others = f" and {len(enough) - MOST_NAMED} more" if len(enough) > MOST_NAMED else ""
        likely = f", likely by {minute_text(enough[-1].ends_at)}"
        is_learned = all(reserving.is_learned for reserving in enough)
        until = "reserves it until it ends" if len(enough) == 1 else "reserve it until they end"
        return f": {names}{others} {until}{likely if is_learned else ''}"

    def _enough(self, team: str, short: int) -> list[_Reserves]:
        """Return the first jobs to end that give back this much together; none if all of them give less."""
        chosen: list[_Reserves] = []
        left = short
        for reserving in self._of(team):
            if left <= 0:
                break
            if reserving.gives_back > 0:
                chosen.append(reserving)
                left -= reserving.gives_back
        return chosen if left <= 0 else []

    def _of(self, team: str) -> tuple[_Reserves, ...]:
        if team not in self.by_team:
            reserving_jobs = (self._reserves(job) for job in self.running if job.team == team)
            known = (reserving for reserving in reserving_jobs if reserving is not None)
            self.by_team[team] = tuple(
                sorted(known, key=lambda reserving: (reserving.ends_at, reserving.name))
            )
        return self.by_team[team]

    def _reserves(self, job: RunningJob) -> _Reserves | None:
        """Return the reservation of a job; None if it is not known."""
        if job.cents_per_hour is None or job.expected.at_most is None:
            return None
        _, likely, _ = chances(job, now=self.now)
        ends_at = self.now + timedelta(seconds=likely)
        used = min(ends_at - job.claimed_at, job.expected.at_most)
        return _Reserves(
            name=job.name,
            ends_at=ends_at,
            is_learned=job.expected.predicted is not None,
            gives_back=int((job.expected.at_most - used) / timedelta(hours=1) * job.cents_per_hour),
        )


def fresh_month(budgets: Mapping[str, BudgetState], *, now: datetime) -> datetime | None:
    """Return when the budgets that a plan knows begin again; None: it knows none."""
    ends = [month_end(budget.month) for budget in budgets.values()]
    return min((end for end in ends if end > now), default=None)
