"""The demands of a valid CreateTrainingJob request, and the request to send for each attempt."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from trainmaster.core.durations.traits import Traits, digest_of
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import CapacityType, Choice, Shape, Vector, asked_for, lane_text
from trainmaster.core.jobs.model import Job
from trainmaster.core.request.asked_shapes import shapes_of
from trainmaster.core.request.completion import in_whole_numbers, with_runtime
from trainmaster.core.request.options import ELASTIC, UserOptions, read_options

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

MAX_VARIABLES = 100
"""Most entries of Environment. Source: SageMaker API reference, CreateTrainingJob."""
WIDTHS_VARIABLE = "TRAINMASTER_WIDTHS"
"""Environment variable in which the program of an elastic job finds its widths, as the tag has them."""
HOLD_OPEN_VARIABLE = "TRAINMASTER_HOLD_OPEN"
"""Environment variable in which the launcher finds how long it waits for a visitor."""

TAG_TEAM = "trainmaster:team"
"""Tag of a session of a launcher role, beside ``TAG_STACK``."""

_HASH_CHARACTERS = 6
_SDK_INSTANCE_TYPE = "sagemaker_instance_type"
"""Hyperparameter in which SDK v2 notes the instance type for its containers, as JSON. Source: sagemaker
2.257.7."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The demands of one job, read from its request."""

    name: str
    shapes: tuple[Shape, ...]
    """The forms it can run in, in the order of preference; nearly always just one."""
    choice: Choice
    options: UserOptions
    role_arn: str
    max_runtime: timedelta
    max_wait: timedelta | None
    """Managed spot: from creation to end, waiting included."""
    checkpoint_uri: str | None
    keep_alive: timedelta | None
    """KeepAlivePeriodInSeconds as asked for; None or zero: the pool's."""
    plan_arn: str | None = None
    """The training plan that the request names itself: it runs on no other instances."""

    @property
    def vector(self) -> Vector:
        return asked_for(self.shapes, self.choice)


def traits_of(ask: Ask, body: Mapping[str, Any], *, team: str, submitter: str | None = None) -> Traits:
    """Collect the traits of a request that help to predict how long its job trains.

    Args:
        ask: What was read from the request.
        body: The request.
        team: Team that it is submitted for.
        submitter: Identity that submits it; None: it is not known.
    """
    algorithm, hyperparameters = body.get("AlgorithmSpecification", {}), body.get("HyperParameters")
    return Traits(
        team=team,
        lane=lane_text(ask.shapes, ask.choice),
        limit=ask.max_runtime,
        name=ask.name,
        image=algorithm.get("TrainingImage") or algorithm.get("AlgorithmName"),
        hyperparameters=digest_of(hyperparameters) if hyperparameters else None,
        submitter=submitter,
    )


def read_request(body: Mapping[str, Any]) -> Ask:
    """Read a body in which ``check_request`` found no mistake; without a run time it has SageMaker's own."""
    body = with_runtime(in_whole_numbers(body), longest=None)
    resources, stopping = body["ResourceConfig"], body["StoppingCondition"]
    spot = body.get("EnableManagedSpotTraining", False)
    options = read_options(_tags(body))
    return Ask(
        name=body["TrainingJobName"],
        shapes=shapes_of(body, options),
        choice=Choice.SAGEMAKER if "InstancePreferences" in resources else Choice.FIRST_FIT,
        options=options,
        role_arn=body["RoleArn"],
        max_runtime=timedelta(seconds=stopping["MaxRuntimeInSeconds"]),
        max_wait=timedelta(seconds=stopping["MaxWaitTimeInSeconds"]) if spot else None,
        checkpoint_uri=body.get("CheckpointConfig", {}).get("S3Uri"),
        keep_alive=timedelta(seconds=resources["KeepAlivePeriodInSeconds"])
        if resources.get("KeepAlivePeriodInSeconds")
        else None,
        plan_arn=resources.get("TrainingPlanArn"),
    )


def _tags(body: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in body.get("Tags", [])}


def attempt_name(name: str, entry_id: str, attempt: int) -> str:
    """Return the training job's name: always the same for the same attempt of the same submission.

    Attempt 0 runs under the very name the user chose, so code that describes it by that name works.
    """
    assert attempt >= 0, attempt
    if attempt == 0:
        return name
    # The digest keeps attempts of two jobs apart whose names are equal as far as they are kept.
    digest = hashlib.sha256(f"{entry_id}:{attempt}".encode()).hexdigest()[:_HASH_CHARACTERS]
    suffix = f"-r{attempt}-{digest}"
    return name[: MAX_NAME_CHARACTERS - len(suffix)].rstrip("-") + suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """The caller of CreateTrainingJob instead of the stack itself: a role that a team has for it."""

    role_arn: str
    team: str
    stack: str


def attempt_request(
    body: Mapping[str, Any], *, attempt: Attempt, job: Job, stack: str, capacity_wait: timedelta | None
) -> dict[str, Any]:
    """Build the request for CreateTrainingJob: the user's, in the attempt's shape and name, our tags last.

    Args:
        body: The request as submitted.
        attempt: The attempt as claimed.
        job: The attempt's job.
        stack: The job's stack: several stacks may share an account.
        capacity_wait: The longest wait for accelerated instances where the user's request sets none;
            None leaves it to SageMaker.
    """
    return {
        **_in_shape(body, job, attempt),
        "TrainingJobName": attempt.training_job_name,
        "ResourceConfig": _resources(body["ResourceConfig"], attempt),
        "StoppingCondition": _stopping(body.get("StoppingCondition", {}), attempt, capacity_wait),
        "Tags": [
            *body.get("Tags", []),
            {"Key": TAG_STACK, "Value": stack},
            *({"Key": key, "Value": value} for key, value in _marks(job).items()),
        ],
    }


def _in_shape(body: Mapping[str, Any], job: Job, attempt: Attempt) -> dict[str, Any]:
    """Set the spot flag, the subnet and the SDK's own note of the instance type as the pinned shape has them.

    Hyperparameters that were rewritten since the job ran out of GPU memory are set too.
    """
    changed = dict(body)
    if attempt.capacity_type is CapacityType.SPOT:
        changed["EnableManagedSpotTraining"] = True
    elif "EnableManagedSpotTraining" in body:
        changed["EnableManagedSpotTraining"] = False
    if attempt.shape.subnet is not None and "VpcConfig" in body:
        changed["VpcConfig"] = {**body["VpcConfig"], "Subnets": [attempt.shape.subnet]}
    if job.spec.widths is not None:
        changed["Environment"] = _with_variable(changed, WIDTHS_VARIABLE, _tags(body)[ELASTIC])
    hold = job.spec.hold_open
    if hold is not None and (hold.is_after_failure or job.attempt == 0):
        changed["Environment"] = _with_variable(changed, HOLD_OPEN_VARIABLE, hold.variable)
    if "HyperParameters" in body:
        changed["HyperParameters"] = _hyperparameters(body["HyperParameters"], job, attempt)
    return changed


def _with_variable(body: Mapping[str, Any], name: str, value: str) -> dict[str, str]:
    """Add a variable for the program to the environment; not if it is full, which costs no result."""
    environment = dict(body.get("Environment", {}))
    if name in environment or len(environment) < MAX_VARIABLES:
        environment[name] = value
    return environment


def _hyperparameters(submitted: Mapping[str, str], job: Job, attempt: Attempt) -> dict[str, str]:
    hyperparameters = {**submitted, **job.comebacks.rewritten}
    pinned = job.spec.choice is Choice.FIRST_FIT and len(attempt.vector) == 1
    if pinned and _SDK_INSTANCE_TYPE in submitted:
        (capacity,) = attempt.vector
        hyperparameters[_SDK_INSTANCE_TYPE] = json.dumps(capacity.instance_type)
    return hyperparameters


def _resources(resources: Mapping[str, Any], attempt: Attempt) -> dict[str, Any]:
    """Set the pinned type, count and plan, keep the InstancePreferences that are held, add the keep-alive."""
    shaped = {name: value for name, value in resources.items() if name != "KeepAlivePeriodInSeconds"}
    if "InstancePreferences" in resources:
        held = {capacity.instance_type for capacity in attempt.vector}
        shaped["InstancePreferences"] = [
            preference
            for preference in resources["InstancePreferences"]
            if preference["InstanceType"] in held
        ]
    elif "InstanceType" in resources:
        ((capacity, count),) = attempt.vector.items()
        shaped |= {"InstanceType": capacity.instance_type, "InstanceCount": count}
    if attempt.plan_arn is not None:
        shaped["TrainingPlanArn"] = attempt.plan_arn
    if attempt.keep_alive:
        shaped["KeepAlivePeriodInSeconds"] = int(attempt.keep_alive.total_seconds())
    return shaped


def _stopping(stopping: Mapping[str, Any], attempt: Attempt, wait: timedelta | None) -> dict[str, Any]:
    """Set the remaining run time, the wait of a spot attempt and the wait for accelerated instances."""
    shaped = {name: value for name, value in stopping.items() if name != "MaxWaitTimeInSeconds"}
    shaped["MaxRuntimeInSeconds"] = int(attempt.max_runtime.total_seconds())
    if attempt.max_wait is not None:
        shaped["MaxWaitTimeInSeconds"] = int(attempt.max_wait.total_seconds())
    accelerated = any(capacity.instance_type.startswith(ACCELERATED_PREFIXES) for capacity in attempt.vector)
    if wait is not None and accelerated and "MaxPendingTimeInSeconds" not in stopping:
        bounded = min(max(wait, SHORTEST_PENDING), LONGEST_PENDING)
        shaped["MaxPendingTimeInSeconds"] = int(bounded.total_seconds())
    return shaped


def is_ours(tags: Mapping[str, str], job: Job) -> bool:
    """Tell whether a training job with these tags was started for the job's present attempt."""
    return all(tags.get(key) == value for key, value in _marks(job).items())


def _marks(job: Job) -> dict[str, str]:
    return {
        TAG_JOB: job.spec.entry_id,
        TAG_ATTEMPT: str(job.attempt),
        TAG_SPEC: job.spec.body_hash,
    }
