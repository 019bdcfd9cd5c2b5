"""Valid CreateTrainingJob bodies; a test says only what it changes."""

import json
from collections.abc import Iterable
from typing import Any

from trainmaster.core.errors import FieldError
from trainmaster.core.request.strict_json import parse_object


def body(**changes: Any) -> dict[str, Any]:
    """A complete request with fields replaced; ``None`` leaves the field out."""
    whole = {
        "TrainingJobName": "job1-2026-01-01",
        "RoleArn": "arn:aws:iam::111122223333:role/vision-training",
        "AlgorithmSpecification": {
            "TrainingImage": "registry.example/pytorch:2.8",
            "TrainingInputMode": "File",
        },
        "OutputDataConfig": {"S3OutputPath": "s3://vision-data/out"},
        "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "HyperParameters": {"epochs": "3", "sagemaker_program": '"train.py"'},
        "Environment": {"LOG_LEVEL": "info"},
        "Tags": tags(priority="3"),
    }
    return {name: value for name, value in (whole | changes).items() if value is not None}


def tags(**pairs: str) -> list[dict[str, str]]:
    return tag_list(pairs)


def tag_list(pairs: dict[str, str]) -> list[dict[str, str]]:
    """For keys that are no Python names."""
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


def resources(**changes: Any) -> dict[str, Any]:
    """A body with another ResourceConfig."""
    return body(ResourceConfig=changes)


def spot(*, run: int = 3600, wait: int | None = 7200) -> dict[str, Any]:
    stopping = {"MaxRuntimeInSeconds": run, "MaxWaitTimeInSeconds": wait}
    kept = {name: value for name, value in stopping.items() if value is not None}
    return body(EnableManagedSpotTraining=True, StoppingCondition=kept)


def parsed(text: str | None) -> dict[str, Any]:
    """As the API reads it from a request with nothing odd about it."""
    return parse_object(text, base64=False, content_type="application/json")


def sent(whole: object) -> dict[str, Any]:
    return parsed(json.dumps(whole))


def fields(errors: Iterable[FieldError]) -> list[str]:
    return [error.field for error in errors]
