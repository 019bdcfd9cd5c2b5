from sagemaker.pytorch import PyTorch
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.session import QueueTrainingJobSession
from training.metrics import METRIC_DEFINITIONS

estimator = PyTorch(
    base_job_name="pile-7b",
    source_dir="training",
    entry_point="train.py",
    container_entry_point=LAUNCHER,
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch:2.13-cu133-amzn2023-sagemaker",
    role="arn:aws:iam::111122223333:role/training",
    instance_type="ml.p5.48xlarge",
    instance_count=8,
    volume_size=200,
    max_run=5 * 24 * 3600,
    subnets=["subnet-0a1b2c3d"],
    security_group_ids=["sg-0a1b2c3d"],
    output_path="s3://my-bucket/models",
    checkpoint_s3_uri="s3://my-bucket/status/pile-7b",
    hyperparameters={
        "preset": "llama2-7b",
        "data": "s3://my-bucket/corpora/pile/train",
        "checkpoint_dir": "s3://my-bucket/checkpoints/pile-7b",
        "checkpoint_keep_every": 10000,
        "strategy": "hybrid_shard",
        "activation_checkpointing": "selective",
        "compile": "inductor",
        "batch_size": 1024,
        "gradient_accumulation_steps": 8,
        "steps": 240000,
        "lr": 3e-4,
        "warmup_steps": 2000,
        "seed": 1,
        "log_every": 10,
        "eval_data": "s3://my-bucket/corpora/pile/validation",
        "eval_every": 1000,
    },
    metric_definitions=METRIC_DEFINITIONS,
    tags=[
        {"Key": "priority", "Value": "10"},
        {"Key": "trainmaster:retries", "Value": "5"},
        {"Key": "trainmaster:alternatives", "Value": "ml.p5.48xlarge=8 ml.p5.48xlarge=4"},
    ],
    sagemaker_session=QueueTrainingJobSession(),
)
estimator.fit(wait=False)
