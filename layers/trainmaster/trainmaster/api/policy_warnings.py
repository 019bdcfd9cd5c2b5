"""Warn the author of a policy about prices and alarms, which the document alone does not show."""

from collections.abc import Iterator

from trainmaster.api.request_context import RequestContext
from trainmaster.core.costs.prices import SHIPPED_REGION, PriceTable
from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.instances import Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.memory.accelerators import gpus
from trainmaster.core.monitoring.alarm_costs import (
    USD_PER_COMPOSITE,
    USD_PER_METRIC,
    NewAlarms,
    new_alarms,
    new_kinds,
)
from trainmaster.core.monitoring.alarms import HOSTS_OF_ONE
from trainmaster.core.policy import UNMANAGED, WATCHED_DEFAULTS, Policy

MOST_NAMED = 5
"""Types that a warning names; the others are counted."""
_PRICES = (
    f"an alarm costs {USD_PER_METRIC} USD a month for each host, and {USD_PER_COMPOSITE} USD more for a job "
    f"of more than {HOSTS_OF_ONE} hosts (list prices of us-east-1, aws.amazon.com/cloudwatch/pricing)"
)


def price_warnings(context: RequestContext, policy: Policy) -> tuple[FieldError, ...]:
    """Warn that types of the pools have another region's price; nothing if the region is unknown."""
    region = context.outside.region
    types = {name for pool in policy.pools for name in pool.instance_types}
    shipped = PriceTable(overrides=policy.prices).shipped(types)
    if region in ("", SHIPPED_REGION) or not shipped:
        return ()
    rest = f" and {len(shipped) - MOST_NAMED} more" if len(shipped) > MOST_NAMED else ""
    named = ", ".join(shipped[:MOST_NAMED])
    warning = FieldError(
        field="prices",
        message=f"lack {named}{rest}: costs count with list prices of {SHIPPED_REGION}, and this is {region}",
        hint=f"write what {region} costs, for example prices: {{{shipped[0]}: 1.23}}",
    )
    return (warning,)


def alarm_warnings(context: RequestContext, policy: Policy) -> tuple[FieldError, ...]:
    """Say how many running attempts get an alarm by this policy, and the price.

    Nothing is said where no kind of alarm is new, nor where no job can have one for want of GPUs.

    Args:
        context: Of the admin who puts the policy or tries it; the policy in force is in it.
        policy: The one that is put.
    """
    before, after = context.policy.governing.watch, policy.governing.watch
    kinds = new_kinds(before, after)
    if not kinds:
        return ()
    alarms = new_alarms(_running(context), before, after)
    if not alarms.attempts and not any(gpus(name) for pool in policy.pools for name in pool.instance_types):
        return ()
    is_unwritten = "idle" in kinds and policy.source.get("idle") is None
    first = "is not written: the GPUs of running jobs are watched, and owners of idle ones notified; "
    message = f"{first if is_unwritten else ''}{_counted(alarms, is_all=context.has_time)}; {_PRICES}"
    hint = "write idle: off for none" if "idle" in kinds else "remove utilization for none"
    return (FieldError(field=str(kinds[0]), message=message, hint=hint),)


def unwatched_warning(policy: Policy) -> tuple[FieldError, ...]:
    """Say that the policy in force watches no GPUs only because it is older than the default that does."""
    is_older = policy.defaults < WATCHED_DEFAULTS and policy.governing.idle is None
    if not is_older or not any(gpus(name) for pool in policy.pools for name in pool.instance_types):
        return ()
    message = (
        "is missing: no GPUs are watched until a policy is applied again; from then on the owners of idle "
        "jobs are notified"
    )
    return (FieldError(field="idle", message=message, hint="apply it again, or write idle: off"),)


def _counted(alarms: NewAlarms, *, is_all: bool) -> str:
    count = f"{alarms.attempts} running attempt{'' if alarms.attempts == 1 else 's'}"
    bound = "" if is_all else "at least "
    verb = "gets" if alarms.attempts == 1 else "get"
    cost = f", {bound}{alarms.usd_per_month:.2f} USD a month while they run" if alarms.attempts else ""
    return f"{bound}{count} then {verb} an alarm{cost}"


def _running(context: RequestContext) -> Iterator[Vector]:
    """Yield the instances of each running attempt, pool by pool, as long as the call has time."""
    for pool in (*(pool.name for pool in context.policy.pools), UNMANAGED):
        if not context.has_time:
            return
        for entry in context.outside.reader.running(pool):
            if entry.state is JobState.RUNNING:
                yield entry.vector
