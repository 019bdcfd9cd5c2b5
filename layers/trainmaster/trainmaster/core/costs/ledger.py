"""Who used what, what it was spent on, and what of a month's budget is left.

Money is whole cents, use is whole instance-seconds. A cost that nobody knows is None and stays None in every
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

_SECOND = timedelta(seconds=1)
_WARN_PER_CENT = 80


class Cause(StrEnum):
    """What instances were paid for."""

    PRODUCTIVE = "productive"
    """Training that a result, or a checkpoint that was seen, has kept."""
    UNKNOWN = "unknown"
    """Training of which nobody saw whether a checkpoint kept it."""
    PREEMPTION = "preemption"
    """Training lost because another job needed the room."""
    FAILURES = "failures"
    """Training lost to anything else that ended the attempt."""
    IDLE = "idle"
    """Training from the alarm that the GPUs do nothing to the end that came of it, and what that lost."""
    WARM_POOL = "warm_pool"
    """Instances kept after their job, for the next."""
    STARTUP = "startup"
    """Instances that are there and do not train: images and data, before Training and after interruptions."""


_LOST_TO: Mapping[str, Cause] = MappingProxyType(
    {
        ReasonCode.PREEMPTION: Cause.PREEMPTION,
        ReasonCode.IDLE: Cause.IDLE,
        ReasonCode.IDLE_REQUEUE: Cause.IDLE,
    }
)


def lost_to(reason_code: str) -> Cause:
    """What training that the end of an attempt threw away was lost to, by the code of the end's reason."""
    return _LOST_TO.get(reason_code, Cause.FAILURES)


def month_of(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat()[:7]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedAttempt:
    """What the bill of an attempt needs to know."""

    job: str
    instances: int
    usd_per_hour: Decimal | None
    """Of all instances together, on-demand; None: unknown."""
    claimed_at: datetime
    ended_at: datetime
    trained: timedelta = timedelta()
    """In status Training, all intervals together."""
    up: timedelta | None = None
    """``TrainingTimeInSeconds``: how long its instances were there; None where SageMaker did not say."""
    billable: timedelta | None = None
    """``BillableTimeInSeconds``; None where SageMaker did not say: then all time since the claim counts."""
    idle: timedelta = timedelta()
    """Of its training, what its GPUs did nothing in before they were taken from it."""
    lost: timedelta = timedelta()
    """Of its training, what neither a checkpoint nor a result kept; it may overlap with ``idle``."""
    lost_to: Cause = Cause.FAILURES
    unknown: timedelta = timedelta()
    """Of its training, what may have been kept: the job saves, and nobody saw a checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """What a job used and what that cost."""

    job: str
    instance_seconds: int = 0
    cents: int | None = 0
    """None: at least one of its instance types has no price."""
    by: Mapping[Cause, int] = field(default_factory=dict)
    """Cents by cause: their sum is what is known of the cost, and equals ``cents`` unless that is None."""
    saved_cents: int = 0
    """What the same instances would have cost more on demand, as far as prices are known."""

    def __add__(self, other: "UsageLine") -> "UsageLine":
        """Both together, under the name of the first."""
        known = self.cents is not None and other.cents is not None
        by = {cause: self.by.get(cause, 0) + other.by.get(cause, 0) for cause in {*self.by, *other.by}}
        return UsageLine(
            job=self.job,
            instance_seconds=self.instance_seconds + other.instance_seconds,
            cents=sum(by.values()) if known else None,
            by=by,
            saved_cents=self.saved_cents + other.saved_cents,
        )


def line_of(attempt: EndedAttempt) -> UsageLine:
    """The bill of one attempt; its causes add up to the cost to the cent."""
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
    )


def _saved(attempt: EndedAttempt, up: timedelta, cents: int | None) -> int:
    """Only a spot attempt is billed for less time than its instances were there.

    Source: SageMaker developer guide, managed spot training: BillableTimeInSeconds and TrainingTimeInSeconds.
    """
    whole = cost_cents(attempt.usd_per_hour, up) if attempt.up is not None else None
    return 0 if whole is None or cents is None else max(whole - cents, 0)


def warm_pool_line(
    job: str, *, instances: int, usd_per_hour: Decimal | None, retained: timedelta
) -> UsageLine:
    """The bill of a warm pool, for the job that left it.

    Args:
        job: Whose instances they were.
        instances: How many.
        usd_per_hour: Of all of them together; None: unknown.
        retained: ``ResourceRetainedBillableTimeInSeconds`` of its WarmPoolStatus.
    """
    cents, seconds = cost_cents(usd_per_hour, retained), instances * (retained // _SECOND)
    by = {} if cents is None else {Cause.WARM_POOL: cents}
    return UsageLine(job=job, instance_seconds=seconds, cents=cents, by=by)


def _spent(attempt: EndedAttempt) -> dict[Cause, timedelta]:
    """The time its instances ran, by cause; none is negative, whatever the clocks of two services say."""
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
    """How long its instances ran. The wait for them, which follows the claim, is not billed."""
    held = attempt.ended_at - attempt.claimed_at
    return next(span for span in (attempt.up, attempt.billable, held) if span is not None)


def _shares(cents: int, spent: Mapping[Cause, timedelta]) -> dict[Cause, int]:
    """Cents in proportion to times: whole, together exactly ``cents``; odd ones to the largest remainders."""
    whole = sum(spent.values(), timedelta()) // timedelta.resolution
    if not whole:
        return {Cause.STARTUP: cents}
    exact = {cause: divmod(cents * (time // timedelta.resolution), whole) for cause, time in spent.items()}
    odd = cents - sum(share for share, _ in exact.values())
    rounded_up = sorted(exact, key=lambda cause: exact[cause][1], reverse=True)[:odd]
    return {cause: share + (cause in rounded_up) for cause, (share, _) in exact.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthAccount:
    """What a team has spent and promised in one month, in cents."""

    spent: int = 0
    """Of attempts that have ended."""
    reserved: int = 0
    """Worst case of those that have not."""

    def reserve(self, cents: int) -> "MonthAccount":
        """An attempt is claimed."""
        return MonthAccount(spent=self.spent, reserved=self.reserved + cents)

    def settle(self, *, reserved: int, cents: int) -> "MonthAccount":
        """Its end: the reservation goes, the bill stays. One that was never started costs nothing."""
        return MonthAccount(spent=self.spent + cents, reserved=self.reserved - reserved)


def budget_cents(usd_per_month: Decimal) -> int:
    """Convert what the policy writes in USD; a part of a cent is nobody's."""
    return int(usd_per_month.scaleb(2).to_integral_value(rounding=ROUND_DOWN))


def admits(budget: int, account: MonthAccount, worst_case: int | None) -> bool:
    """Whether a start is certain to stay within the month's budget, all in cents.

    A start whose cost nobody knows is not: one type without a price would make every budget void.
    """
    return worst_case is not None and account.spent + account.reserved + worst_case <= budget


def warns(budget: int, before: MonthAccount, after: MonthAccount) -> bool:
    """Whether 80 % of the budget are spent just now. What is spent never falls, so this is once a month."""
    mark = budget * _WARN_PER_CENT
    return before.spent * 100 < mark <= after.spent * 100


def budget_reason(
    team: str, *, month: str, budget: int, account: MonthAccount, worst_case: int | None
) -> Reason:
    """Why a start that ``admits`` refuses has to wait, and what would help."""
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
    """Who took instances from whom, and what work that cost."""

    at: datetime
    preemptor: str
    preemptor_team: str
    victim: str
    victim_team: str
    instance_seconds_lost: int
    cents_lost: int | None
    """None: unknown."""


def usage_view(
    team: str, month: str, lines: Iterable[UsageLine], preemptions: Iterable[PreemptionEntry] = ()
) -> dict[str, Any]:
    """``GET /usage``: each job once, by name; who took what from whom. Only here do numbers become JSON's."""
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
        "by": {cause.value: None if line.cents is None else _usd(line.by.get(cause, 0)) for cause in Cause},
    }


def _preemption_view(entry: PreemptionEntry, team: str) -> dict[str, Any]:
    """Names stay within their team: of the other side only the team is shown."""
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
