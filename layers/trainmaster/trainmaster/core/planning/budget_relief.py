"""What ends a wait for a budget, and when: what runs gives back what it does not use, and months end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from trainmaster.core.costs.prices import usd_text
from trainmaster.core.planning.expected_ends import chances
from trainmaster.core.planning.snapshot import BudgetState, RunningJob
from trainmaster.core.planning.wait_reasons import minute_text

MOST_NAMED = 3
"""Of the jobs that reserve; the reason is kept in the job's row."""


def month_end(month: str) -> datetime:
    """The instant at which a month (``YYYY-MM``) is over, UTC."""
    year, number = (int(part) for part in month.split("-"))
    return datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reserves:
    """One job of the team that runs in this pool."""

    name: str
    ends_at: datetime
    """As likely as not before."""
    is_learned: bool
    """Jobs like it were seen to end; else its end is a guess that is not worth showing."""
    gives_back: int
    """Cents that it is likely to have reserved and not used."""


@dataclass(kw_only=True)
class BudgetRelief:
    """Of one plan; a team's jobs are put in order at the first question about it."""

    running: Iterable[RunningJob]
    now: datetime
    by_team: dict[str, tuple[_Reserves, ...]] = field(default_factory=dict)

    def text(self, team: str, budget: BudgetState, *, short: int) -> str:
        """What a job that lacks ``short`` cents of its team's month waits for: the end of its reason."""
        month_over = f"when the month ends, {minute_text(month_end(budget.month))}"
        if short > budget.account.reserved:
            return f"; it starts {month_over}: all that runs cannot give back so much"
        who = self._from(team, short)
        return f"; it starts when {usd_text(short)} of that is free again{who}, at the latest {month_over}"

    def _from(self, team: str, short: int) -> str:
        """Who gives it back by ending before its time is up, as far as this pool knows."""
        enough = self._enough(team, short)
        if not enough:
            return ""
        names = ", ".join(one.name for one in enough[:MOST_NAMED])
        more = f" and {len(enough) - MOST_NAMED} more" if len(enough) > MOST_NAMED else ""
        likely = f", likely by {minute_text(enough[-1].ends_at)}"
        is_learned = all(one.is_learned for one in enough)
        until = "reserves it until it ends" if len(enough) == 1 else "reserve it until they end"
        return f": {names}{more} {until}{likely if is_learned else ''}"

    def _enough(self, team: str, short: int) -> list[_Reserves]:
        """The first to end of those that give back so much together; none where all of them do not."""
        chosen: list[_Reserves] = []
        left = short
        for one in self._of(team):
            if left <= 0:
                break
            if one.gives_back > 0:
                chosen.append(one)
                left -= one.gives_back
        return chosen if left <= 0 else []

    def _of(self, team: str) -> tuple[_Reserves, ...]:
        if team not in self.by_team:
            found = (self._reserves(job) for job in self.running if job.team == team)
            known = (one for one in found if one is not None)
            self.by_team[team] = tuple(sorted(known, key=lambda one: (one.ends_at, one.name)))
        return self.by_team[team]

    def _reserves(self, job: RunningJob) -> _Reserves | None:
        """None: what it reserved is not known."""
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
    """When the budgets that a plan knows begin again; None: it knows none."""
    ends = [month_end(budget.month) for budget in budgets.values()]
    return min((end for end in ends if end > now), default=None)
