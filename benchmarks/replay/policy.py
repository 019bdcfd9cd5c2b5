"""The one policy that all targets are measured with, as a document that the product reads."""

from collections.abc import Mapping
from typing import Any

from trainmaster.core.policy import Policy, parse_policy

from benchmarks.replay.jobs import POOLS

RULES: Mapping[str, Any] = {
    "preemption": {
        "needs_checkpoint": True,
        "min_runtime": "0s",
        "preempt_delay": "5m",
        "max_per_job": 100,
        "cost": {"enabled": False},
    },
    "warm_pool": {"keep_alive": "10m", "retain": "10m", "max_idle": "30m"},
}
"""Rules of every pool."""
AGING = "off"


def document(capacities: Mapping[str, int], *, shortest_first: bool) -> dict[str, Any]:
    """Return the policy for pools of this size."""
    order = {"aging": AGING, "backfill": True, "shortest_first": shortest_first}
    pools = [
        {"name": pool, "capacity": {POOLS[pool].type: count}, "order": order, **RULES}
        for pool, count in capacities.items()
    ]
    return {"version": 1, "pools": pools}


def policy_for(capacities: Mapping[str, int], *, shortest_first: bool) -> Policy:
    return parse_policy(document(capacities, shortest_first=shortest_first))
