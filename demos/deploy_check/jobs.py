"""The four jobs: containers that wait for orders, so that the order of the scene does not hang on timing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demos.deploy_check import container
from demos.deploy_check.stack import BUCKET, ROLE_ARN

Document = dict[str, Any]

INSTANCE_TYPE = "ml.g5.xlarge"
"""Instance type of the jobs: it has a GPU, so that each gets an alarm."""
CAPACITY = 2
POLICY = {
    "version": 1,
    "pools": [{"name": "gpu", "capacity": {INSTANCE_TYPE: CAPACITY}}],
    "idle": {"gpu_below_percent": 1, "for": "15m", "period": "5m", "then": "stop", "warn_first": "10m"},
}
_IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedJob:
    name: str
    priority: int

    @property
    def checkpoints(self) -> str:
        return f"s3://{BUCKET}/checkpoints/{self.name}"

    def request(self, orders: Path) -> Document:
        """Return a CreateTrainingJob request; ``orders`` is the folder of this job."""
        return {
            "TrainingJobName": self.name,
            "RoleArn": ROLE_ARN,
            "AlgorithmSpecification": {
                "TrainingImage": _IMAGE,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": ["python", container.__file__, str(orders)],
            },
            "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
            "CheckpointConfig": {"S3Uri": self.checkpoints},
            "ResourceConfig": {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 10},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            "Tags": [{"Key": "priority", "Value": str(self.priority)}],
        }


JOB1 = CheckedJob(name="job1", priority=1)
JOB2 = CheckedJob(name="job2", priority=2)
JOB3 = CheckedJob(name="job3", priority=1)
JOB4 = CheckedJob(name="job4", priority=3)
