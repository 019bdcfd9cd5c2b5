import datetime as dt

from airflow import DAG
from trainmaster_client.airflow import TrainmasterTrainingOperator

START = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
BUCKET = "s3://sagemaker-us-east-1-123456789012"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312"

with DAG("nightly", start_date=START, schedule="@daily", catchup=False) as dag:
    TrainmasterTrainingOperator(
        task_id="train",
        deferrable=True,
        retries=2,
        config={
            "TrainingJobName": "nightly-{{ ds_nodash }}",
            "RoleArn": "arn:aws:iam::123456789012:role/training",
            "AlgorithmSpecification": {
                "TrainingImage": IMAGE,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": ["python", "-c", "print('training')"],
            },
            "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 100},
            "OutputDataConfig": {"S3OutputPath": f"{BUCKET}/output"},
            "CheckpointConfig": {"S3Uri": BUCKET + "/checkpoints/{{ ds_nodash }}"},
            "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
            "Tags": [{"Key": "priority", "Value": "5"}],
        },
    )
