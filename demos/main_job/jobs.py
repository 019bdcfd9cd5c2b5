"""The jobs, submitted as any user would: the SageMaker SDK and one session class."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sagemaker.estimator import Estimator
from sagemaker.pytorch import PyTorch
from sagemaker.session_settings import SessionSettings
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.session import QueueTrainingJobSession

from demos.stage.job_requests import IMAGE, INSTANCE_TYPE
from demos.stage.twin_stage import Hold
from local.twin_process import TwinProcess
from training.metrics import METRIC_DEFINITIONS

ROOT = Path(__file__).parents[2]
CAPACITY = 2
POLICY = {"version": 1, "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: CAPACITY}}]}
SEED = 7
CHECKPOINT_EVERY = 10
QUIET = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}
"""Opts out of the SDK's telemetry, which would wait for an internet that the twin does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoJob:
    label: str
    priority: int
    steps: int
    hears_sigterm: bool = True
    """Whether launch.py starts it, which passes SIGTERM on; script mode keeps SIGTERM to itself."""

    def hyperparameters(self) -> dict[str, Any]:
        return {
            "preset": "tiny",
            "steps": self.steps,
            "seed": SEED,
            "batch_size": 4,
            "checkpoint_every": CHECKPOINT_EVERY,
        }


JOB1 = DemoJob(label="job1", priority=1, steps=150)
JOB2 = DemoJob(label="job2", priority=2, steps=90)
JOB3 = DemoJob(label="job3", priority=1, steps=15)
JOB4 = DemoJob(label="job4", priority=3, steps=60)
JOBS = (JOB1, JOB2, JOB3, JOB4)
DEAF = DemoJob(label="job5", priority=1, steps=40, hears_sigterm=False)
URGENT_LABEL = "job6"


class Submitter:
    """Submits jobs by one SDK session, as a notebook would hold it."""

    def __init__(self, twin: TwinProcess, folder: Path, precision: str) -> None:
        self._folder, self._precision = folder, precision
        self._role = twin.ready["role_arn"]
        self._bucket = twin.ready["bucket"]
        self._session = QueueTrainingJobSession(
            default_bucket=self._bucket,
            settings=SessionSettings(encrypt_repacked_artifacts=False),
            sagemaker_config=QUIET,
        )

    def fit(self, job: DemoJob) -> str:
        """Call ``estimator.fit()`` and return the name the SDK gave the job."""
        estimator = PyTorch(
            entry_point="train.py",
            source_dir=str(ROOT / "training"),
            container_entry_point=LAUNCHER if job.hears_sigterm else None,
            role=self._role,
            image_uri=IMAGE,
            instance_type=INSTANCE_TYPE,
            instance_count=1,
            hyperparameters=job.hyperparameters()
            | {"precision": self._precision, "hold_file": str(self.hold(job).path)},
            metric_definitions=METRIC_DEFINITIONS,
            checkpoint_s3_uri=self.checkpoints(job),
            base_job_name=job.label,
            max_run=3600,
            disable_profiler=True,
            debugger_hook_config=False,
            tags=[{"Key": "priority", "Value": str(job.priority)}],
            sagemaker_session=self._session,
        )
        estimator.fit(wait=False)
        name: str = estimator.latest_training_job.name
        return name

    def fit_urgent(self) -> str:
        """Submit a job that takes all instances for a moment; return the name the SDK gave it."""
        estimator = Estimator(
            container_entry_point=["true"],
            role=self._role,
            image_uri=IMAGE,
            instance_type=INSTANCE_TYPE,
            instance_count=CAPACITY,
            base_job_name=URGENT_LABEL,
            max_run=3600,
            disable_profiler=True,
            tags=[{"Key": "priority", "Value": "9"}],
            sagemaker_session=self._session,
        )
        estimator.fit(wait=False)
        name: str = estimator.latest_training_job.name
        return name

    def hold(self, job: DemoJob) -> Hold:
        """Give the file by which the story holds this job."""
        return Hold(self._folder, job.label)

    def checkpoints(self, job: DemoJob) -> str:
        return f"s3://{self._bucket}/checkpoints/{job.label}"
