"""A flow of Metaflow whose step trains on SageMaker, in a process that Metaflow starts by itself."""

import os

import boto3
from metaflow import FlowSpec, step

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"


class TrainingFlow(FlowSpec):  # type: ignore[misc]  # it has no types
    @step
    def start(self):
        name = "metaflow-step"
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
        self.status = client.describe_training_job(TrainingJobName=name)["TrainingJobStatus"]
        self.next(self.end)

    @step
    def end(self):
        print(f"the job is {self.status}")


if __name__ == "__main__":
    TrainingFlow()
