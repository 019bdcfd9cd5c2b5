"""Bounds of a submission whose container is to wait for a visitor, and what the wait costs."""

from collections.abc import Iterator
from datetime import timedelta

from trainmaster.core.costs.prices import PriceTable, cost_cents, usd_text
from trainmaster.core.errors import FieldError
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.kinds import duration_text
from trainmaster.core.request.options import HOLD_OPEN
from trainmaster.core.request.request import Ask
from trainmaster.core.submission.request_places import Places

RULE_MAX_HOLD_OPEN = "limits.max_hold_open"
_HOUR = timedelta(hours=1)


def hold_open_violations(ask: Ask, pool: PoolPolicy, places: Places) -> Iterator[FieldError]:
    """Yield a wait that is longer than the pool allows, and one of a job of several instances."""
    hold, most = ask.options.hold_open, pool.limits.max_hold_open
    if hold is None:
        return
    if hold.longest > most:
        longest = duration_text(most)
        yield FieldError(
            field=places.tag(HOLD_OPEN),
            message=f"of {HOLD_OPEN} is longer than pool {pool.name} allows, {longest}",
            hint=f"ask for at most {longest}, or have an admin raise {RULE_MAX_HOLD_OPEN}"
            if most
            else f"remove the tag, or have an admin raise {RULE_MAX_HOLD_OPEN}",
            rule=RULE_MAX_HOLD_OPEN,
        )
    widest = max(shape.instances for shape in ask.shapes)
    if widest > 1:
        yield FieldError(
            field=places.tag(HOLD_OPEN),
            message=f"{HOLD_OPEN} is for jobs of one instance: of this one's {widest}, others would time out",
            hint="ask for one instance, or remove the tag",
            rule="hold-open",
        )


def hold_open_warnings(ask: Ask, prices: PriceTable, places: Places) -> Iterator[FieldError]:
    """Yield what the wait is billed, and which programs know of it."""
    hold = ask.options.hold_open
    if hold is None:
        return
    longest = duration_text(hold.longest)
    cents = cost_cents(prices.dearest_usd_per_hour(shape.vector for shape in ask.shapes), hold.longest)
    usd = "" if cents is None else f", {usd_text(cents)}"
    when = "after each failure" if hold.is_after_failure else "before it trains"
    yield FieldError(
        field=places.tag(HOLD_OPEN),
        message=f"its container waits for a visitor {when}: up to {longest}, billed as run time{usd}",
        hint="start your program by launch.py, which does the waiting; open a session with: trainmaster ssh"
        f" {ask.name}",
    )
