"""Training plans as ``--plan`` says them: type, number, windows and fee, each with a clear refusal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from trainmaster.core.policy.kinds import duration_text
from trainmaster.core.policy.plan_windows import ENDS_BEFORE

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.jobs.instants import span
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.replayed_plans import BoughtPlan
from trainmaster_client.simulate.io.sold_plans import LONGEST, MOST_INSTANCES, types_with_plans

EXAMPLE = "type=ml.p5.48xlarge,instances=2,from=2026-10-05T08:00Z,to=2026-10-07T08:00Z,fee=41000"
MOST_WINDOWS = 5
"""Parts of a plan. Source: SageMaker service model, ReservedCapacityOfferings."""
DRAIN = timedelta(minutes=10)
"""Default of ``drain`` in the policy."""
_LEAST_DRAIN, _MOST_DRAIN = timedelta(minutes=5), timedelta(hours=6)
_ONCE = ("type", "instances", "fee", "drain")
_KEYS = (*_ONCE, "from", "to")
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan:
    """A plan whose instants may count from the beginning of a history that is not read yet."""

    instance_type: str
    instances: int
    windows: tuple[tuple[datetime | timedelta, datetime | timedelta], ...]
    fee_usd: Decimal | None
    drain: timedelta | None

    @property
    def label(self) -> str:
        return f"{self.instances} {self.instance_type} plan"


def read_plans(texts: Sequence[str] | None) -> list[WrittenPlan]:
    """Read the values of ``--plan``. Raises InvalidArgumentError."""
    return [_read(text) for text in texts or ()]


def _read(text: str) -> WrittenPlan:
    values: dict[str, str] = {}
    edges: list[tuple[str, datetime | timedelta]] = []
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in _KEYS or not value:
            raise _refused(f"{part.strip()!r} is not one of {', '.join(f'{name}=' for name in _KEYS)}")
        if key in _ONCE:
            if key in values:
                raise _refused(f"{key} is given twice")
            values[key] = value
        else:
            edges.append((key, _instant(key, value)))
    if missing := [name for name in ("type", "instances") if name not in values]:
        raise _refused(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return WrittenPlan(
        instance_type=values["type"],
        instances=_count(values["instances"]),
        windows=_windows(edges),
        fee_usd=_fee(values.get("fee")),
        drain=_drain(values.get("drain")),
    )


def bought(plans: Sequence[WrittenPlan], history: History) -> list[BoughtPlan]:
    """Return the plans at the instants of a history.

    Raises:
        InvalidArgumentError: A window ends before it begins, is too short to be used, overlaps another, or no
            window lies within the history.
    """
    return [_bought(plan, history) for plan in plans]


def _bought(plan: WrittenPlan, history: History) -> BoughtPlan:
    windows = sorted((_at(begin, history), _at(end, history)) for begin, end in plan.windows)
    least = ENDS_BEFORE + (plan.drain or DRAIN)
    for begin, end in windows:
        if end <= begin:
            raise _refused(f"to={_text(end)} is not after from={_text(begin)}")
        if end - begin <= least:
            raise _refused(
                f"nothing runs in {_text(begin)} to {_text(end)}: jobs are stopped "
                f"{duration_text(least)} before a window closes"
            )
        if end - begin > LONGEST:
            raise _refused(f"{_text(begin)} to {_text(end)} is longer than {LONGEST.days} days")
    for (_, end), (begin, _) in pairwise(windows):
        if begin < end:
            raise _refused(f"the window from {_text(begin)} begins before the one before ends, {_text(end)}")
    last = last_submission(history)
    if all(begin >= last or end <= history.begins for begin, end in windows):
        raise _refused(
            f"no window lies within the history, {_text(history.begins)} to {_text(last)}",
            hint="Count from its beginning: from=+2d,to=+4d.",
        )
    return BoughtPlan(
        instance_type=plan.instance_type,
        instances=plan.instances,
        windows=tuple(windows),
        fee_usd=plan.fee_usd,
        drain=plan.drain,
    )


def last_submission(history: History) -> datetime:
    return max((job.submitted_at for job in history.jobs), default=history.begins)


def plan_sentences(plans: Sequence[BoughtPlan], history: History) -> Iterator[str]:
    """Yield what is bought, and what of it the history cannot judge."""
    sold, last = types_with_plans(), last_submission(history)
    for number, plan in enumerate(plans, start=1):
        windows = ", ".join(f"{_text(begin)} to {_text(end)}" for begin, end in plan.windows)
        fee = "no fee given: it costs nothing here" if plan.fee_usd is None else f"{plan.fee_usd:,.0f} USD"
        yield f"Plan what-if-{number}: {plan.instances} {plan.instance_type}, {windows}; {fee}."
        outside = sum((_outside(window, history.begins, last) for window in plan.windows), timedelta())
        if outside:
            yield (
                f"  {outside / _HOUR:,.1f} of its hours lie before the history or after its last submission: "
                "they are paid, and mostly unused."
            )
        if plan.instance_type not in sold:
            yield f"  As far as is known here, AWS sells no training plans for {plan.instance_type}."


def _outside(window: tuple[datetime, datetime], begins: datetime, last: datetime) -> timedelta:
    begin, end = window
    inside = max(min(end, last) - max(begin, begins), timedelta())
    return end - begin - inside


def _at(edge: datetime | timedelta, history: History) -> datetime:
    return history.begins + edge if isinstance(edge, timedelta) else edge.astimezone(UTC)


def _instant(key: str, value: str) -> datetime | timedelta:
    if value.startswith("+"):
        after = span(value[1:])
        if after is not None:
            return after
    else:
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            at = None
        if at is not None and at.tzinfo is None:
            raise _refused(f"{key}={value} has no zone", hint=f"Write {key}={value}Z for UTC.")
        if at is not None:
            return at
    raise _refused(
        f"{key}={value} is not a time",
        hint=f"Write {key}=2026-10-05T08:00Z, or {key}=+2d after the beginning of the history.",
    )


def _windows(
    edges: Sequence[tuple[str, datetime | timedelta]],
) -> tuple[tuple[datetime | timedelta, datetime | timedelta], ...]:
    keys = [key for key, _ in edges]
    if not edges or keys != ["from", "to"] * (len(edges) // 2):
        raise _refused("give from= and to= of each window, in turn")
    if len(edges) > 2 * MOST_WINDOWS:
        raise _refused(f"it has {len(edges) // 2} windows, a plan has at most {MOST_WINDOWS}")
    instants = [at for _, at in edges]
    return tuple(zip(instants[::2], instants[1::2], strict=True))


def _count(value: str) -> int:
    if not (value.isascii() and value.isdecimal()) or not 1 <= int(value) <= MOST_INSTANCES:
        raise _refused(f"instances={value} is not 1 to {MOST_INSTANCES}")
    return int(value)


def _fee(value: str | None) -> Decimal | None:
    if value is None:
        return None
    try:
        usd = Decimal(value)
    except InvalidOperation:
        usd = Decimal(-1)
    if not usd.is_finite() or usd < 0:
        raise _refused(f"fee={value} is not an amount in USD", hint="Write e.g. fee=41000, without commas.")
    return usd


def _drain(value: str | None) -> timedelta | None:
    length = None if value is None else span(value)
    if value is not None and (length is None or not _LEAST_DRAIN <= length <= _MOST_DRAIN):
        raise _refused(f"drain={value} is not 5m to 6h")
    return length


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%MZ}"


def _refused(message: str, *, hint: str | None = None) -> InvalidArgumentError:
    return InvalidArgumentError(f"--plan: {message}.", hint=hint or f"Use e.g. {EXAMPLE}.")
