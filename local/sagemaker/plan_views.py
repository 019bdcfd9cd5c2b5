"""How a training plan is shown by DescribeTrainingPlan and ListTrainingPlans. Times are epoch seconds."""

from datetime import datetime, timedelta
from typing import Any

from local.sagemaker.training_plans import TrainingPlan, Window

TARGETS = ("training-job",)
"""Resource of the twin's plans; SageMaker also sells some for clusters, endpoints and Studio."""
_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)
ZONE, ZONE_ID = "{region}a", "use1-az1"
_RESERVED = ":reserved-capacity/"


def plan_description(plan: TrainingPlan, *, in_use: int, available: int, now: datetime) -> dict[str, Any]:
    """Write the answer of DescribeTrainingPlan."""
    return plan_summary(plan, in_use=in_use, available=available, now=now) | {
        "UnhealthyInstanceCount": plan.unhealthy,
        "AvailableSpareInstanceCount": 0,
    }


def plan_summary(plan: TrainingPlan, *, in_use: int, available: int, now: datetime) -> dict[str, Any]:
    """Write one entry of ListTrainingPlans; ``available`` counts instances that a job could have now."""
    length = sum((window.length for window in plan.windows), timedelta())
    shown: dict[str, Any] = {
        "TrainingPlanArn": plan.arn,
        "TrainingPlanName": plan.name,
        "Status": plan.status(now).value,
        **duration(length),
        "StartTime": plan.begin.timestamp(),
        "EndTime": plan.end.timestamp(),
        "UpfrontFee": money(plan.fee_usd),
        "CurrencyCode": "USD",
        "TotalInstanceCount": plan.instances,
        "AvailableInstanceCount": available,
        "InUseInstanceCount": in_use,
        "TargetResources": list(TARGETS),
        "ReservedCapacitySummaries": [
            _reserved(plan, window, number, now) for number, window in enumerate(plan.windows, start=1)
        ],
    }
    return shown if plan.failure is None else shown | {"StatusMessage": plan.failure}


def duration(length: timedelta) -> dict[str, int]:
    return {"DurationHours": length // _HOUR, "DurationMinutes": length % _HOUR // _MINUTE}


def money(usd: float) -> str:
    """Write an amount as SageMaker does, which is text."""
    return f"{usd:.2f}"


def _reserved(plan: TrainingPlan, window: Window, number: int, now: datetime) -> dict[str, Any]:
    prefix, _, name = plan.arn.partition(":training-plan/")
    return {
        "ReservedCapacityArn": f"{prefix}{_RESERVED}{name}-{number}",
        "ReservedCapacityType": "Instance",
        "InstanceType": plan.instance_type,
        "TotalInstanceCount": plan.instances,
        "Status": window.status(now).value,
        "AvailabilityZone": ZONE.format(region=plan.arn.split(":")[3]),
        "AvailabilityZoneId": ZONE_ID,
        **duration(window.length),
        "StartTime": window.begin.timestamp(),
        "EndTime": window.end.timestamp(),
    }
