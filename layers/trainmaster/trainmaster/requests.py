"""What a valid CreateTrainingJob request asks for, and what CreateTrainingJob gets for each attempt."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from trainmaster.jobs import Capacity, CapacityType, Job, Vector, vector_text
from trainmaster.user_options import UserOptions, read_options

TAG_STACK = "trainmaster:stack"
TAG_JOB = "trainmaster:job"
TAG_ATTEMPT = "trainmaster:attempt"
TAG_SPEC = "trainmaster:spec"

MAX_NAME_CHARACTERS = 63
"""Source: SageMaker API reference, TrainingJobName."""
SHORTEST_PENDING = timedelta(seconds=1800)
"""Source: SageMaker API reference, MaxPendingTimeInSeconds; the same for the longest."""
LONGEST_PENDING = timedelta(seconds=2_419_200)
ACCELERATED_PREFIXES = ("ml.p", "ml.g", "ml.trn")
"""Families that MaxPendingTimeInSeconds works for. Source: as above."""

_HASH_CHARACTERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmKey:
    """What two jobs must have in common for the second to reuse the first one's warm pool.

    Source: SageMaker developer guide, managed warm pools, matching training jobs.
    """

    role_arn: str
    instance_type: str
    instance_count: int
    volume_gb: int | None
    volume_kms_key: str | None
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]
    encrypts_traffic: bool
    isolates_network: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What one job asks for."""

    name: str
    vector: Vector
    """What must be free to start it. With InstancePreferences every candidate: SageMaker picks one later."""
    candidates: tuple[Vector, ...]
    """The shapes of which it runs in one, in the order of preference; nearly always just one."""
    capacity_type: CapacityType
    options: UserOptions
    role_arn: str
    max_runtime: timedelta
    max_wait: timedelta | None
    """Managed spot: from creation to end, waiting included."""
    has_checkpoint: bool
    warm_key: WarmKey | None
    """None where SageMaker keeps no warm pool: spot, groups, preferences."""

    @property
    def lane(self) -> str:
        """Jobs of a lane ask for the same thing: one that cannot start speaks for those behind it."""
        if self.options.alternatives:
            return ">".join(f"{one.capacity}={one.count}" for one in self.options.alternatives)
        return "|".join(vector_text(candidate) for candidate in self.candidates)


def read_request(body: Mapping[str, Any]) -> Ask:
    """Read a body in which ``check_request`` found no mistake."""
    resources = body["ResourceConfig"]
    stopping = body["StoppingCondition"]
    spot = body.get("EnableManagedSpotTraining", False)
    capacity_type = CapacityType.SPOT if spot else CapacityType.ON_DEMAND
    candidates = _candidates(resources, capacity_type)
    return Ask(
        name=body["TrainingJobName"],
        vector={capacity: count for candidate in candidates for capacity, count in candidate.items()},
        candidates=candidates,
        capacity_type=capacity_type,
        options=read_options(_tags(body)),
        role_arn=body["RoleArn"],
        max_runtime=timedelta(seconds=stopping["MaxRuntimeInSeconds"]),
        max_wait=timedelta(seconds=stopping["MaxWaitTimeInSeconds"]) if spot else None,
        has_checkpoint="CheckpointConfig" in body,
        warm_key=None if spot or "InstanceType" not in resources else _warm_key(body),
    )


def _tags(body: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in body.get("Tags", [])}


def _candidates(resources: Mapping[str, Any], capacity_type: CapacityType) -> tuple[Vector, ...]:
    if "InstancePreferences" in resources:
        common = {"InstanceCount": resources.get("InstanceCount")}
        return tuple(
            _vector([common | preference], capacity_type) for preference in resources["InstancePreferences"]
        )
    return (_vector(resources.get("InstanceGroups", [resources]), capacity_type),)


def _vector(parts: list[Mapping[str, Any]], capacity_type: CapacityType) -> Vector:
    vector: dict[Capacity, int] = {}
    for part in parts:
        capacity = Capacity(part["InstanceType"], capacity_type)
        vector[capacity] = vector.get(capacity, 0) + part["InstanceCount"]
    return vector


def _warm_key(body: Mapping[str, Any]) -> WarmKey:
    resources = body["ResourceConfig"]
    network = body.get("VpcConfig", {})
    return WarmKey(
        role_arn=body["RoleArn"],
        instance_type=resources["InstanceType"],
        instance_count=resources["InstanceCount"],
        volume_gb=resources.get("VolumeSizeInGB"),
        volume_kms_key=resources.get("VolumeKmsKeyId"),
        subnets=tuple(sorted(network.get("Subnets", []))),
        security_groups=tuple(sorted(network.get("SecurityGroupIds", []))),
        encrypts_traffic=body.get("EnableInterContainerTrafficEncryption", False),
        isolates_network=body.get("EnableNetworkIsolation", False),
    )


def canonical(body: Mapping[str, Any]) -> bytes:
    """The same bytes for the same request, whatever the order of keys and tags; no more than were sent."""
    tags = sorted(body.get("Tags", []), key=lambda tag: (tag["Key"], tag["Value"]))
    ordered = {**body, "Tags": tags} if "Tags" in body else body
    text = json.dumps(ordered, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def body_hash(body: Mapping[str, Any]) -> str:
    """Whether two submissions are the same one: SHA-256 of the canonical body, in hex."""
    return hashlib.sha256(canonical(body)).hexdigest()


def attempt_name(name: str, entry_id: str, attempt: int) -> str:
    """The training job's name: always the same for the same attempt of the same submission.

    Attempt 0 runs under the very name the user chose, so code that describes it by that name works.
    """
    assert attempt >= 0, attempt
    if attempt == 0:
        return name
    digest = hashlib.sha256(f"{entry_id}:{attempt}".encode()).hexdigest()[:_HASH_CHARACTERS]
    suffix = f"-r{attempt}-{digest}"
    return name[: MAX_NAME_CHARACTERS - len(suffix)].rstrip("-") + suffix


def attempt_request(
    body: Mapping[str, Any], *, name: str, job: Job, stack: str, capacity_wait: timedelta
) -> dict[str, Any]:
    """What CreateTrainingJob gets: the user's request under the attempt's name, our tags last.

    Args:
        body: As submitted.
        name: The attempt's.
        job: As claimed.
        stack: Whose attempt it is: several stacks may share an account.
        capacity_wait: How long SageMaker may wait for accelerated instances, unless the user said so himself.
    """
    return {
        **body,
        "TrainingJobName": name,
        "ResourceConfig": _without_warm_pool(body["ResourceConfig"]),
        "StoppingCondition": _with_capacity_wait(body["StoppingCondition"], job.spec.vector, capacity_wait),
        "Tags": [
            *body.get("Tags", []),
            {"Key": TAG_STACK, "Value": stack},
            *({"Key": key, "Value": value} for key, value in _marks(job).items()),
        ],
    }


def is_ours(tags: Mapping[str, str], job: Job) -> bool:
    """True when a training job with these tags was started for the attempt that the job is at."""
    return all(tags.get(key) == value for key, value in _marks(job).items())


def _marks(job: Job) -> dict[str, str]:
    return {
        TAG_JOB: job.spec.entry_id,
        TAG_ATTEMPT: str(job.attempt),
        TAG_SPEC: job.spec.body_hash,
    }


def _without_warm_pool(resources: Mapping[str, Any]) -> dict[str, Any]:
    """The user's keep-alive is a wish, cut to the pool's: none, because nothing counts warm instances yet."""
    return {name: value for name, value in resources.items() if name != "KeepAlivePeriodInSeconds"}


def _with_capacity_wait(stopping: Mapping[str, Any], vector: Vector, wait: timedelta) -> dict[str, Any]:
    accelerated = any(capacity.instance_type.startswith(ACCELERATED_PREFIXES) for capacity in vector)
    if not accelerated or "MaxPendingTimeInSeconds" in stopping:
        return dict(stopping)
    seconds = int(min(max(wait, SHORTEST_PENDING), LONGEST_PENDING).total_seconds())
    return {**stopping, "MaxPendingTimeInSeconds": seconds}
