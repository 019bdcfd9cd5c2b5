"""What comes in from outside: requests of the SDK, proxy events, state changes of SageMaker."""

import json
from typing import Any

from tests.builders import A
from tests.integration.sagemaker_stub import SageMakerStub

ACCOUNT = "123456789012"
USER = f"arn:aws:iam::{ACCOUNT}:user/ada"


def request(name: str, *, priority: int = 0, **changes: Any) -> dict[str, Any]:
    """A CreateTrainingJob request as the SDK would send it."""
    body: dict[str, Any] = {
        "TrainingJobName": name,
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/training",
        "AlgorithmSpecification": {
            "TrainingImage": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/train:1",
            "TrainingInputMode": "File",
        },
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
        "ResourceConfig": {"InstanceType": A, "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "CheckpointConfig": {"S3Uri": f"s3://bucket/checkpoints/{name}"},
        "Tags": [{"Key": "priority", "Value": str(priority)}],
    }
    return body | changes


def proxy_event(
    method: str, path: str, body: Any = None, *, query: dict[str, str] | None = None, user: str | None = USER
) -> dict[str, Any]:
    """What a REST API hands to a Lambda proxy integration."""
    return {
        "resource": path,
        "path": path,
        "httpMethod": method,
        "headers": {"Content-Type": "application/json"},
        "multiValueHeaders": {"Content-Type": ["application/json"]},
        "queryStringParameters": query,
        "multiValueQueryStringParameters": {key: [value] for key, value in (query or {}).items()} or None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "accountId": ACCOUNT,
            "stage": "prod",
            "path": f"/prod{path}",
            "resourcePath": path,
            "httpMethod": method,
            "requestId": "request",
            "identity": {
                "userArn": user,
                "accountId": ACCOUNT,
                "caller": "caller",
                "user": "user",
                "sourceIp": "10.0.0.1",
            },
        },
        "body": body if body is None or isinstance(body, str) else json.dumps(body),
        "isBase64Encoded": False,
    }


def state_change(name: str, sagemaker: SageMakerStub) -> dict[str, Any]:
    job = sagemaker.jobs[name]
    return {
        "source": "aws.sagemaker",
        "detail-type": "SageMaker Training Job State Change",
        "detail": {
            "TrainingJobName": name,
            "TrainingJobStatus": job.status,
            "SecondaryStatus": job.secondary,
            "Tags": {tag["Key"]: tag["Value"] for tag in job.request.get("Tags", [])},
        },
    }
