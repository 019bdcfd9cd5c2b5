"""Is the harsh world as harsh as AWS was? Value by value, against what a report measured."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster_client.report import Report

from local.worlds import HARSH, VALUES, shown

SHARES = ("events_without_tags", "events_doubled", "events_reordered")
_Z = 3.09
NEARLY = 1.25
"""A few seconds of bursts, and a few events, measure no better."""
SLOWEST = 2.0
"""The p99 of some eighty calls is the slowest of them."""


def _rates(world: Mapping[str, float], seen: Mapping[str, float]) -> bool:
    """The account lets through what the world does, or more."""
    return all(world[name] <= NEARLY * rate for name, rate in seen.items() if name in world)


def _latency(world: Mapping[str, float], seen: Mapping[str, float]) -> bool:
    return seen["p50"] <= NEARLY * world["p50"] and seen["p99"] <= SLOWEST * world["p99"]


def _up_to(world: float, seen: float) -> bool:
    return seen <= NEARLY * world


def _limit(world: float, seen: float) -> bool:
    """An account with less than the world allows is harsher than the world."""
    return world <= seen


def at_least(share: float, number: int) -> float:
    """What the share is at the least, seen in so many: Wilson's lower bound, 99.9 % sure."""
    spread = _Z * math.sqrt(share * (1 - share) / number + _Z**2 / (4 * number**2))
    return max(0.0, (share + _Z**2 / (2 * number) - spread) / (1 + _Z**2 / number))


def _pending_end(world: str, seen: str) -> bool:
    """In ``mixed`` every dialect is played that has a name."""
    return seen == world or (world == "mixed" and seen.partition("/")[0] in {"Stopped", "Failed"})


AS_HARSH: Mapping[str, Callable[[Any, Any], bool]] = {
    "max_instances_per_job": _limit,
    "max_runtime_seconds": _limit,
    "max_keep_alive_seconds": _limit,
    "warm_pool_quota": _limit,
    "rates": _rates,
    "latency_seconds": _latency,
    "read_delay_seconds": _up_to,
    "event_delay_seconds": lambda world, seen: seen[1] <= NEARLY * world[1],
    **dict.fromkeys(SHARES, _up_to),
    "pending_end": _pending_end,
}
"""By value of a world; quotas and missing types are each account's own."""


def compare(report: Report, measured: Mapping[str, Any]) -> None:
    """A check for each value; what nobody measured stays as the table says it is known."""
    world = shown(HARSH)
    for value in VALUES:
        holds = AS_HARSH.get(value.name)
        if holds is None:
            report.skip(value.name, reason="each account has its own", expected=world[value.name])
        elif value.name not in measured:
            report.skip(value.name, reason=f"not measured: {value.standing}", expected=world[value.name])
        else:
            seen = measured[value.name]
            sure = at_least(seen, measured["events"]) if value.name in SHARES else seen
            report.check(
                value.name, expected=world[value.name], actual=seen, ok=holds(world[value.name], sure)
            )
