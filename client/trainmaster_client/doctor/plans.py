"""Checks training plans, which are paid in advance: described, named by a pool, and in use."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.core.policy.plan_windows import USABLE

from trainmaster_client.doctor.findings import AwsSaid, Finding, Seen, asked, good, skipped, worth_a_warning
from trainmaster_client.errors.troubles import Trouble

_FOR_JOBS = "training-job"
"""Target of plans that training jobs can use. Source: SageMaker API reference, TargetResources."""
_HOUR = timedelta(hours=1)


def described(seen: Seen) -> Finding:
    """Check that SageMaker describes the plans of the policy, and that they have a window left."""
    plans = [(str(pool.get("name")), plan) for pool in seen.pools for plan in _plans(pool)]
    if not plans:
        return good("no pool has plans")
    silent = [text for pool, plan in plans if (text := _silence(plan, pool))]
    if silent:
        return worth_a_warning(Trouble.PLAN_NOT_DESCRIBED, "; ".join(silent))
    over = [text for pool, plan in plans if (text := _end(plan, pool))]
    if over:
        return worth_a_warning(Trouble.PLAN_OVER, "; ".join(over))
    return good(f"plans: {len(plans)}")


def named(seen: Seen) -> Finding:
    """Check that a pool names each plan that the account has bought for training jobs."""
    if seen.policy is None:
        return skipped("for admins")
    bought = asked(lambda: _bought(seen))
    if isinstance(bought, AwsSaid):
        # Where there is no answer the text names the endpoint, which may be a gateway's, with its token.
        return skipped(f"SageMaker does not list plans: {bought.code or 'no answer'}")
    known = {plan.get("arn") for pool in seen.pools for plan in _plans(pool)}
    idle = [
        f"{plan.get('TrainingPlanArn')} ({plan.get('TotalInstanceCount', '?')} instances, "
        f"{str(plan.get('Status')).lower()})"
        for plan in bought
        if plan.get("TrainingPlanArn") not in known
    ]
    return worth_a_warning(Trouble.PLAN_NOT_NAMED, "; ".join(idle)) if idle else good("each that was bought")


def used(seen: Seen) -> Finding:
    """Check that no instance stands idle in an open window: its hours are paid."""
    now = seen.now()
    idle = [text for pool in seen.pools for plan in _plans(pool) for text in _idle(plan, now)]
    return worth_a_warning(Trouble.PLAN_IDLE, "; ".join(idle)) if idle else good("none idle")


def _plans(pool: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the plans of a pool; earlier versions of the stack show none."""
    plans = pool.get("plans")
    return [plan for plan in plans if isinstance(plan, dict)] if isinstance(plans, list) else []


def _name(plan: Mapping[str, Any]) -> str:
    return str(plan.get("arn")).rpartition("/")[2]


def _silence(plan: Mapping[str, Any], pool: str) -> str:
    if plan.get("trouble"):
        return f"{_name(plan)} of pool {pool}: {plan['trouble']}"
    return "" if plan.get("instance_type") else f"{_name(plan)} of pool {pool}: not described yet"


def _end(plan: Mapping[str, Any], pool: str) -> str:
    if plan.get("window") or plan.get("next"):
        return ""
    return f"{_name(plan)} of pool {pool}: {str(plan.get('status')).lower()}, no window to come"


def _idle(plan: Mapping[str, Any], now: datetime) -> Iterator[str]:
    free = int(plan.get("instances") or 0) - int(plan.get("used") or 0)
    closes = _instant((plan.get("window") or {}).get("closes"))
    if free > 0 and closes is not None and closes > now:
        hours = free * (closes - now) / _HOUR
        yield (
            f"{_name(plan)}: {free} of {plan['instances']} {plan.get('instance_type')} unused,"
            f" {hours:,.0f} instance-hours until it closes {closes.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        )


def _instant(text: object) -> datetime | None:
    """Read an instant; None if there is none, or another version of the stack writes it otherwise."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def _bought(seen: Seen) -> list[Mapping[str, Any]]:
    """List the account's plans that training jobs can use, now or in a later window."""
    pages = seen.client("sagemaker").get_paginator("list_training_plans").paginate()
    return [
        plan
        for page in pages
        for plan in page.get("TrainingPlanSummaries", ())
        if plan.get("Status") in USABLE and _FOR_JOBS in (plan.get("TargetResources") or ())
    ]
