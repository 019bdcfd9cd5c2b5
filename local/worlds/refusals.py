"""Refuses requests that are right in themselves but exceed an account's limits, in AWS's words.

Sources of the words: aws/amazon-sagemaker-examples#1543 (a quota of a type) and #1001 (a type that the
Region lacks), data-science-on-aws/data-science-on-aws#140 (a quota of the account). The names of the other
limits are those of the SageMaker Developer Guide, "Feature Processor restrictions, limits, and quotas";
what they look like in a refusal is assumed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from local.worlds.world import World

ON_DEMAND, SPOT, PLAN = "on-demand", "spot", "plan"
CAPACITY_TYPES = (ON_DEMAND, SPOT)
"""Capacity types that quotas count; instances of a training plan are bought, and have none."""

QUOTA_NAMES: Mapping[str, str] = {
    ON_DEMAND: "{type} for training job usage",
    SPOT: "{type} for spot training job usage",
}

Request: TypeAlias = Mapping[str, Any]
Used: TypeAlias = Mapping[tuple[str, str], int]
"""(capacity type, instance type) -> instances of jobs that have not ended."""

_MOST_INSTANCES = {
    ON_DEMAND: "Maximum number of instances per training job",
    SPOT: "Maximum number of instances per spot training job",
    PLAN: "Maximum number of instances per training job",
}
DEFAULT_MAX_RUNTIME_SECONDS = 86400
"""Source: SageMaker API reference, StoppingCondition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    code: str
    message: str


def refusal(world: World, request: Request, used: Used) -> Refusal | None:
    """Return CreateTrainingJob's refusal; None if nothing is against the request."""
    return next(_refusals(world, request, used), None)


def keep_alive_refusal(world: World, resources: Mapping[str, Any]) -> Refusal | None:
    """Return what is against the ResourceConfig of a creation or an update; None if nothing is."""
    wanted, most = resources.get("KeepAlivePeriodInSeconds") or 0, world.max_keep_alive_seconds
    if most is None or wanted <= most:
        return None
    return _above("Keep alive period for cluster reuse", most, delta=wanted, unit="Seconds")


def keeps_warm(world: World, wanted: int, kept: int) -> bool:
    """Tell whether a job's ``wanted`` instances are kept at its end, beside ``kept`` ones of the type.

    Source: SageMaker Developer Guide, "Request a warm pool quota increase": without a quota the job is
    accepted and no pool is retained.
    """
    return world.warm_pool_quota is None or kept + wanted <= world.warm_pool_quota


def asked(request: Request) -> Counter[str]:
    """Count the instances by type that a request asks for; of InstancePreferences the first choice."""
    resources = request["ResourceConfig"]
    preferences = resources.get("InstancePreferences")
    if preferences:
        groups = [{**resources, **preferences[0]}]
    else:
        groups = resources.get("InstanceGroups") or [resources]
    counts: Counter[str] = Counter()
    for group in groups:
        counts[group["InstanceType"]] += group["InstanceCount"]
    return counts


def capacity_type(request: Request) -> str:
    if "TrainingPlanArn" in request["ResourceConfig"]:
        return PLAN
    return SPOT if request.get("EnableManagedSpotTraining") else ON_DEMAND


def _refusals(world: World, request: Request, used: Used) -> Iterator[Refusal]:
    kind, counts = capacity_type(request), asked(request)
    for instance_type in _named(request):
        if instance_type in world.missing_types:
            yield _not_here(instance_type)
    total, most = counts.total(), world.max_instances_per_job
    if most is not None and total > most:
        yield _above(_MOST_INSTANCES[kind], most, delta=total)
    runtime, longest = _max_runtime(request), world.max_runtime_seconds
    if longest is not None and runtime > longest:
        yield _above("Longest run time for a training job", longest, delta=runtime, unit="Seconds")
    if (complaint := keep_alive_refusal(world, request["ResourceConfig"])) is not None:
        yield complaint
    for instance_type, wanted in counts.items():
        quota = world.quotas.get(instance_type, {}).get(kind)
        busy = used.get((kind, instance_type), 0)
        if quota is not None and busy + wanted > quota:
            yield _above(QUOTA_NAMES[kind].format(type=instance_type), quota, used=busy, delta=wanted)


def _named(request: Request) -> list[str]:
    """Return every type that a request names, whether or not it would come to it."""
    resources = request["ResourceConfig"]
    parts = [resources, *resources.get("InstancePreferences", ()), *resources.get("InstanceGroups", ())]
    return [part["InstanceType"] for part in parts if "InstanceType" in part]


def _max_runtime(request: Request) -> int:
    stopping = request.get("StoppingCondition", {})
    return int(stopping.get("MaxRuntimeInSeconds", DEFAULT_MAX_RUNTIME_SECONDS))


def _not_here(instance_type: str) -> Refusal:
    return Refusal(
        code="ResourceLimitExceeded",
        message=f"The requested resource training-job/{instance_type} is not available in this region",
    )


def _above(limit: str, most: int, *, delta: int, used: int = 0, unit: str = "Instances") -> Refusal:
    return Refusal(
        code="ResourceLimitExceeded",
        message=(
            f"The account-level service limit '{limit}' is {most} {unit}, with current utilization of {used} "
            f"{unit} and a request delta of {delta} {unit}. Please use AWS Service Quotas to request an "
            "increase for this quota. If AWS Service Quotas is not available, contact AWS support to request "
            "an increase for this quota."
        ),
    )
