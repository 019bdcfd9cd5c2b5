"""Budgets of teams: the worst case of an attempt is covered before it starts."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property

from trainmaster.core.costs.ledger import MonthAccount, admits, budget_reason, month_of, warns
from trainmaster.core.costs.prices import cost_cents
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Shape, Vector, fits
from trainmaster.core.planning.actions import Charge, WarnOfBudget
from trainmaster.core.planning.budget_relief import BudgetRelief
from trainmaster.core.planning.capacity import longest_run
from trainmaster.core.planning.snapshot import BudgetState, Snapshot, WaitingJob
from trainmaster.core.policy import AtLimit


@dataclass(kw_only=True)
class Budgets:
    """Commitments by the starts of a plan, team by team."""

    snapshot: Snapshot
    now: datetime
    committed: dict[str, int] = field(default_factory=dict)
    """Cents that this plan has committed so far, by team."""

    def charge(self, job: WaitingJob, shape: Shape) -> Charge | None:
        """Return the worst case of an attempt in this shape; None where the price is unknown."""
        rate = self._rate(job, shape)
        if rate is None:
            return None
        cents = cost_cents(rate, longest_run(job, shape))
        assert cents is not None
        budget = self.snapshot.budgets.get(job.team)
        room = None
        if budget is not None and not self._runs_as_spot(shape, budget):
            room = budget.limit_cents - cents
        return Charge(month=month_of(self.now), usd_per_hour=rate, cents=cents, room_cents=room)

    def refusal(self, job: WaitingJob, shape: Shape) -> Reason | None:
        """Return why the team's month does not cover it; None if it does."""
        budget = self.snapshot.budgets.get(job.team)
        if budget is None:
            return None
        account = budget.account.reserve(self.committed.get(job.team, 0))
        charge = self.charge(job, shape)
        worst_case = charge.cents if charge else None
        if self._runs_as_spot(shape, budget):
            covered = account.spent < budget.limit_cents
        else:
            covered = admits(budget.limit_cents, account, worst_case)
        if covered:
            return None
        reason = budget_reason(
            job.team, month=budget.month, budget=budget.limit_cents, account=account, worst_case=worst_case
        )
        if worst_case is None or worst_case > budget.limit_cents:
            return reason  # no wait helps
        # Reserved money may come back when jobs end early: say how much of it this job needs, and from which
        # jobs.
        short = account.spent + account.reserved + worst_case - budget.limit_cents
        relief = self._relief.text(job.team, replace(budget, account=account), short=short)
        return replace(reason, message=reason.message + relief)

    @cached_property
    def _relief(self) -> BudgetRelief:
        return BudgetRelief(running=self.snapshot.running, now=self.now)

    def commit(self, team: str, charge: Charge | None) -> None:
        if charge is not None:
            self.committed[team] = self.committed.get(team, 0) + charge.cents

    def shapes(self, job: WaitingJob, capacity: Vector) -> tuple[Shape, ...]:
        """Return the shapes that it may start in; past the limit spot ones, if the team's budget says so.

        Args:
            job: A job that waits.
            capacity: All that the pool has: where it has too little spot, the job waits for its budget.
        """
        budget = self.snapshot.budgets.get(job.team)
        if budget is None or budget.at_limit is AtLimit.WAIT or not _can_be_spot(job):
            return job.shapes
        covered = tuple(shape for shape in job.shapes if self.refusal(job, shape) is None)
        spot = (as_spot(shape) for shape in job.shapes)
        return covered or tuple(shape for shape in spot if fits(shape.vector, capacity)) or job.shapes

    def _runs_as_spot(self, shape: Shape, budget: BudgetState) -> bool:
        """Tell whether it reserves nothing: on spot with ``at_limit: spot``, while something is left."""
        return budget.at_limit is AtLimit.SPOT and shape.capacity_type is CapacityType.SPOT

    def _rate(self, job: WaitingJob, shape: Shape) -> Decimal | None:
        prices = self.snapshot.prices
        if job.choice is Choice.SAGEMAKER:
            return prices.dearest_usd_per_hour({capacity: count} for capacity, count in shape.vector.items())
        return prices.vector_usd_per_hour(shape.vector)


def warnings(snapshot: Snapshot) -> list[WarnOfBudget]:
    """Return warnings to teams that have spent most of their month and were not notified yet."""
    return [
        WarnOfBudget(
            team=team, month=budget.month, spent_cents=budget.account.spent, limit_cents=budget.limit_cents
        )
        for team, budget in sorted(snapshot.budgets.items())
        if not budget.warned and warns(budget.limit_cents, MonthAccount(), budget.account)
    ]


def _can_be_spot(job: WaitingJob) -> bool:
    """Tell whether a job may move to spot.

    An interruption without checkpoints costs more than spot saves; a job that left spot does not return.
    """
    return job.has_checkpoint and job.choice is Choice.FIRST_FIT and not job.left_spot


def as_spot(shape: Shape) -> Shape:
    """Return the same instances as managed spot."""
    vector = {
        Capacity(capacity.instance_type, CapacityType.SPOT): count for capacity, count in shape.vector.items()
    }
    return Shape(vector=vector, subnet=shape.subnet)
