"""AWS's own managed policies that a role of the stack may name (AWS Managed Policy Reference)."""

from collections.abc import Mapping
from typing import Any

_PREFIX = "arn:aws:iam::aws:policy/service-role/"
_LOG_WRITING = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
_LOG_READING = [
    "logs:DescribeLogGroups",
    "logs:DescribeLogStreams",
    "logs:FilterLogEvents",
    "logs:GetLogEvents",
]
_QUEUE_READING = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]


def _allow(actions: list[str]) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}


MANAGED_POLICIES: Mapping[str, Mapping[str, Any]] = {
    _PREFIX + "AmazonAPIGatewayPushToCloudWatchLogs": _allow(_LOG_WRITING + _LOG_READING),
    _PREFIX + "AWSLambdaBasicExecutionRole": _allow(_LOG_WRITING),
    _PREFIX + "AWSLambdaSQSQueueExecutionRole": _allow(_QUEUE_READING + _LOG_WRITING),
}
