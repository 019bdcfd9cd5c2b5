"""Reads from MiniStack what the deployed stack does: logs, dead letters, items, alarms."""

import re
from typing import TYPE_CHECKING

from demos.deployed.emulated_stack import STACK
from demos.stage.evidence import Document, group_lines

if TYPE_CHECKING:
    from boto3 import Session

    from demos.deployed.emulated_stack import Deployment

FUNCTIONS = ("api", "schedule", "on-training-job-event", "on-idle-alarm", "reconcile", "queue-widget")
DEAD_LETTER_QUEUES = tuple(
    f"{name}DeadLetterQueue" for name in ("Doorbell", "OnTrainingJobEvent", "OnIdleAlarm", "Reconcile")
)
_REFUSED = "is not authorized to perform"
_RUN = re.compile(r"REPORT RequestId: ")
_ERROR = re.compile(r'"level":\s*"(ERROR|CRITICAL)"|^Traceback \(most recent call last\)', re.MULTILINE)


def function_lines(session: "Session", function: str) -> list[str]:
    """Return everything the function has logged."""
    return group_lines(session.client("logs"), f"/aws/lambda/{STACK}-{function}")


def runs_of(lines: list[str]) -> int:
    """Count the runs of the function, by the lines that Lambda itself writes."""
    return sum(bool(_RUN.search(line)) for line in lines)


def errors_in(lines: list[str]) -> list[str]:
    return [line for line in lines if _ERROR.search(line)]


def refused_in(lines: list[str]) -> list[str]:
    """Calls of the function that its role does not allow, whatever became of them."""
    return [line for line in lines if _REFUSED in line]


def report_of(session: "Session", function: str) -> Document:
    """Return the runs of a function, its errors, and the calls that its role did not allow."""
    lines = function_lines(session, function)
    return {"runs": runs_of(lines), "errors": errors_in(lines), "refused": refused_in(lines)}


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


def kept(session: "Session", deployment: "Deployment") -> Document:
    """Return properties that template.yaml sets, as their services report them; None if one is gone.

    MiniStack may drop them without a word: they are facts for the report, not checks.
    """
    return {**_api(session, deployment), **_table(session, deployment), **_topic(session, deployment)}


def _api(session: "Session", deployment: "Deployment") -> Document:
    gateway, api_id = session.client("apigateway"), deployment.name_of("Api")
    api = gateway.get_rest_api(restApiId=api_id)
    stage = gateway.get_stage(restApiId=api_id, stageName="prod")
    return {
        "api_endpoint_types": api.get("endpointConfiguration", {}).get("types"),
        "api_resource_policy": api.get("policy"),
        "api_access_log": stage.get("accessLogSettings") or None,
        "api_throttling": stage["methodSettings"]["*/*"].get("throttlingRateLimit"),
    }


def _table(session: "Session", deployment: "Deployment") -> Document:
    dynamodb, name = session.client("dynamodb"), deployment.name_of("Table")
    table = dynamodb.describe_table(TableName=name)["Table"]
    backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    return {
        "table_time_to_live": dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"],
        "table_point_in_time_recovery": backups["PointInTimeRecoveryDescription"],
        "table_encryption": table.get("SSEDescription"),
        "table_deletion_protection": table.get("DeletionProtectionEnabled"),
    }


def _topic(session: "Session", deployment: "Deployment") -> Document:
    topic = session.client("sns").get_topic_attributes(TopicArn=deployment.name_of("AlarmTopic"))
    return {"topic_key": topic["Attributes"].get("KmsMasterKeyId")}
