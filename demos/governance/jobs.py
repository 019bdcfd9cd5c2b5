"""The policy of the demo, and the requests of its jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demos.governance import container

Document = dict[str, Any]

MANY_GPUS = "ml.g5.12xlarge"
ONE_GPU = "ml.g5.xlarge"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312"

IDLE_MINUTES = 15
WARN_MINUTES = 10
MIN_RUNTIME_HOURS = 2
MAX_INTERRUPTIONS = 3
_DAY_SECONDS = 86_400

RULES: Document = {
    "required_tags": {"mode": "enforce", "tags": {"model_name": {}}},
    "max_runtime": "3d",
}
POLICY: Document = {
    "version": 1,
    "pools": [
        {
            "name": "gpu",
            "capacity": {MANY_GPUS: 6, ONE_GPU: 2},
            "spot_capacity": {ONE_GPU: 1},
        }
    ],
    "rules": RULES,
    "unmanaged_jobs": {"then": "adopt"},
    "idle": {
        "gpu_below_percent": 1,
        "for": f"{IDLE_MINUTES}m",
        "period": "5m",
        "then": "stop",
        "warn_first": f"{WARN_MINUTES}m",
    },
    "recovery": {"min_runtime": f"{MIN_RUNTIME_HOURS}h"},
    "spot": {"max_interruptions": MAX_INTERRUPTIONS},
}
WITHOUT_POOLS: Document = {"version": 1, "rules": RULES, "unmanaged_jobs": {"then": "stop"}}

TAGGED = {"model_name": "tiny"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoJob:
    """A training job that waits for orders."""

    name: str
    instance_type: str = ONE_GPU
    hosts: int = 1
    tags: Mapping[str, str]
    max_runtime_seconds: int = _DAY_SECONDS
    is_spot: bool = False
    code: str | None = None
    """Program that its container runs; None makes it wait for orders."""

    def request(self, ready: Mapping[str, str], orders: Path) -> Document:
        """Return a CreateTrainingJob request; ``orders`` is the folder of this job."""
        stopping = {"MaxRuntimeInSeconds": self.max_runtime_seconds}
        if self.is_spot:
            stopping["MaxWaitTimeInSeconds"] = self.max_runtime_seconds + _DAY_SECONDS
        return {
            "TrainingJobName": self.name,
            "RoleArn": ready["role_arn"],
            "AlgorithmSpecification": {
                "TrainingImage": IMAGE,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": self._command(orders),
            },
            "OutputDataConfig": {"S3OutputPath": f"s3://{ready['bucket']}/output"},
            "CheckpointConfig": {"S3Uri": f"s3://{ready['bucket']}/checkpoints/{self.name}"},
            "ResourceConfig": {
                "InstanceType": self.instance_type,
                "InstanceCount": self.hosts,
                "VolumeSizeInGB": 10,
            },
            "StoppingCondition": stopping,
            "EnableManagedSpotTraining": self.is_spot,
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
        }

    def _command(self, orders: Path) -> list[str]:
        if self.code is not None:
            return ["python", "-c", self.code]
        return ["python", container.__file__, str(orders)]


UNTAGGED = DemoJob(name="untagged", tags={}, max_runtime_seconds=4 * _DAY_SECONDS)
PLAIN = DemoJob(name="plain", instance_type=MANY_GPUS, hosts=2, tags=TAGGED)
STALLED = DemoJob(name="stalled", instance_type=MANY_GPUS, tags=TAGGED)
BUSY = DemoJob(name="busy", instance_type=MANY_GPUS, tags=TAGGED)
ONE_HOST_BUSY = DemoJob(name="one-host-busy", instance_type=MANY_GPUS, hosts=2, tags=TAGGED)
BUG = DemoJob(name="bug", tags=TAGGED, code="settings = {}; print(settings['learning_rate'])")
SPOT = DemoJob(name="spot", tags=TAGGED, is_spot=True)
LATE = DemoJob(name="untagged-late", tags={})

SUBMITTED = (STALLED, BUSY, ONE_HOST_BUSY, BUG, SPOT)
"""Jobs that go through the queue."""
GOVERNED = (PLAIN, *SUBMITTED)
"""Jobs that end up in the ledger."""
