"""A plane whose pool has a training plan: what SageMaker says of it, and how time passes."""

from typing import Any

from trainmaster.core.jobs.instances import Capacity

from tests.builders import NOON, A, minutes
from tests.integration.world import World

SPRING = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/spring"
ON_PLAN = Capacity.of_plan(A, "spring")
ONLY = {"Key": "trainmaster:plan", "Value": "only"}


def policy(capacity: int = 0, **plan: Any) -> dict[str, Any]:
    """A pool with a plan, and ``capacity`` on-demand instances beside it."""
    return {"pools": [{"name": "main", "capacity": {A: capacity}, "plans": [{"arn": SPRING} | plan]}]}


def described(*hours: tuple[float, float], instances: int = 2, **more: Any) -> dict[str, Any]:
    """A plan as SageMaker describes it, with windows in hours from NOON."""
    parts = [
        {
            "ReservedCapacityArn": f"{SPRING}-{number}",
            "InstanceType": A,
            "TotalInstanceCount": instances,
            "StartTime": NOON + minutes(60 * begin),
            "EndTime": NOON + minutes(60 * end),
            "Status": "Scheduled",
        }
        for number, (begin, end) in enumerate(hours)
    ]
    return {
        "TrainingPlanArn": SPRING,
        "TrainingPlanName": "spring",
        "Status": "Active",
        "TotalInstanceCount": instances,
        "UpfrontFee": "960.00",
        "CurrencyCode": "USD",
        "ReservedCapacitySummaries": parts,
    } | more


def at(world: World, hours: float) -> None:
    """The clock goes on to so many hours after NOON; ``reconcile`` runs and the pools are woken."""
    world.now = NOON + minutes(60 * hours)
    world.reconcile()
    world.schedule()


def on_the_plan(world: World) -> list[str]:
    return sorted(
        name
        for name, job in world.sagemaker.live().items()
        if job.request["ResourceConfig"].get("TrainingPlanArn") == SPRING
    )
