"""A large job, as the tests of its manifests want it."""

from pathlib import Path
from typing import Any

from trainmaster_client.manifests import Manifest, ManifestOptions, manifest, pod_start

START_PROGRAM = Path(pod_start.__file__).read_text(encoding="utf-8")
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.9.1-gpu-py312"


def large_job(**changes: Any) -> dict[str, Any]:
    """Two p5 hosts, a channel in S3, checkpoints, hyperparameters and tags."""
    body: dict[str, Any] = {
        "TrainingJobName": "llama-7b",
        "RoleArn": "arn:aws:iam::123456789012:role/training",
        "AlgorithmSpecification": {
            "TrainingImage": IMAGE,
            "TrainingInputMode": "FastFile",
            "ContainerEntrypoint": ["python3", "/opt/ml/code/launch.py"],
            "ContainerArguments": ["--seed", "1"],
        },
        "HyperParameters": {"preset": '"llama2-7b"', "steps": "1000"},
        "Environment": {"NCCL_DEBUG": "WARN"},
        "InputDataConfig": [
            {
                "ChannelName": "train",
                "InputMode": "FastFile",
                "DataSource": {
                    "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://corpora/pile/train/"}
                },
            }
        ],
        "CheckpointConfig": {"S3Uri": "s3://work/checkpoints/llama-7b"},
        "OutputDataConfig": {"S3OutputPath": "s3://work/models"},
        "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "VolumeSizeInGB": 200},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
        "Tags": [{"Key": "priority", "Value": "10"}, {"Key": "team", "Value": "language"}],
    }
    return body | changes


def made(body: dict[str, Any], **options: Any) -> Manifest:
    return manifest(body, ManifestOptions(**options), start_program=START_PROGRAM)
