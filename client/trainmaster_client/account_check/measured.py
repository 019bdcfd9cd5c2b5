"""What a check costs at most; and what it measured, in the words of the twin's worlds."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from trainmaster.core.costs.prices import USD_PER_HOUR

from trainmaster_client.account_check.answer_verdicts import Records, call_seconds, percentile
from trainmaster_client.account_check.trial_requests import INSTANCE_TYPE, ON_CPU

_CPU_MINUTES = 8
"""Billed of each trial at most: start-up, its program, the grace of a stop, a warm pool of five minutes."""
_GPU_MINUTES = 12
_STARVE_MINUTES = 5
"""Where there is capacity anyway."""
_MINUTES_PER_HOUR = 60
_IN_TEXTS: Mapping[str, tuple[str, str]] = {
    "refused-instances": ("max_instances_per_job", r"per training job' is (\d+)"),
    "refused-run-time": ("max_runtime_seconds", r" is (\d+) [Ss]econds"),
    "refused-keep-alive": ("max_keep_alive_seconds", r" is (\d+) [Ss]econds"),
}
"""Limits that the texts of refusals name: for people and for the worlds, the product reads no texts."""
_CENT = Decimal("0.01")


def most_usd(gpu: str | None, *, starve: bool) -> Decimal | None:
    """At the prices of us-east-1; None for a type whose price is not known here."""
    cost = len(ON_CPU) * _CPU_MINUTES * USD_PER_HOUR[INSTANCE_TYPE]
    if gpu is not None:
        price = USD_PER_HOUR.get(gpu)
        if price is None:
            return None
        cost += (_GPU_MINUTES + (_STARVE_MINUTES if starve else 0)) * price
    return max(_CENT, (cost / _MINUTES_PER_HOUR).quantize(_CENT))


def measured(records: Records) -> dict[str, Any]:
    """Values under the names that a world of the twin gives them; what was not seen is not in it."""
    found: dict[str, Any] = {}
    if rates := _rates(records):
        found["rates"] = rates
    if seconds := call_seconds(records):
        found["latency_seconds"] = {"p50": percentile(seconds, 0.5), "p99": percentile(seconds, 0.99)}
    if missing := records.get("last_missing_seconds"):
        found["read_delay_seconds"] = max(missing.values())
    return found | _events(records.get("events") or ()) | _limits(records)


def _rates(records: Records) -> dict[str, float]:
    """Of operations that were throttled; of the others only a lower bound is known."""
    bursts: Mapping[str, Any] = records.get("bursts", {})
    return {name: one["admitted_per_second"] for name, one in bursts.items() if one["throttled"]}


def _events(events: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    delays = [one["seconds"] for one in events if one["seconds"] is not None]
    if not delays:
        return {}
    changes = [(one["job"], one["secondary"], one["modified"]) for one in events]
    return {
        "events": len(events),
        "event_delay_seconds": [min(delays), max(delays)],
        "events_without_tags": round(sum(not one["has_tags"] for one in events) / len(events), 3),
        "events_doubled": round(1 - len(set(changes)) / len(changes), 3),
    }


def _limits(records: Records) -> dict[str, Any]:
    found: dict[str, Any] = {}
    quotas: Mapping[str, float] = records.get("quotas") or {}
    if warm := {name: one for name, one in quotas.items() if name.endswith(" warm")}:
        found["warm_pool_quota"] = int(max(warm.values()))
    if plain := {name: int(one) for name, one in quotas.items() if " " not in name}:
        found["quotas"] = plain
    for probe, (name, words) in _IN_TEXTS.items():
        answer = records.get("probes", {}).get(probe) or {}
        if said := re.search(words, answer.get("text", "")):
            found[name] = int(said[1])
    starved = records.get("jobs", {}).get("starved", {}).get("final")
    if starved is not None and starved.get("TrainingStartTime") is None:
        found["pending_end"] = f"{starved['TrainingJobStatus']}/{starved['SecondaryStatus']}"
    return found
