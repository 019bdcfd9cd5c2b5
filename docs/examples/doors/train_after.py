import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, OutputDataConfig, SourceCode
from trainmaster_client.hook import install

boto_session = boto3.Session()
install(boto_session)
trainer = ModelTrainer(
    sagemaker_session=Session(boto_session, default_bucket="sagemaker-us-east-1-123456789012"),
    role="arn:aws:iam::123456789012:role/trainmaster-local-training",
    training_image="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312",
    source_code=SourceCode(source_dir="training", entry_script="train.py"),
    compute=Compute(instance_type="ml.m5.xlarge", instance_count=1),
    output_data_config=OutputDataConfig(s3_output_path="s3://sagemaker-us-east-1-123456789012/models"),
    hyperparameters={"steps": 20},
)
trainer.train()
