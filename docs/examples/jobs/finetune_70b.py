from sagemaker.inputs import TrainingInput
from sagemaker.pytorch import PyTorch
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.session import QueueTrainingJobSession
from training.metrics import METRIC_DEFINITIONS

estimator = PyTorch(
    base_job_name="tickets-70b",
    source_dir="training",
    entry_point="train.py",
    container_entry_point=LAUNCHER,
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch:2.13-cu133-amzn2023-sagemaker",
    role="arn:aws:iam::111122223333:role/training",
    instance_type="ml.p5.48xlarge",
    instance_count=4,
    volume_size=500,
    max_run=3 * 24 * 3600,
    subnets=["subnet-0a1b2c3d"],
    security_group_ids=["sg-0a1b2c3d"],
    output_path="s3://my-bucket/models",
    checkpoint_s3_uri="s3://my-bucket/status/tickets-70b",
    hyperparameters={
        "preset": "llama2-70b",
        "init_from": "channel:weights",
        "data": "s3://my-bucket/corpora/support-tickets/train",
        "document_mask": True,
        "checkpoint_dir": "s3://my-bucket/checkpoints/tickets-70b",
        "batch_size": 64,
        "gradient_accumulation_steps": 2,
        "activation_checkpointing": "full",
        "compile": "inductor",
        "steps": 1000,
        "lr": 1e-5,
        "warmup_steps": 50,
        "seed": 1,
    },
    metric_definitions=METRIC_DEFINITIONS,
    tags=[{"Key": "priority", "Value": "5"}],
    sagemaker_session=QueueTrainingJobSession(),
)
weights = TrainingInput("s3://my-bucket/weights/llama-2-70b/", input_mode="FastFile")
estimator.fit({"weights": weights}, wait=False)
