"""Trainers of the SDK v3 for the tests, and looks at what became of their jobs."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.resources import TrainingJob
from sagemaker.core.training.configs import CheckpointConfig, Compute, SourceCode
from sagemaker.train import ModelTrainer

from local.twin_process import TwinProcess

T = TypeVar("T")

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"
PATIENCE_SECONDS = 120.0
SCRIPT = """
import os, pathlib, sys, time
name, checkpoint = os.environ["TRAINING_JOB_NAME"], pathlib.Path("/opt/ml/checkpoints/steps")
begin = int(checkpoint.read_text()) if checkpoint.exists() else 0
print(f"{name} from step {begin} with {sys.argv[1:]}", flush=True)
for step in range(begin, int(os.environ.get("STEPS", "1"))):
    time.sleep(0.1)
    checkpoint.write_text(str(step + 1))
if "FAILS" in os.environ:
    raise RuntimeError(os.environ["FAILS"])
pathlib.Path("/opt/ml/model/weights").write_text(name)
print(f"{name} is done", flush=True)
"""


def session_of(twin: TwinProcess, boto_session: boto3.Session | None = None) -> Session:
    """Of the SDK; without a bucket it would ask the real STS for the account."""
    return Session(boto_session or boto3.Session(), default_bucket=twin.ready["bucket"])


def trainer(twin: TwinProcess, folder: Path, name: str, **changes: Any) -> ModelTrainer:
    """``changes``: environment, session, instance_type; else of ModelTrainer itself."""
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    instance_type = changes.pop("instance_type", "ml.m5.xlarge")
    bucket = twin.ready["bucket"]
    given = {
        "training_image": IMAGE,
        "source_code": SourceCode(source_dir=str(folder), entry_script="train.py"),
        "compute": Compute(instance_type=instance_type, instance_count=1),
        "role": twin.ready["role_arn"],
        "hyperparameters": {"epochs": 3},
        "checkpoint_config": CheckpointConfig(s3_uri=f"s3://{bucket}/checkpoints/{name}"),
        "sagemaker_session": changes.pop("session", None) or session_of(twin),
        "base_job_name": name,
    }
    return ModelTrainer(**{**given, **changes})


def job_of(trainer: ModelTrainer) -> TrainingJob:
    found = trainer._latest_training_job
    assert isinstance(found, TrainingJob)
    return found


def eventually(look: Callable[[], T], holds: Callable[[T], bool], *, pause: float = 0.2) -> T:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds(found := look()):
        assert time.monotonic() < deadline, found
        time.sleep(pause)
    return found
