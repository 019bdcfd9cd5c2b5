import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.training.configs import CheckpointConfig, Compute, OutputDataConfig, SourceCode
from sagemaker.train import ModelTrainer
from trainmaster_client.trainer import queue, use_launcher

bucket = "sagemaker-us-east-1-123456789012"
trainer = ModelTrainer(
    sagemaker_session=Session(boto3.Session(), default_bucket=bucket),
    role="arn:aws:iam::123456789012:role/trainmaster-local-training",
    training_image="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312",
    source_code=SourceCode(source_dir="training", entry_script="train.py"),
    compute=Compute(instance_type="ml.m5.xlarge", instance_count=1),
    output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/models"),
    checkpoint_config=CheckpointConfig(s3_uri=f"s3://{bucket}/checkpoints/queued"),
    hyperparameters={"steps": 20},
    base_job_name="queued",
)
use_launcher(trainer)
queue(trainer, priority=5, retries=2)
trainer.train()
