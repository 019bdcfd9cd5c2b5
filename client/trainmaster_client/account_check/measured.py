"""Upper bound of what a check costs, and what it measured, under the names that the twin's worlds use."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from trainmaster.core.costs.prices import USD_PER_HOUR

from trainmaster_client.account_check.answer_verdicts import call_seconds, percentile
from trainmaster_client.account_check.facts import Records
from trainmaster_client.account_check.trial_requests import INSTANCE_TYPE, ON_CPU

_CPU_MINUTES = 8
"""Billed minutes of each trial at most: start-up, program, grace of a stop, a warm pool of five minutes."""
_GPU_MINUTES = 12
_STARVE_MINUTES = 5
"""Billed minutes of the starved trial at most, should there be capacity for it."""
_MINUTES_PER_HOUR = 60
_IN_TEXTS: Mapping[str, tuple[str, str]] = {
    "refused-instances": ("max_instances_per_job", r"per training job' is (\d+)"),
    "refused-run-time": ("max_runtime_seconds", r" is (\d+) [Ss]econds"),
    "refused-keep-alive": ("max_keep_alive_seconds", r" is (\d+) [Ss]econds"),
}
"""World's name and pattern of each limit that a refusal names; the product never reads these texts."""
_CENT = Decimal("0.01")


def most_usd(gpu: str | None, *, starve: bool) -> Decimal | None:
    """Return the cost at most, at us-east-1's prices; None if the GPU type's price is not known here."""
    cost = len(ON_CPU) * _CPU_MINUTES * USD_PER_HOUR[INSTANCE_TYPE]
    if gpu is not None:
        price = USD_PER_HOUR.get(gpu)
        if price is None:
            return None
        cost += (_GPU_MINUTES + (_STARVE_MINUTES if starve else 0)) * price
    return max(_CENT, (cost / _MINUTES_PER_HOUR).quantize(_CENT))


def measured(records: Records) -> dict[str, Any]:
    """Return measured values by the name that a world of the twin gives them; unseen ones are left out."""
    values: dict[str, Any] = {}
    if rates := _rates(records):
        values["rates"] = rates
    if seconds := call_seconds(records):
        values["latency_seconds"] = {"p50": percentile(seconds, 0.5), "p99": percentile(seconds, 0.99)}
    if missing := records.get("last_missing_seconds"):
        values["read_delay_seconds"] = max(missing.values())
    return values | _events(records.get("events") or ()) | _limits(records)


def _rates(records: Records) -> dict[str, float]:
    """Return calls per second of each throttled operation; for the others only a lower bound is known."""
    bursts: Mapping[str, Any] = records.get("bursts", {})
    return {name: burst["admitted_per_second"] for name, burst in bursts.items() if burst["throttled"]}


def _events(events: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    delays = [event["seconds"] for event in events if event["seconds"] is not None]
    if not delays:
        return {}
    changes = [(event["job"], event["secondary"], event["modified"]) for event in events]
    return {
        "events": len(events),
        "event_delay_seconds": [min(delays), max(delays)],
        "events_without_tags": round(sum(not event["has_tags"] for event in events) / len(events), 3),
        "events_doubled": round(1 - len(set(changes)) / len(changes), 3),
    }


def _limits(records: Records) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    quotas: Mapping[str, float] = records.get("quotas") or {}
    if warm := {name: value for name, value in quotas.items() if name.endswith(" warm")}:
        limits["warm_pool_quota"] = int(max(warm.values()))
    if plain := {name: int(value) for name, value in quotas.items() if " " not in name}:
        limits["quotas"] = plain
    for probe, (name, words) in _IN_TEXTS.items():
        answer = records.get("probes", {}).get(probe) or {}
        if match := re.search(words, answer.get("text", "")):
            limits[name] = int(match[1])
    starved = records.get("jobs", {}).get("starved", {}).get("final")
    if starved is not None and starved.get("TrainingStartTime") is None:
        limits["pending_end"] = f"{starved['TrainingJobStatus']}/{starved['SecondaryStatus']}"
    return limits
