"""Decides what CreateTrainingJob refuses of a request that names a training plan.

SageMaker's texts are not documented; these say plainly what it refuses.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from local.sagemaker.training_plans import PlanStatus, TrainingPlan

_USABLE = (PlanStatus.SCHEDULED, PlanStatus.ACTIVE)
"""Source: SageMaker developer guide, "Training plans utilization for SageMaker training jobs"."""


def plan_complaint(
    request: Mapping[str, Any], find: Callable[[str], TrainingPlan | None], now: datetime
) -> str | None:
    """Return what is against the plan that a request names; None if nothing is, or it names none."""
    resources = request["ResourceConfig"]
    arn = resources.get("TrainingPlanArn")
    if arn is None:
        return None
    if request.get("EnableManagedSpotTraining"):
        return "TrainingPlanArn is not for managed spot training"
    if resources.get("KeepAlivePeriodInSeconds"):
        return "KeepAlivePeriodInSeconds is not for the instances of a training plan"
    if "InstancePreferences" in resources:
        return "Specify either TrainingPlanArn or InstancePreferences, and not both"
    plan = find(arn)
    if plan is None:
        return f"The training plan {arn} does not exist"
    types = {group["InstanceType"] for group in resources.get("InstanceGroups") or [resources]}
    if types != {plan.instance_type}:
        named = ", ".join(sorted(types))
        return f"The training plan {arn} has instances of type {plan.instance_type}, not {named}"
    if (status := plan.status(now)) not in _USABLE:
        return (
            f"The training plan {arn} is in status {status.value}; a training job can use one that is "
            "Scheduled or Active"
        )
    return None
