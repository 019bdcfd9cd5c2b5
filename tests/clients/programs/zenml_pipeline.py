"""A pipeline of ZenML, on its local orchestrator, whose step trains on SageMaker."""

import os

import boto3
from zenml import pipeline, step

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"


@step(enable_cache=False)  # type: ignore[untyped-decorator]  # it has no types
def train(name: str) -> str:
    client = boto3.client("sagemaker")
    client.create_training_job(
        TrainingJobName=name,
        RoleArn=os.environ["TRAINMASTER_ROLE"],
        AlgorithmSpecification={
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python", "-c", "print('trained')"],
        },
        OutputDataConfig={"S3OutputPath": f"s3://{os.environ['TRAINMASTER_BUCKET']}/output"},
        ResourceConfig={"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 3600},
    )
    waiter = client.get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    return str(client.describe_training_job(TrainingJobName=name)["TrainingJobStatus"])


@pipeline  # type: ignore[untyped-decorator]
def training() -> None:
    train("zenml-step")


if __name__ == "__main__":
    run = training()
    print(f"the job is {run.steps['train'].output.load()}")
