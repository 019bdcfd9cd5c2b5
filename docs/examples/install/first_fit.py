import os

from sagemaker.pytorch import PyTorch
from trainmaster_client.session import QueueTrainingJobSession

estimator = PyTorch(
    entry_point="train.py",
    framework_version="2.8.0",
    py_version="py312",
    role=os.environ["TRAINMASTER_ROLE"],
    instance_type="ml.m5.xlarge",
    instance_count=1,
    sagemaker_session=QueueTrainingJobSession(),
)
estimator.fit()
