"""Keeps what teams have spent and reserved of their monthly budgets, in all pools of a replayed policy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from trainmaster.core.costs.ledger import MonthAccount, UsageLine, budget_cents, month_of
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.snapshot import BudgetState, WaitingJob, WarmPool
from trainmaster.core.policy import Policy
from trainmaster.core.policy.document import Budget


@dataclass(slots=True, kw_only=True)
class TeamBudgets:
    """Keeps what teams have spent and reserved, month by month, in all pools of a policy."""

    limits: Mapping[str, Budget]
    """Budgets by team."""
    accounts: dict[tuple[str, str], MonthAccount] = field(default_factory=dict)
    """Accounts by team and month."""
    told: set[tuple[str, str]] = field(default_factory=set)
    """Team and month of which a notice that most of the budget is spent was sent."""

    @classmethod
    def of(cls, policy: Policy) -> "TeamBudgets":
        return cls(limits={team.name: team.budget for team in policy.teams if team.budget is not None})

    def account(self, team: str, month: str) -> MonthAccount:
        return self.accounts.get((team, month), MonthAccount())

    def states(self, waiting: tuple[WaitingJob, ...], *, now: datetime) -> dict[str, BudgetState]:
        """Return the state of this month for each team that has a budget and waits."""
        month = month_of(now)
        return {
            team: BudgetState(
                month=month,
                account=self.account(team, month),
                limit_cents=budget_cents(self.limits[team].usd_per_month),
                at_limit=self.limits[team].at_limit,
                warned=(team, month) in self.told,
            )
            for team in sorted({job.team for job in waiting} & self.limits.keys())
        }

    def warned(self, team: str, month: str) -> None:
        self.told.add((team, month))

    def charge(self, change: Change) -> None:
        """Book reservations and bills, in the month of the claim."""
        team = change.after.spec.team
        if team not in self.limits:
            return
        before, after = _reserved(change.before), _reserved(change.after)
        if before == after:
            return
        if before is not None:
            ended = change.ended
            bill = (ended.bill.cents or 0) if ended is not None else 0
            month, cents = before
            self.accounts[team, month] = self.account(team, month).settle(reserved=cents, cents=bill)
        if after is not None:
            month, cents = after
            self.accounts[team, month] = self.account(team, month).reserve(cents)

    def bill(self, warm: WarmPool, line: UsageLine | None) -> None:
        if line is not None and warm.month is not None and warm.team in self.limits:
            account = self.account(warm.team, warm.month)
            self.accounts[warm.team, warm.month] = account.settle(reserved=0, cents=line.cents or 0)

    def fork(self) -> Self:
        return replace(self, accounts=dict(self.accounts), told=set(self.told))


def _reserved(job: Job) -> tuple[str, int] | None:
    """Return the month and the cents that its live attempt has reserved; None if it reserved none."""
    claim = job.live.claim if job.live else None
    return None if claim is None or claim.month is None else (claim.month, claim.reserved_cents)
