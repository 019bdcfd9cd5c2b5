"""The months of a pool's teams in one possible future: starts reserve, ends give back, months begin again."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.core.costs.ledger import MonthAccount, month_of
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.budget_relief import fresh_month
from trainmaster.core.planning.snapshot import BudgetState, PreemptionReservation, RunningJob, Snapshot

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reserved:
    """The reservation of one attempt, in whole cents."""

    month: str
    cents: int
    cents_per_hour: float
    since: datetime


@dataclass(slots=True, kw_only=True)
class FutureBudgets:
    """The budgets of one future. Jobs of other pools keep their reservations until the month ends."""

    states: dict[str, BudgetState]
    """Budget by team, only of teams that have one."""
    reserved: dict[str, _Reserved] = field(default_factory=dict)
    """Reservation by running job."""
    asked_again: tuple[datetime, ...] = ()
    """Instants at which starts that the account refuses now are tried again."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "FutureBudgets":
        again = [limit.until for limit in snapshot.account_limits.values()]
        again += [job.refused.again_at for job in snapshot.waiting if job.refused and job.refused.again_at]
        budgets = cls(states=dict(snapshot.budgets), asked_again=tuple(again))
        budgets._note(snapshot.running)
        return budgets

    def _note(self, running: Iterable[RunningJob]) -> None:
        for job in running:
            rate, most = job.cents_per_hour, job.expected.at_most
            if job.team in self.states and rate is not None and most is not None:
                self.reserved[job.name] = _Reserved(
                    month=month_of(job.claimed_at),
                    cents=int(most / _HOUR * rate),
                    cents_per_hour=rate,
                    since=job.claimed_at,
                )

    def pass_to(self, now: datetime) -> dict[str, BudgetState]:
        """Return the budgets at this instant; a month that is over has begun again."""
        if self.states:
            month = month_of(now)
            for team, state in self.states.items():
                if state.month < month:
                    self.states[team] = replace(state, month=month, account=MonthAccount())
        return self.states

    def changes_by_time(self, holds: Iterable[PreemptionReservation], *, now: datetime) -> list[datetime]:
        """Return instants after ``now`` at which jobs can start although no job ends or comes.

        A month begins again; the account is asked again for what it refused; instances that were kept for a
        job that did not come are free again.
        """
        instants = [*self.asked_again, *(hold.until for hold in holds if hold.until is not None)]
        again = fresh_month(self.states, now=now)
        return [at for at in (*instants, *([again] if again else ())) if at > now]

    def started(self, action: Start, at: datetime) -> None:
        charge, team = action.charge, action.job.team
        if charge is None or team not in self.states:
            return
        self.reserved[action.job.name] = _Reserved(
            month=month_of(at), cents=charge.cents, cents_per_hour=float(charge.usd_per_hour * 100), since=at
        )
        self._change(team, month_of(at), reserved=charge.cents)

    def ended(self, job: RunningJob, at: datetime) -> None:
        reservation = self.reserved.pop(job.name, None)
        if reservation is None:
            return
        cost = min(
            int(max(at - reservation.since, timedelta()) / _HOUR * reservation.cents_per_hour),
            reservation.cents,
        )
        self._change(job.team, reservation.month, reserved=-reservation.cents, spent=cost)

    def _change(self, team: str, month: str, *, reserved: int, spent: int = 0) -> None:
        """Change the account of the month that an attempt was claimed in, unless that month is over."""
        state = self.states[team]
        if state.month == month:
            account = state.account
            changed = MonthAccount(spent=account.spent + spent, reserved=max(account.reserved + reserved, 0))
            self.states[team] = replace(state, account=changed)
