"""What a program of plain boto3 sees of jobs of the queue, as JSON; run by a Python with some boto3 or other.

python boto3_program.py PREFIX, in the environment that the twin prints. All names begin with PREFIX and are
written without it, so that what two programs see can be compared.
"""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import botocore
from botocore.exceptions import ClientError
from trainmaster_client.hook import install

LOGS = METRICS = "/aws/sagemaker/TrainingJobs"
QUICK = {"Delay": 1, "MaxAttempts": 120}
TRAINS = "echo loss=3.5; echo begun; sleep 2; echo done"
Seen = dict[str, Any]


def request(name: str, command: str, **changes: Any) -> Seen:
    algorithm = {
        "TrainingInputMode": "File",
        "TrainingImage": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312",
        "ContainerEntrypoint": ["sh", "-c", command],
        "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
    }
    return {
        "TrainingJobName": name,
        "RoleArn": os.environ["TRAINMASTER_ROLE"],
        "AlgorithmSpecification": algorithm,
        "OutputDataConfig": {"S3OutputPath": f"s3://{os.environ['TRAINMASTER_BUCKET']}/out"},
        "ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "Tags": [{"Key": "priority", "Value": "3"}],
        **changes,
    }


def refused(call: Any, **params: Any) -> list[Any]:
    """Code, status and class of the error."""
    try:
        call(**params)
    except ClientError as error:
        metadata = error.response["ResponseMetadata"]
        return [error.response["Error"]["Code"], metadata["HTTPStatusCode"], type(error).__name__]
    return ["no error"]


def described(sagemaker: Any, name: str) -> list[str]:
    answer = sagemaker.describe_training_job(TrainingJobName=name)
    return [answer["TrainingJobStatus"], answer["SecondaryStatus"], answer["TrainingJobArn"]]


def submitted(sagemaker: Any, first: str, second: str) -> Seen:
    """The second has to wait for the first, and is stopped."""
    made = sagemaker.create_training_job(**request(first, TRAINS))
    sagemaker.create_training_job(**request(second, "true"))
    waiting = described(sagemaker, second)
    sagemaker.stop_training_job(TrainingJobName=second)
    stopped = sagemaker.get_waiter("training_job_completed_or_stopped")
    stopped.wait(TrainingJobName=second, WaiterConfig=QUICK)
    return {
        "created": made["TrainingJobArn"],
        "again": sagemaker.create_training_job(**request(first, TRAINS))["TrainingJobArn"],
        "taken": refused(sagemaker.create_training_job, **request(first, "true")),
        "waiting": waiting,
        "stopped": described(sagemaker, second),
        "stopped twice": refused(sagemaker.stop_training_job, TrainingJobName=second),
        "tags": sagemaker.list_tags(ResourceArn=made["TrainingJobArn"])["Tags"],
        "invalid": refused(
            sagemaker.create_training_job, **request(second, "true", Tags=[{"Key": "priority", "Value": "x"}])
        ),
        "unknown": refused(sagemaker.describe_training_job, TrainingJobName=f"{first}-never"),
    }


def completed(sagemaker: Any, name: str) -> Seen:
    sagemaker.get_waiter("training_job_completed_or_stopped").wait(TrainingJobName=name, WaiterConfig=QUICK)
    answer = sagemaker.describe_training_job(TrainingJobName=name)
    steps = [one["Status"] for one in answer["SecondaryStatusTransitions"]]
    final = [(one["MetricName"], one["Value"]) for one in answer["FinalMetricDataList"]]
    return {"completed": described(sagemaker, name), "steps": steps, "final": final}


def lines(name: str) -> list[str]:
    logs = boto3.client("logs")
    streams = logs.describe_log_streams(logGroupName=LOGS, logStreamNamePrefix=f"{name}/")["logStreams"]
    (stream,) = [one["logStreamName"] for one in streams]
    page = logs.get_log_events(logGroupName=LOGS, logStreamName=stream, startFromHead=True)
    return [one["message"] for one in page["events"]]


def measured(name: str) -> Seen:
    cloudwatch = boto3.client("cloudwatch")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    span: Any = {"StartTime": now - timedelta(hours=1), "EndTime": now + timedelta(minutes=1)}
    metric: Any = {
        "Namespace": METRICS,
        "MetricName": "loss",
        "Dimensions": [{"Name": "TrainingJobName", "Value": name}],
    }
    statistics = cloudwatch.get_metric_statistics(**metric, **span, Period=60, Statistics=["Average"])
    query: Any = {"Id": "loss", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Average"}}
    data = cloudwatch.get_metric_data(MetricDataQueries=[query], **span)["MetricDataResults"]
    return {
        "statistics": [point["Average"] for point in statistics["Datapoints"]],
        "data": [[one["Id"], one["Label"], one["Values"]] for one in data],
    }


def main(prefix: str) -> None:
    install()
    sagemaker: Any = boto3.client("sagemaker")
    first, second = f"{prefix}-first", f"{prefix}-second"
    seen = submitted(sagemaker, first, second) | completed(sagemaker, first)
    seen |= {"lines": lines(first)} | measured(first)
    text = json.dumps(seen).replace(f"{prefix}-", "")
    sys.stdout.write(json.dumps({"botocore": botocore.__version__, "seen": json.loads(text)}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
