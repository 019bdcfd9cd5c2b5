"""``trainmaster usage --commit``: which Savings Plan past on-demand use would have paid for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer
from trainmaster.core.costs.prices import PriceTable

from trainmaster_client.advice.commitments import (
    HOUR,
    SHORTEST,
    Commitment,
    PastUse,
    best_commitment,
    hourly_usd,
    past_use,
)
from trainmaster_client.cli.connection import CommandApi, connect
from trainmaster_client.cli.screen import busy
from trainmaster_client.errors import (
    ForbiddenError,
    GatewayRefusedError,
    InvalidArgumentError,
    MalformedViewError,
)
from trainmaster_client.jobs.instants import api_time, instant
from trainmaster_client.simulate.sources.account_export import Period, recorded_since

USUAL_PERIOD = timedelta(days=30)
LONGEST_PERIOD = timedelta(days=92)
"""Longer ones would read a hundred thousand attempts and more of a busy stack."""
USUAL_DISCOUNTS = (Decimal("0.2"), Decimal("0.4"), Decimal("0.6"))
LEAST_PERCENT, MOST_PERCENT = 1, 99
_PART = timedelta(days=7)
"""Period of one call: the API adds up at most 50,000 attempts in each (docs/api.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """Options of advice on Savings Plans."""

    commit: Annotated[
        bool,
        typer.Option(
            "--commit", help="What a Savings Plan would have saved on the on-demand use of all pools."
        ),
    ] = False
    discount: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PERCENT",
            help="With --commit: the plan's discount, e.g. 30%; several are compared. Else 20, 40, 60%.",
        ),
    ] = None

    def check(self, **others: object) -> bool:
        """Tell whether ``--commit`` was given.

        Args:
            others: Options of the other forms of the command; none of them goes with it.

        Raises:
            InvalidArgumentError: One of them was given too, or ``--discount`` alone.
        """
        if not self.commit and self.discount is not None:
            raise InvalidArgumentError("--discount is for Savings Plans.", hint="Add --commit.")
        if self.commit and (given := [name for name, value in others.items() if value is not None]):
            option = given[0].replace("_", "-")
            raise InvalidArgumentError(
                f"--commit is about all teams and pools together, so --{option} does not go with it.",
                hint=f"Leave out --{option}; --from and --to set the time.",
            )
        return self.commit

    def discounts(self) -> tuple[Decimal, ...]:
        """Return the discounts as shares, ascending. Raises InvalidArgumentError."""
        if self.discount is None:
            return USUAL_DISCOUNTS
        return tuple(sorted({_discount(text) for text in self.discount}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    past: PastUse
    prices: PriceTable
    has_policys_prices: bool
    """Whether the policy could be read, which has prices of its own."""
    asked_since: datetime
    """Begin of the period that was asked for; the record may begin later."""
    hourly: tuple[float, ...]
    commitments: tuple[Commitment, ...]
    """The best one for each discount, in ascending order; empty if the record is too short."""

    @property
    def usd(self) -> float:
        return sum(self.hourly)

    @property
    def shown(self) -> Commitment:
        """Return the commitment that the sentences are about: that of the middle discount."""
        return self.commitments[len(self.commitments) // 2]


def advise_commitment(options: CommitOptions, *, start: str | None, end: str | None) -> Advice:
    """Read whole hours of all pools and find the best commitments.

    Args:
        options: Which discounts.
        start: Begin of the period as it was written; None for 30 days before its end.
        end: End of the period as it was written; None for now.

    Raises:
        InvalidArgumentError: Discounts or the period make no sense, or nothing is recorded yet.
        MalformedViewError: The API answered in a way this client does not know.
    """
    discounts = options.discounts()
    wanted = _whole_hours(start, end, now=datetime.now(UTC))
    api = connect()
    with busy("Adding up the hours"):
        recorded = _recorded(api, wanted)
        try:
            past = past_use(point for part in _parts(recorded) for point in _points(api, part))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MalformedViewError(f"{type(error).__name__}: {error}") from error
        own = _policys_prices(api)
    prices = PriceTable(overrides=own or {})
    hourly = hourly_usd(past, prices)
    enough = past.hours >= SHORTEST
    return Advice(
        past=past,
        prices=prices,
        has_policys_prices=own is not None,
        asked_since=wanted.since,
        hourly=hourly,
        commitments=tuple(best_commitment(hourly, discount) for discount in discounts) if enough else (),
    )


def _discount(text: str) -> Decimal:
    """Read a percentage as a share. Raises InvalidArgumentError."""
    hint = f"Give a percentage from {LEAST_PERCENT}% to {MOST_PERCENT}%, e.g. --discount 30%."
    try:
        percent = Decimal(text.strip().removesuffix("%").strip())
    except InvalidOperation as error:
        raise InvalidArgumentError(f"--discount {text!r} is not a percentage.", hint=hint) from error
    if not percent.is_finite() or not LEAST_PERCENT <= percent <= MOST_PERCENT:
        raise InvalidArgumentError(
            f"--discount {text!r} is not between {LEAST_PERCENT}% and {MOST_PERCENT}%.", hint=hint
        )
    return percent / 100


def _whole_hours(start: str | None, end: str | None, *, now: datetime) -> Period:
    """Return the whole hours of the period that was asked for. Raises InvalidArgumentError."""
    until = _hour(min(now if end is None else instant(end, now=now, option="--to"), now))
    since = until - USUAL_PERIOD if start is None else instant(start, now=now, option="--from")
    period = Period(since=_next_hour(since), until=until)
    if period.until - period.since > LONGEST_PERIOD:
        raise InvalidArgumentError(
            f"--commit reads at most {LONGEST_PERIOD.days} days.", hint="Give e.g. --from 30d."
        )
    return period


def _hour(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _next_hour(at: datetime) -> datetime:
    return _hour(at + HOUR - timedelta(microseconds=1))


def _recorded(api: CommandApi, wanted: Period) -> Period:
    """Return the part of a period from the first whole hour on that a pool's history covers."""
    names = [str(pool["name"]) for pool in api.pools().get("pools") or ()]
    since = recorded_since(api, names, wanted)
    hint = "Ask again when jobs have run for some weeks."
    if since is None:
        raise InvalidArgumentError(
            "This stack has no history yet: nothing has started in any pool.", hint=hint
        )
    if _next_hour(since) >= wanted.until:
        message = f"Not a whole hour of that time is recorded: the history begins {api_time(since)}."
        raise InvalidArgumentError(message, hint=hint)
    return Period(since=max(_next_hour(since), wanted.since), until=wanted.until)


def _parts(period: Period) -> Iterator[Period]:
    begin = period.since
    while begin < period.until:
        end = min(begin + _PART, period.until)
        yield Period(since=begin, until=end)
        begin = end


def _points(api: CommandApi, part: Period) -> Sequence[Mapping[str, Any]]:
    start, end = api_time(part.since), api_time(part.until)
    points: Sequence[Mapping[str, Any]] = api.pool_history(start=start, end=end, step=3600)["points"]
    return points


def _policys_prices(api: CommandApi) -> dict[str, Decimal] | None:
    """Return the prices that the policy gives; None for callers who may not read it."""
    try:
        document = api.policy().get("policy") or {}
    except GatewayRefusedError:
        raise
    except ForbiddenError:
        return None
    try:
        return {str(name): Decimal(str(usd)) for name, usd in (document.get("prices") or {}).items()}
    except (AttributeError, InvalidOperation) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
