"""boto3 as a user writes it, of whatever version: what it saw of a job from its wait to its end, as JSON."""

import json
import sys
from pathlib import Path
from typing import Any

import boto3

QUICK = {"Delay": 1, "MaxAttempts": 120}


def main(request: dict[str, Any], end_of_the_other: Path) -> dict[str, Any]:
    client: Any = boto3.client("sagemaker")
    name = request["TrainingJobName"]
    waiter = client.get_waiter("training_job_completed_or_stopped")

    def status(job: str) -> list[str]:
        seen = client.describe_training_job(TrainingJobName=job)
        return [seen["TrainingJobStatus"], seen["SecondaryStatus"]]

    first = client.create_training_job(**request)
    saw: dict[str, Any] = {"waiting": status(name)}
    saw["same_arn"] = client.create_training_job(**request)["TrainingJobArn"] == first["TrainingJobArn"]
    try:
        client.create_training_job(**request, HyperParameters={"other": "1"})
    except client.exceptions.ResourceInUse as error:
        saw["refused"] = error.response["Error"]["Code"]
    listed = client.list_training_jobs(NameContains=name)["TrainingJobSummaries"]
    saw["listed"] = [one["TrainingJobName"] for one in listed]
    end_of_the_other.touch()
    waiter.wait(TrainingJobName=name, WaiterConfig=QUICK)
    saw["ended"] = status(name)
    long = {**request, "TrainingJobName": f"{name}-long"}
    long["AlgorithmSpecification"] = {
        **request["AlgorithmSpecification"],
        "ContainerEntrypoint": ["sleep", "600"],
    }
    client.create_training_job(**long)
    client.stop_training_job(TrainingJobName=long["TrainingJobName"])
    waiter.wait(TrainingJobName=long["TrainingJobName"], WaiterConfig=QUICK)
    return {**saw, "stopped": status(long["TrainingJobName"])}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]))))
