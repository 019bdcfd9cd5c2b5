"""Queues training jobs, each NAME:TEAM:PRIORITY:STEPS, with the SageMaker SDK."""

import logging
import os
import sys

from sagemaker.pytorch import PyTorch
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.session import QueueTrainingJobSession

logging.disable(logging.INFO)  # the SDK logs a dozen lines for each job
session = QueueTrainingJobSession()
for job in sys.argv[1:]:
    name, team, priority, steps = job.split(":")
    estimator = PyTorch(
        entry_point="train.py",
        source_dir="training",
        container_entry_point=LAUNCHER,  # passes SIGTERM on: the script saves before it stops
        framework_version="2.8.0",
        py_version="py312",
        role=os.environ["TRAINMASTER_ROLE"],
        instance_type="ml.m5.xlarge",
        instance_count=1,
        hyperparameters={"steps": int(steps), "checkpoint_every": 20, "min_step_seconds": 0.5},
        checkpoint_s3_uri=f"s3://{os.environ['TRAINMASTER_BUCKET']}/checkpoints/{name}",
        max_run=1200,
        tags=[{"Key": "team", "Value": team}, {"Key": "priority", "Value": priority}],
        sagemaker_session=session,
    )
    estimator.fit(job_name=name, wait=False)
