"""The AWS CLI as a user types it: what it saw of a job from its wait to its end, as JSON."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

AWS = os.environ["AWS_CLI"]
LOOK_SECONDS = 1.0
"""Its own waiter looks every two minutes."""


def aws(*arguments: str) -> Any:
    command = [AWS, "sagemaker", *arguments, "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    return json.loads(done.stdout or "{}")


def status(job: str) -> list[str]:
    seen = aws("describe-training-job", "--training-job-name", job)
    return [seen["TrainingJobStatus"], seen["SecondaryStatus"]]


def ended(job: str) -> list[str]:
    while (seen := status(job))[0] in {"InProgress", "Stopping"}:
        time.sleep(LOOK_SECONDS)
    return seen


def create(request: dict[str, Any]) -> Any:
    return aws("create-training-job", "--cli-input-json", json.dumps(request))


def main(request: dict[str, Any], end_of_the_other: Path) -> dict[str, Any]:
    name = request["TrainingJobName"]
    arn = create(request)["TrainingJobArn"]
    saw: dict[str, Any] = {"waiting": status(name)}
    saw["same_arn"] = create(request)["TrainingJobArn"] == arn
    saw["refused"] = (
        "ResourceInUse" if "(ResourceInUse)" in create({**request, "HyperParameters": {"o": "1"}}) else ""
    )
    listed = aws("list-training-jobs", "--name-contains", name)["TrainingJobSummaries"]
    saw["listed"] = [one["TrainingJobName"] for one in listed]
    end_of_the_other.touch()
    saw["ended"] = ended(name)
    long = {**request, "TrainingJobName": f"{name}-long"}
    long["AlgorithmSpecification"] = {
        **request["AlgorithmSpecification"],
        "ContainerEntrypoint": ["sleep", "600"],
    }
    create(long)
    aws("stop-training-job", "--training-job-name", long["TrainingJobName"])
    return {**saw, "stopped": ended(long["TrainingJobName"])}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]))))
