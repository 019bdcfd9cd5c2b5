"""The CreateTrainingJob requests that several demos make: what is the same in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # programs of other environments read the names below
    from collections.abc import Sequence

    from demos.stage.evidence import Document
    from local.twin_process import TwinProcess

INSTANCE_TYPE = "ml.m5.xlarge"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"


def request(name: str, twin: TwinProcess, command: Sequence[str], *, instances: int = 1) -> Document:
    return {
        "TrainingJobName": name,
        "RoleArn": twin.ready["role_arn"],
        "AlgorithmSpecification": {
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": list(command),
        },
        "OutputDataConfig": {"S3OutputPath": f"s3://{twin.ready['bucket']}/output"},
        "ResourceConfig": {"InstanceType": INSTANCE_TYPE, "InstanceCount": instances, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }


def urgent_request(name: str, twin: TwinProcess, *, instances: int = 1, priority: int = 9) -> Document:
    """Ask for something that makes the others leave: it holds its instances until it is cancelled."""
    urgent = request(name, twin, ["sleep", "infinity"], instances=instances)
    return urgent | {"Tags": [{"Key": "priority", "Value": str(priority)}]}
