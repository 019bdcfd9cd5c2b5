from sagemaker.pytorch import PyTorch
from trainmaster_client.session import QueueTrainingJobSession

estimator = PyTorch(
    entry_point="train.py",
    source_dir="training",
    framework_version="2.8.0",
    py_version="py312",
    role="arn:aws:iam::123456789012:role/trainmaster-local-training",
    instance_type="ml.m5.xlarge",
    instance_count=1,
    hyperparameters={"steps": 20},
    tags=[{"Key": "priority", "Value": "5"}],
    sagemaker_session=QueueTrainingJobSession(),
)
estimator.fit()
