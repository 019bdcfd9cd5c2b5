"""Reads from MiniStack what the deployed stack does: logs, dead letters, items, alarms."""

import re
from typing import TYPE_CHECKING, Any

from demos.deploy_check.stack import STACK

if TYPE_CHECKING:
    from boto3 import Session

Document = dict[str, Any]

FUNCTIONS = ("api", "schedule", "on-training-job-event", "on-idle-alarm", "reconcile", "queue-widget")
DEAD_LETTER_QUEUES = tuple(
    f"{name}DeadLetterQueue" for name in ("Doorbell", "OnTrainingJobEvent", "OnIdleAlarm", "Reconcile")
)
_REFUSED = "is not authorized to perform"
_RUN = re.compile(r"REPORT RequestId: ")
_ERROR = re.compile(r'"level":\s*"(ERROR|CRITICAL)"|^Traceback \(most recent call last\)', re.MULTILINE)


def function_lines(session: "Session", function: str) -> list[str]:
    """Return everything the function has logged."""
    logs = session.client("logs")
    group = f"/aws/lambda/{STACK}-{function}"
    streams = logs.describe_log_streams(logGroupName=group)["logStreams"]
    return [line for stream in streams for line in _stream(logs, group, stream["logStreamName"])]


def _stream(logs: Any, group: str, stream: str) -> list[str]:  # noqa: ANN401  boto3 makes its clients at run time
    lines: list[str] = []
    parameters: Document = {"logGroupName": group, "logStreamName": stream, "startFromHead": True}
    answer = logs.get_log_events(**parameters)
    while answer["events"]:
        lines += [event["message"] for event in answer["events"]]
        answer = logs.get_log_events(**parameters, nextToken=answer["nextForwardToken"])
    return lines


def runs_of(lines: list[str]) -> int:
    """Count the runs of the function, by the lines that Lambda itself writes."""
    return sum(bool(_RUN.search(line)) for line in lines)


def errors_in(lines: list[str]) -> list[str]:
    return [line for line in lines if _ERROR.search(line)]


def refused_in(lines: list[str]) -> list[str]:
    """Calls of the function that its role does not allow, whatever became of them."""
    return [line for line in lines if _REFUSED in line]


def errors_of(session: "Session", function: str) -> list[str]:
    return errors_in(function_lines(session, function))


def messages_in(session: "Session", queue_url: str) -> int:
    attributes = session.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
    return int(attributes["Attributes"]["ApproximateNumberOfMessages"])


def items_in(session: "Session", table: str) -> int:
    return int(session.client("dynamodb").scan(TableName=table, Select="COUNT")["Count"])


def job_alarms(session: "Session") -> list[str]:
    """Names of the alarms that the schedule function made."""
    alarms = session.client("cloudwatch").describe_alarms(AlarmNamePrefix=f"trainmaster-{STACK}-")
    return sorted(alarm["AlarmName"] for alarm in alarms["MetricAlarms"])
