"""Says what the figures mean, in one sentence each: titles of the page's pictures."""

import math

from trainmaster_client.simulate.comparison.changes import Changes
from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.wording import (
    change_text,
    count_text,
    jobs_text,
    money_text,
    share_text,
    time_text,
)
from trainmaster_client.simulate.engine.recorded import RECORDED
from trainmaster_client.simulate.engine.replays import PLAIN_QUEUE

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def headline(comparison: Comparison) -> str:
    """Compare waits and money of the last column with the base."""
    base, last = comparison.base, comparison.last
    waits = f"under {last.label} half of the jobs start within {_time(last.waits.p50_s)} instead of "
    money = change_text(base.bill.total_usd, last.bill.total_usd)
    cost = {"": "", "same": ", at the same cost"}.get(money, f", at {money} cost")
    sentence = f"{waits}{_time(base.waits.p50_s)} {_as(base.label)}{cost}"
    return sentence[0].upper() + sentence[1:]


def _as(label: str) -> str:
    """Describe a column: a policy's label is a name; the other columns are described."""
    return {PLAIN_QUEUE: "under a plain queue", RECORDED: "as recorded"}.get(label, f"under {label}")


def team_waits_finding(comparison: Comparison) -> str:
    changes = comparison.changes.get(comparison.last.label)
    if changes is None or not changes.teams:
        return "Waits by team"
    return _teams(changes)


def class_waits_finding(comparison: Comparison) -> str:
    highest = comparison.classes[0].label if comparison.classes else ""
    base, last = (column.waits_by_class.get(highest) for column in (comparison.base, comparison.last))
    if base is None or last is None or base.p90_s is None or last.p90_s is None:
        return "Waits by priority"
    return (
        f"The most urgent jobs ({highest}): 9 of 10 start within {_time(last.p90_s)}, "
        f"before {_time(base.p90_s)}"
    )


def queue_finding(comparison: Comparison) -> str:
    base, last = (max(column.curves.queue, default=0) for column in (comparison.base, comparison.last))
    before, after = (
        sum(column.curves.queue) / max(1, len(column.curves.queue))
        for column in (comparison.base, comparison.last)
    )
    return (
        f"The queue has at most {count_text(last)} jobs instead of {count_text(base)}, "
        f"on average {count_text(after)} instead of {count_text(before)}"
    )


def use_finding(column: Column) -> str:
    """Say when the capacity is busiest and when it is quietest."""
    known = [(share, hour) for hour, share in enumerate(column.use_by_hour) if share is not None]
    if not known:
        return f"{column.label}: the capacity is not known"
    (_, quiet), (_, busy) = min(known), max(known)
    mean = share_text(column.figures.utilisation)
    return f"{column.label}: {mean} in use, most {_hour(busy)}, least {_hour(quiet)} (UTC)"


def cost_finding(comparison: Comparison) -> str:
    base, last = comparison.base.bill, comparison.last.bill
    less = base.total_usd - last.total_usd
    if not base.total_usd and not last.total_usd:
        return "No price is known for these instances"
    if abs(less) < 1:
        return f"{comparison.last.label} costs as much as {comparison.base.label}"
    word = "less" if less > 0 else "more"
    lost = base.lost_usd - last.lost_usd
    of_it = f"; {money_text(lost)} less goes to work that was lost" if lost >= 1 else ""
    return f"{comparison.last.label} costs {money_text(abs(less))} {word} than {comparison.base.label}{of_it}"


def preemptions_finding(comparison: Comparison) -> str:
    base, last = comparison.base, comparison.last
    wasted = change_text(base.figures.waste_h, last.figures.waste_h)
    waste = f", with {wasted} waste" if wasted not in {"", "same"} else ""
    return (
        f"{count_text(last.figures.preemptions)} preemptions instead of "
        f"{count_text(base.figures.preemptions)}{waste}"
    )


def jobs_finding(changes: Changes) -> str:
    return (
        f"{jobs_text(changes.shorter)} wait shorter, {changes.longer:,} longer, "
        f"{changes.same:,} as long (within a minute)"
    )


def _teams(changes: Changes) -> str:
    shorter = sum(team.change_s < 0 for team in changes.teams)
    longer = sum(team.change_s > 0 for team in changes.teams)
    sentence = f"{shorter} of {len(changes.teams)} teams wait shorter on average"
    return f"{sentence}, {longer} longer" if longer else f"{sentence}, none longer"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "no time"
    return "no time at all" if math.isinf(seconds) else time_text(seconds)


def _hour(hour: int) -> str:
    return f"{DAYS[hour // 24]} {hour % 24:02}:00"
