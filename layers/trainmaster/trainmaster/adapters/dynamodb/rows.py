"""What the attributes of a row say: counts by type, learned limits, run times, money."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from typing import Any

from trainmaster.adapters.dynamodb.codec import decode
from trainmaster.core.costs.ledger import Cause, MonthAccount, UsageLine
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.planning.snapshot import AccountLimit


def counts(item: dict[str, Any], prefix: str) -> dict[Capacity, int]:
    return {Capacity.parse(name): count for name, count in named(item, prefix) if count}


def limits(counters: dict[str, Any]) -> dict[Capacity, AccountLimit]:
    return {Capacity.parse(name): decode(AccountLimit, limit) for name, limit in named(counters, "limit#")}


def last_ends(counters: dict[str, Any]) -> dict[Capacity, datetime]:
    return {Capacity.parse(name): datetime.fromisoformat(at) for name, at in named(counters, "ended#")}


def named(item: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Attributes of one kind, without the kind in their names."""
    return ((name.removeprefix(prefix), part) for name, part in item.items() if name.startswith(prefix))


def run_times_of(item: dict[str, Any]) -> RunTimes:
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    for name, count in named(item, "b#"):
        limit, _, length = name.partition("#")
        counts[int(limit)][int(length)] = count
    by_month: dict[str, dict[int, int]] = defaultdict(dict)
    for name, count in named(item, "n#"):
        month, _, priority = name.partition("#")
        by_month[month][int(priority)] = count
    return RunTimes(
        last=timedelta(seconds=item["t1"]),
        previous=timedelta(seconds=item["t2"]),
        since=datetime.fromisoformat(item["since"]),
        counts=counts,
        by_month=by_month,
    )


def account_of(item: dict[str, Any]) -> MonthAccount:
    spent = item.get("spent", 0)
    return MonthAccount(spent=spent, reserved=item.get("committed", 0) - spent)


def usage_line(item: dict[str, Any]) -> UsageLine:
    by = {Cause(name): cents for name, cents in named(item, "by#")}
    return UsageLine(
        job=item["sk"].removeprefix("j#"),
        instance_seconds=item.get("instance_seconds", 0),
        cents=None if item.get("unpriced") else sum(by.values()),
        by=by,
        saved_cents=item.get("saved", 0),
    )


def spot_day(item: dict[str, Any]) -> SpotDay:
    return SpotDay(
        day=date.fromisoformat(item["sk"].rpartition("#")[2]),
        interruptions=item.get("interruptions", 0),
        instance_seconds=item.get("instance_seconds", 0),
    )


def ties_by_name(found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Equal instants come from the index in no order of their own: newest first, then by name."""
    tied: list[tuple[str, str]] = []
    for one in found:
        if tied and tied[0][0] != one[0]:
            yield from sorted(tied)
            tied = []
        tied.append(one)
    yield from sorted(tied)


def is_behind(one: tuple[str, str], after: tuple[str, str]) -> bool:
    return one[0] < after[0] or (one[0] == after[0] and one[1] > after[1])
