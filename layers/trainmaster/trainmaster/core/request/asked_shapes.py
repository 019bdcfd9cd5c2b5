"""The shapes that a request asks for, and what two jobs must have in common to share a warm pool."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainmaster.core.jobs.instances import Capacity, CapacityType, Shape, Vector, plan_name
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.request.options import PlanUse, UserOptions

_WARM_KEY_BYTES = 8
# Names of fields that have to match and that a pool can set for its jobs.
ROLE = "RoleArn"
VOLUME_SIZE = "VolumeSizeInGB"
SUBNETS = "Subnets"
SECURITY_GROUPS = "SecurityGroupIds"


def shapes_of(body: Mapping[str, Any], options: UserOptions) -> tuple[Shape, ...]:
    """Return the forms that a job can run in, in the order of preference.

    Args:
        body: A request in which ``check_request`` found no mistake.
        options: The options in its tags.
    """
    spot = body.get("EnableManagedSpotTraining", False)
    shapes = (
        _alternatives(body, options)
        or _widths(body, options.elastic)
        or _shapes(body, CapacityType.SPOT if spot else CapacityType.ON_DEMAND)
    )
    return _on_plans(shapes, options, body["ResourceConfig"])


def _shapes(body: Mapping[str, Any], capacity_type: CapacityType) -> tuple[Shape, ...]:
    resources = body["ResourceConfig"]
    if "InstancePreferences" in resources:
        common = {"InstanceCount": resources.get("InstanceCount")}
        return tuple(
            Shape(vector=_vector([common | preference], capacity_type))
            for preference in resources["InstancePreferences"]
        )
    if "InstanceGroups" in resources:
        vector = _vector(resources["InstanceGroups"], capacity_type)
        # A plan named beside groups is refused, so groups of one type do not run on one by default, either.
        return (Shape(vector=vector, avoids_plans=True if len(vector) == 1 else None),)
    vector = _vector([resources], capacity_type)
    return (Shape(vector=vector, warm_key=warm_key(body, vector)),)


def _widths(body: Mapping[str, Any], widths: Widths | None) -> tuple[Shape, ...]:
    """Return a shape for each width, the largest first.

    They have no warm keys: a warm pool fits only the same count, so what an attempt left warm would stand in
    the way of the next one at another width until SageMaker has given it up.
    """
    capacity = Capacity(body["ResourceConfig"].get("InstanceType", ""))
    return tuple(Shape(vector={capacity: count}) for count in reversed(widths.counts if widths else ()))


def _on_plans(
    shapes: tuple[Shape, ...], options: UserOptions, resources: Mapping[str, Any]
) -> tuple[Shape, ...]:
    """Ask for instances of the training plan that is named, or of any, or of none, where the request says."""
    arn = resources.get("TrainingPlanArn")
    if arn is not None:
        return tuple(_on_plan(shape, plan_name(arn)) for shape in shapes)
    if options.plan is PlanUse.ONLY:
        return tuple(_on_plan(shape, None) for shape in shapes)
    if options.plan is PlanUse.NEVER:
        return tuple(replace(shape, avoids_plans=True) for shape in shapes)
    return shapes


def _on_plan(shape: Shape, plan: str | None) -> Shape:
    vector = {
        Capacity.of_plan(capacity.instance_type, plan)
        if plan
        else Capacity(capacity.instance_type, CapacityType.PLAN): count
        for capacity, count in shape.vector.items()
    }
    return Shape(vector=vector, subnet=shape.subnet)


def _alternatives(body: Mapping[str, Any], options: UserOptions) -> tuple[Shape, ...]:
    listed = body.get("VpcConfig", {}).get("Subnets", [])
    wanted = (
        (alternative.capacity, alternative.count, subnet)
        for alternative in options.alternatives
        for subnet in alternative.subnets(listed)
    )
    # A shape that is named for itself and is among those of @any counts once, where it comes first.
    return tuple(
        Shape(vector={kind: count}, subnet=subnet, warm_key=warm_key(body, {kind: count}, subnet=subnet))
        for kind, count, subnet in dict.fromkeys(wanted)
    )


def _vector(parts: Sequence[Mapping[str, Any]], capacity_type: CapacityType) -> Vector:
    vector: dict[Capacity, int] = {}
    for part in parts:
        capacity = Capacity(part["InstanceType"], capacity_type)
        vector[capacity] = vector.get(capacity, 0) + part["InstanceCount"]
    return vector


def warm_key(body: Mapping[str, Any], vector: Vector, *, subnet: str | None = None) -> str | None:
    """Return a digest of what a job must have in common with another to reuse its warm pool.

    None where there is no warm pool: spot, training plans, and more than one instance type.
    Source: SageMaker developer guide, managed warm pools, matching training jobs.
    """
    ((capacity, count), *others) = vector.items()
    if others or capacity.capacity_type is not CapacityType.ON_DEMAND:
        return None
    matching = list(matching_fields(body, capacity.instance_type, count, subnet=subnet).values())
    return hashlib.blake2b(json.dumps(matching).encode(), digest_size=_WARM_KEY_BYTES).hexdigest()


def matching_fields(
    body: Mapping[str, Any], instance_type: str, count: int, *, subnet: str | None = None
) -> dict[str, Any]:
    """Return the fields that decide which warm pools a job can reuse, in the order of the digest.

    Keys are stored: neither the order nor the form of a value may change.

    Args:
        body: A valid request.
        instance_type: Type of all instances.
        count: Number of instances.
        subnet: The one subnet of the shape; None: those of the request.
    """
    resources, network = body["ResourceConfig"], body.get("VpcConfig", {})
    # Lists whose order means nothing to SageMaker are sorted, so that equal requests have equal keys.
    return {
        ROLE: body["RoleArn"],
        "InstanceType": instance_type,
        "InstanceCount": count,
        VOLUME_SIZE: resources.get("VolumeSizeInGB"),
        "VolumeKmsKeyId": resources.get("VolumeKmsKeyId"),
        SUBNETS: [subnet] if subnet else sorted(network.get("Subnets", [])),
        SECURITY_GROUPS: sorted(network.get("SecurityGroupIds", [])),
        "EnableInterContainerTrafficEncryption": body.get("EnableInterContainerTrafficEncryption", False),
        "EnableNetworkIsolation": body.get("EnableNetworkIsolation", False),
        "EnableSessionTagChaining": body.get("SessionChainingConfig", {}).get(
            "EnableSessionTagChaining", False
        ),
    }
