"""The training jobs of the demos, as the CreateTrainingJob requests that submit them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from demos.stage.evidence import Document

INSTANCE_TYPE = "ml.m5.xlarge"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"
GPU_IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312"
_HOUR_SECONDS = 3600
_DAY_SECONDS = 24 * _HOUR_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training job of a story."""

    name: str
    command: Sequence[str]
    image: str = IMAGE
    instance_type: str = INSTANCE_TYPE
    instances: int = 1
    priority: int | None = None
    """Value of the tag ``priority``; None leaves the tag out."""
    tags: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Metric definitions: names and regular expressions."""
    max_runtime_seconds: int = _HOUR_SECONDS
    is_spot: bool = False

    def request(self, place: Mapping[str, str]) -> Document:
        """Return the request; ``place`` has the ``role_arn`` and the ``bucket``, as a twin's ready file."""
        tags = dict(self.tags) | ({} if self.priority is None else {"priority": str(self.priority)})
        stopping = {"MaxRuntimeInSeconds": self.max_runtime_seconds}
        if self.is_spot:
            stopping["MaxWaitTimeInSeconds"] = self.max_runtime_seconds + _DAY_SECONDS
        definitions = [{"Name": name, "Regex": regex} for name, regex in self.metrics.items()]
        return {
            "TrainingJobName": self.name,
            "RoleArn": place["role_arn"],
            "AlgorithmSpecification": {
                "TrainingImage": self.image,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": list(self.command),
                **({"MetricDefinitions": definitions} if definitions else {}),
            },
            "HyperParameters": dict(self.hyperparameters),
            "Environment": dict(self.environment),
            "OutputDataConfig": {"S3OutputPath": f"s3://{place['bucket']}/output"},
            "CheckpointConfig": {"S3Uri": checkpoints(self.name, place)},
            "ResourceConfig": {
                "InstanceType": self.instance_type,
                "InstanceCount": self.instances,
                "VolumeSizeInGB": 10,
            },
            "StoppingCondition": stopping,
            "EnableManagedSpotTraining": self.is_spot,
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }


def checkpoints(name: str, place: Mapping[str, str]) -> str:
    """Return the S3 prefix of a job's checkpoints."""
    return f"s3://{place['bucket']}/checkpoints/{name}"


def one_pool(instances: int, instance_type: str = INSTANCE_TYPE, **keys: object) -> Document:
    """Return a policy of one pool, with further keys of a policy."""
    return {"version": 1, "pools": [{"name": "demo", "capacity": {instance_type: instances}}], **keys}
