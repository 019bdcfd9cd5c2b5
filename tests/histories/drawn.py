"""What the dice of a history choose from: policies, requests, refusals and ends."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from trainmaster.core.errors import (
    AccountLimitError,
    OutcomeUnknownError,
    ServerFaultError,
    TrainingRefusedError,
    UnavailableError,
    UnclassifiedTrainingError,
)

from tests.bodies import body
from tests.builders import A, B
from tests.histories.world import POOL

REFUSALS: tuple[Callable[[], Exception], ...] = (
    lambda: UnavailableError("ThrottlingException"),
    lambda: AccountLimitError("ResourceLimitExceeded"),
    lambda: AccountLimitError("ResourceLimitExceeded"),
    lambda: ServerFaultError("InternalFailure"),
    lambda: OutcomeUnknownError("no answer"),
    lambda: TrainingRefusedError("ValidationException"),
    lambda: UnclassifiedTrainingError("Strange"),
)
ENDS = ("Completed", "Completed", "Failed", "Failed", "CapacityError", "MaxRuntimeExceeded")
FAILURES = (
    "AlgorithmError: KeyError: 'x', exit code: 1",
    "InternalServerError: We encountered an internal error. Please try again.",
    "AlgorithmError: NCCL error: unhandled system error",
)
ENDS_OF_STOPPING = ("Stopped", "Stopped", "Stopped", "Completed", "Failed")


def document_of(dice: random.Random) -> dict[str, Any]:
    """A policy for one history."""
    capacity = {A: dice.choice([1, 1, 2, 3])} | ({B: dice.choice([1, 2])} if dice.random() < 0.4 else {})
    pool: dict[str, Any] = {"name": POOL, "capacity": capacity, "spot_capacity": {A: dice.choice([0, 1, 1])}}
    if dice.random() < 0.7:
        pool["warm_pool"] = {"keep_alive": "10m", "retain": dice.choice(["0s", "5m"]), "max_idle": "30m"}
    if dice.random() < 0.3:
        pool["preemption"] = {"min_runtime": dice.choice(["0s", "2m"]), "max_per_job": dice.choice([1, 2])}
    if dice.random() < 0.3:
        pool["order"] = {"backfill": dice.choice([True, False])}
    document: dict[str, Any] = {"pools": [pool], "prices": {A: 1, B: 3}}
    if dice.random() < 0.5:
        recovery = {"max_retries": dice.choice([0, 1, 2]), "min_runtime": dice.choice(["0s", "2m"])}
        document["recovery"] = recovery | {"backoff": {"first": "20s", "max": "2m"}}
    if dice.random() < 0.9:
        fallback = dice.choice(["on-demand", "on-demand", "on-demand", "none"])
        document["spot"] = {"max_interruptions": dice.choice([0, 0, 1]), "fallback": fallback}
    if dice.random() < 0.4:
        nominal = dice.randint(0, capacity[A])
        pool["quotas"] = {
            "vision": {"nominal": {A: nominal}},
            "speech": {"nominal": {A: capacity[A] - nominal}},
        }
    if "quotas" in pool or dice.random() < 0.2:
        document["teams"] = [_team("vision", dice), _team("speech", dice)]
    return document


def _team(name: str, dice: random.Random) -> dict[str, Any]:
    principals = ["arn:aws:iam::123456789012:user/*"]
    team: dict[str, Any] = {"name": name, "principals": principals, "roles": "any"}
    if dice.random() < 0.3:
        budget = {"usd_per_month": dice.choice([3, 8, 100]), "at_limit": dice.choice(["wait", "spot"])}
        team["budget"] = budget
    return team


def request_of(name: str, dice: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "InstanceType": A,
        "InstanceCount": dice.choice([1, 1, 1, 2]),
        "VolumeSizeInGB": 1,
    }
    tags = [{"Key": "priority", "Value": str(dice.randint(0, 4))}]
    if "teams" in document:
        tags.append({"Key": "team", "Value": dice.choice(["vision", "speech"])})
    if dice.random() < 0.1:
        tags.append({"Key": "trainmaster:preemptible", "Value": "false"})
    whole = body(TrainingJobName=name) | {"Tags": tags, "ResourceConfig": resources}
    whole["StoppingCondition"] = {"MaxRuntimeInSeconds": dice.choice([600, 3600, 86_400])}
    if dice.random() < 0.25:
        whole |= {"EnableManagedSpotTraining": True}
        whole["StoppingCondition"] |= {"MaxWaitTimeInSeconds": 172_800}
    elif dice.random() < 0.15 and B in document["pools"][0]["capacity"]:
        whole["ResourceConfig"] = {
            "VolumeSizeInGB": 1,
            "InstancePreferences": [{"InstanceType": one, "InstanceCount": 1} for one in (A, B)],
        }
    elif dice.random() < 0.2:
        whole |= elastic(resources, tags, dice)
    if dice.random() < 0.7:
        whole["CheckpointConfig"] = {"S3Uri": f"s3://bucket/checkpoints/{name}"}
    return whole


def elastic(resources: dict[str, Any], tags: list[dict[str, str]], dice: random.Random) -> dict[str, Any]:
    """The parts of a request that let the job run with fewer instances than its most."""
    widths = dice.choice(["1-2", "1-3", "1 3", "2-3"])
    count = int(widths[-1])
    named = [*tags, {"Key": "trainmaster:elastic", "Value": widths}]
    return {"ResourceConfig": {**resources, "InstanceCount": count}, "Tags": named}


CONDITIONS = ("", "afterok:", "afterany:", "afternotok:")


def with_parents(request: dict[str, Any], dice: random.Random, others: Sequence[str]) -> dict[str, Any]:
    """A third of the requests wait for one or two others, submitted already or not."""
    if not others or dice.random() > 1 / 3:
        return request
    parents = dice.sample(others, min(len(others), dice.choice([1, 1, 2])))
    value = " ".join(f"{dice.choice(CONDITIONS)}{parent}" for parent in parents)
    tags = [*request["Tags"], {"Key": "trainmaster:after", "Value": value}]
    if dice.random() < 0.2:
        tags.append({"Key": "trainmaster:after-failed", "Value": "hold"})
    return {**request, "Tags": tags}


def roomy(document: dict[str, Any]) -> dict[str, Any]:
    """The same with room for each job, and without budgets, which some jobs exceed for ever."""
    pool = {**document["pools"][0], "capacity": {A: 3, B: 2}, "spot_capacity": {A: 2}}
    budgets = [team["budget"] for team in document.get("teams", []) if "budget" in team]
    if any(budget["at_limit"] == "spot" for budget in budgets):
        pool.pop("quotas", None)  # they did not bind what these budgets had run as spot
    teams = [
        {key: value for key, value in team.items() if key != "budget"} for team in document.get("teams", [])
    ]
    return {**document, "pools": [pool], **({"teams": teams} if teams else {})}
