"""Checks what is nearly used up, before anything is refused for it."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from trainmaster.core.policy import Limits
from trainmaster.core.policy.document import MAX_POOLS

from trainmaster_client.doctor.findings import AwsSaid, Finding, Seen, asked, good, skipped, worth_a_warning
from trainmaster_client.errors.troubles import Trouble

_NEAR = 0.8
"""Share of a limit from which somebody should know."""
_LOOKED_AT = timedelta(days=1)
_HOUR_SECONDS = 3600


def nearly_full(seen: Seen) -> Finding:
    """Check how many jobs of each team wait, and how many pools the document has."""
    near = [*_full_queues(seen), *_many_pools(seen)]
    return worth_a_warning(Trouble.NEAR_LIMIT, "; ".join(near)) if near else good("nothing at 80 %")


def concurrency(seen: Seen) -> Finding:
    """Check the most functions of the account that ran at once in a day, beside Lambda's limit."""
    if seen.policy is None:
        return skipped("for admins")
    settings = asked(lambda: seen.client("lambda").get_account_settings())
    if isinstance(settings, AwsSaid):
        return skipped(f"Lambda does not say: {settings.why}")
    limit = settings["AccountLimit"]["ConcurrentExecutions"]
    most = asked(lambda: _most_at_once(seen))
    if isinstance(most, AwsSaid):
        return skipped(f"CloudWatch does not say: {most.why}")
    text = f"{most:.0f} of {limit} functions at once within a day"
    return worth_a_warning(Trouble.CONCURRENCY, text) if most >= _NEAR * limit else good(text)


def _full_queues(seen: Seen) -> Iterator[str]:
    document = (seen.policy or {}).get("policy")
    written = document.get("pools") if isinstance(document, dict) else None
    limits = {pool.get("name"): pool.get("limits") or {} for pool in written or () if isinstance(pool, dict)}
    for pool in seen.pools:
        most = limits.get(pool.get("name"), {}).get("max_waiting") or Limits().max_waiting
        for team in pool.get("teams") or ():
            waiting = team.get("waiting")
            if isinstance(waiting, int) and waiting >= _NEAR * most:
                where = f"in pool {pool.get('name')}"
                yield f"team {team.get('name')} has {waiting} of {most} jobs waiting {where}"


def _many_pools(seen: Seen) -> Iterator[str]:
    if len(seen.pools) >= _NEAR * MAX_POOLS:
        yield f"the policy has {len(seen.pools)} of {MAX_POOLS} pools"


def _most_at_once(seen: Seen) -> float:
    """Return the most functions that ran at once; 0 if none ran.

    Source of the metric: Lambda developer guide, "Concurrency metrics".
    """
    question: Mapping[str, Any] = {
        "Namespace": "AWS/Lambda",
        "MetricName": "ConcurrentExecutions",
        "StartTime": seen.now() - _LOOKED_AT,
        "EndTime": seen.now(),
        "Period": _HOUR_SECONDS,
        "Statistics": ["Maximum"],
    }
    points = seen.client("cloudwatch").get_metric_statistics(**question)["Datapoints"]
    return max((float(point["Maximum"]) for point in points), default=0.0)
