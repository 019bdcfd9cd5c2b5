"""Cost so far of attempts that still run: the part of "spent" that no bill has yet."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.core.costs.ledger import month_of
from trainmaster.core.planning.snapshot import RunningJob

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCost:
    """Attempts that hold instances, and their cost up to now."""

    jobs: int = 0
    known_cents: int = 0
    is_known: bool = True
    """False where one of them has an instance type without a price."""

    @property
    def cents(self) -> int | None:
        return self.known_cents if self.is_known else None


def cost_so_far(
    running: Iterable[RunningJob], *, teams: Collection[str], months: Collection[str], now: datetime
) -> RunningCost:
    """Add up the live attempts of some teams, in the months of their claims, as their bills will count.

    All time since the claim counts, at the on-demand price: the bill, which takes SageMaker's billable time,
    is not above that.

    Args:
        running: Rows of live jobs.
        teams: Names of the teams that count.
        months: Months (``YYYY-MM``) that count.
        now: Instant up to which they cost.
    """
    mine = [job for job in running if job.team in teams and month_of(job.claimed_at) in months]
    known = [job for job in mine if job.cents_per_hour is not None]
    return RunningCost(
        jobs=len(mine),
        known_cents=sum(_cents(job, now=now) for job in known),
        is_known=len(known) == len(mine),
    )


def _cents(job: RunningJob, *, now: datetime) -> int:
    held = max(now - job.claimed_at, timedelta())
    return round((job.cents_per_hour or 0) * (held / _HOUR))
