"""The ledger: what each job used and cost, what that was spent on, and what is left of a month's budget.

Money is whole cents, use is whole instance-seconds. An unknown cost is None and stays None in every
sum it is part of. A month is a calendar month in UTC, written ``YYYY-MM``. An attempt belongs whole to the
month in which it was claimed, even if it runs into the next: so reservation and bill meet in one account.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from trainmaster.core.costs.prices import cost_cents, usd_text
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.reason_codes import ReasonCode

_SECOND, _WARN_PER_CENT = timedelta(seconds=1), 80


class Cause(StrEnum):
    """The purposes that instances were paid for."""

    PRODUCTIVE = "productive"
    """Training that was kept by a result, or by a checkpoint that was seen."""
    UNKNOWN = "unknown"
    """Training that may have been kept or lost: no checkpoint was seen."""
    PREEMPTION = "preemption"
    """Training lost because another job needed the instances, the calendar took them, or a width changed."""
    FAILURES = "failures"
    """Training lost to anything else that ended the attempt."""
    IDLE = "idle"
    """Training from the idle alarm to the end that it caused, and the work lost by stops for idle or
    underused GPUs."""
    WARM_POOL = "warm_pool"
    """Instances kept ready after their job, for the next one."""
    STARTUP = "startup"
    """Instances that run and do not train: they load images and data at a start or a restart."""


_FOR_OTHERS = (ReasonCode.PREEMPTION, ReasonCode.WINDOW, ReasonCode.SHRINK, ReasonCode.GROW)
_LOST_TO: Mapping[str, Cause] = MappingProxyType(
    dict.fromkeys(map(str, _FOR_OTHERS), Cause.PREEMPTION)
    | dict.fromkeys((ReasonCode.IDLE.value, ReasonCode.IDLE_REQUEUE.value), Cause.IDLE)
    | dict.fromkeys((ReasonCode.UNDERUSED.value, ReasonCode.UNDERUSED_REQUEUE.value), Cause.IDLE)
)


def lost_to(reason_code: str) -> Cause:
    """Return the cause that lost training is booked under, given the reason code of the attempt's end."""
    return _LOST_TO.get(reason_code, Cause.FAILURES)


def month_of(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat()[:7]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedAttempt:
    """The facts about an ended attempt that its bill is made from."""

    job: str
    instances: int
    usd_per_hour: Decimal | None
    """On-demand price of all its instances together; None if it is unknown."""
    claimed_at: datetime
    ended_at: datetime
    trained: timedelta = timedelta()
    """Time in status Training, all intervals together."""
    up: timedelta | None = None
    """``TrainingTimeInSeconds``, the time its instances ran; None where SageMaker did not report it."""
    billable: timedelta | None = None
    """``BillableTimeInSeconds``; None where SageMaker did not report it: then ``up`` counts."""
    idle: timedelta = timedelta()
    """Part of ``trained`` in which its GPUs were idle before the attempt was ended for it."""
    lost: timedelta = timedelta()
    """Part of ``trained`` that neither a checkpoint nor a result kept; it may overlap with ``idle``."""
    lost_to: Cause = Cause.FAILURES
    unknown: timedelta = timedelta()
    """Part of ``trained`` that may have been kept: the job saves checkpoints, and none was seen."""
    startup_saved: timedelta = timedelta()
    """Start-up that it did not need, as it took over a warm pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """The use and the cost of one job."""

    job: str
    instance_seconds: int = 0
    cents: int | None = 0
    """Cost in cents; None if at least one of its instance types has no price."""
    by: Mapping[Cause, int] = field(default_factory=dict)
    """Cents by cause. Their sum is the known part of the cost, and equals ``cents`` unless that is None."""
    saved_cents: int = 0
    """Cents that the same instances would have cost more on demand, as far as prices are known."""
    warm_saved_cents: int = 0
    """Cents of start-up that warm pools saved its attempts; what they cost is in ``Cause.WARM_POOL``."""

    def __add__(self, other: "UsageLine") -> "UsageLine":
        """Add two lines, under the job name of the first; the cost is None if one of the two is."""
        known = self.cents is not None and other.cents is not None
        by = {cause: self.by.get(cause, 0) + other.by.get(cause, 0) for cause in {*self.by, *other.by}}
        return UsageLine(
            job=self.job,
            instance_seconds=self.instance_seconds + other.instance_seconds,
            cents=sum(by.values()) if known else None,
            by=by,
            saved_cents=self.saved_cents + other.saved_cents,
            warm_saved_cents=self.warm_saved_cents + other.warm_saved_cents,
        )


def line_of(attempt: EndedAttempt) -> UsageLine:
    """Return the bill of one attempt; its causes add up to the cost to the cent."""
    spent = _spent(attempt)
    up = sum(spent.values(), timedelta())
    billed = attempt.billable if attempt.billable is not None else up
    cents = cost_cents(attempt.usd_per_hour, billed)
    return UsageLine(
        job=attempt.job,
        instance_seconds=attempt.instances * (up // _SECOND),
        cents=cents,
        by={} if cents is None else _shares(cents, spent),
        saved_cents=_saved(attempt, up, cents),
        warm_saved_cents=cost_cents(attempt.usd_per_hour, attempt.startup_saved) or 0,
    )


def _saved(attempt: EndedAttempt, up: timedelta, cents: int | None) -> int:
    # Only spot is billed for less than its instances ran: SageMaker developer guide, managed spot training.
    whole = cost_cents(attempt.usd_per_hour, up) if attempt.up is not None else None
    return 0 if whole is None or cents is None else max(whole - cents, 0)


def warm_pool_line(
    job: str, *, instances: int, usd_per_hour: Decimal | None, retained: timedelta
) -> UsageLine:
    """Return the bill of a warm pool, which goes to the job that left it.

    Args:
        job: Name of the job whose instances were kept.
        instances: Number of instances kept.
        usd_per_hour: On-demand price of all of them together; None if it is unknown.
        retained: ``ResourceRetainedBillableTimeInSeconds`` of its WarmPoolStatus.
    """
    cents, seconds = cost_cents(usd_per_hour, retained), instances * (retained // _SECOND)
    by = {} if cents is None else {Cause.WARM_POOL: cents}
    return UsageLine(job=job, instance_seconds=seconds, cents=cents, by=by)


def _spent(attempt: EndedAttempt) -> dict[Cause, timedelta]:
    """Split the time its instances ran by cause; clocks may differ by service, yet no part is negative."""
    training = max(attempt.trained, timedelta())
    idle = min(max(attempt.idle, timedelta()), training)
    lost = max(min(attempt.lost, training) - idle, timedelta())  # both are the last of its training
    unknown = max(min(attempt.unknown, training - idle - lost), timedelta())
    start_up, productive = max(_up(attempt) - training, timedelta()), training - idle - lost - unknown
    spent = {Cause.PRODUCTIVE: productive, Cause.UNKNOWN: unknown, Cause.STARTUP: start_up}
    for cause, time in ((Cause.IDLE, idle), (attempt.lost_to, lost)):
        spent[cause] = spent.get(cause, timedelta()) + time
    return spent


def _up(attempt: EndedAttempt) -> timedelta:
    """Return how long its instances ran. The wait for capacity, which follows the claim, is not billed."""
    held = attempt.ended_at - attempt.claimed_at
    return next(span for span in (attempt.up, attempt.billable, held) if span is not None)


def _shares(cents: int, spent: Mapping[Cause, timedelta]) -> dict[Cause, int]:
    """Split cents in proportion to times, exactly; odd ones go to the largest remainders."""
    whole = sum(spent.values(), timedelta()) // timedelta.resolution
    if not whole:
        return {Cause.STARTUP: cents}
    exact = {cause: divmod(cents * (time // timedelta.resolution), whole) for cause, time in spent.items()}
    odd = cents - sum(share for share, _ in exact.values())
    rounded_up = sorted(exact, key=lambda cause: exact[cause][1], reverse=True)[:odd]
    return {cause: share + (cause in rounded_up) for cause, (share, _) in exact.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthAccount:
    """A team's spending and reservations in one month, in cents."""

    spent: int = 0
    """Cost of attempts that have ended."""
    reserved: int = 0
    """Highest possible cost of attempts that have not ended."""

    def reserve(self, cents: int) -> "MonthAccount":
        """Return the account after an attempt was claimed that may cost this much."""
        return MonthAccount(spent=self.spent, reserved=self.reserved + cents)

    def settle(self, *, reserved: int, cents: int) -> "MonthAccount":
        """Return the account after an attempt ended: its bill, perhaps 0, replaces its reservation."""
        return MonthAccount(spent=self.spent + cents, reserved=self.reserved - reserved)


def budget_cents(usd_per_month: Decimal) -> int:
    """Convert the policy's USD into cents; a part of a cent is cut off."""
    return int(usd_per_month.scaleb(2).to_integral_value(rounding=ROUND_DOWN))


def admits(budget: int, account: MonthAccount, worst_case: int | None) -> bool:
    """Tell whether a start is certain to stay within the month's budget, all in cents."""
    # An unknown cost is refused: one type without a price would make every budget void.
    return worst_case is not None and account.spent + account.reserved + worst_case <= budget


def warns(budget: int, before: MonthAccount, after: MonthAccount) -> bool:
    """Tell whether this change passes 80 % of the budget: once a month, as spending never falls."""
    return before.spent * 100 < budget * _WARN_PER_CENT <= after.spent * 100


def budget_reason(
    team: str, *, month: str, budget: int, account: MonthAccount, worst_case: int | None
) -> Reason:
    """Return why a start that ``admits`` refuses has to wait, and what would help."""
    if worst_case is None:
        text = (
            f"the price of its instances is unknown, and team {team} has a budget of {usd_text(budget)}:"
            " ask an admin for `prices`"
        )
    elif worst_case > budget:
        text = (
            f"it may cost up to {usd_text(worst_case)}, more than the {usd_text(budget)} that team {team} has"
            " for a whole month: lower its MaxRuntimeInSeconds or ask an admin for a larger budget"
        )
    else:
        text = (
            f"it may cost up to {usd_text(worst_case)}; of {usd_text(budget)} for {month} team {team} has"
            f" spent {usd_text(account.spent)} and reserved {usd_text(account.reserved)} for what runs"
        )
    return Reason(code=ReasonCode.BUDGET, message=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionEntry:
    """One preemption: which job took instances from which, and what the lost work cost."""

    at: datetime
    preemptor: str
    preemptor_team: str
    victim: str
    victim_team: str
    instance_seconds_lost: int
    cents_lost: int | None
    """Cost of the lost work; None if the price is unknown."""


def usage_view(
    team: str, month: str, lines: Iterable[UsageLine], preemptions: Iterable[PreemptionEntry] = ()
) -> dict[str, Any]:
    """Return the answer of ``GET /usage``; only here do whole cents and seconds become JSON's numbers."""
    jobs: dict[str, UsageLine] = {}
    for line in lines:
        jobs[line.job] = jobs[line.job] + line if line.job in jobs else line
    total = sum(jobs.values(), start=UsageLine(job=""))
    return {
        "team": team,
        "month": month,
        "jobs": [{"name": name, **line_view(jobs[name])} for name in sorted(jobs)],
        "total": {**line_view(total), "known_usd": _usd(sum(total.by.values()))},
        "preemptions": [_preemption_view(entry, team) for entry in preemptions],
    }


def line_view(line: UsageLine) -> dict[str, Any]:
    return {
        "instance_hours": _hours(line.instance_seconds),
        "instance_seconds": line.instance_seconds,
        "usd": _usd(line.cents),
        "saved_usd": _usd(line.saved_cents),
        **({"warm_saved_usd": _usd(line.warm_saved_cents)} if line.warm_saved_cents else {}),
        "by": {cause.value: None if line.cents is None else _usd(line.by.get(cause, 0)) for cause in Cause},
    }


def _preemption_view(entry: PreemptionEntry, team: str) -> dict[str, Any]:
    """Return a preemption as a team may see it: the other side's team is shown, its job's name is not."""
    return {
        "at": entry.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "preemptor": entry.preemptor if entry.preemptor_team == team else None,
        "preemptor_team": entry.preemptor_team,
        "victim": entry.victim if entry.victim_team == team else None,
        "victim_team": entry.victim_team,
        "instance_hours_lost": _hours(entry.instance_seconds_lost),
        "usd_lost": _usd(entry.cents_lost),
    }


def _usd(cents: int | None) -> float | None:
    return None if cents is None else cents / 100


def _hours(instance_seconds: int) -> float:
    return round(instance_seconds / 3600, 3)
