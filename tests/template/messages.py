"""Queues and topics: who may put something in, and how long it is kept."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.template.functions import FUNCTIONS
from tests.template.stack import of_type, without


def _sent_by(principal: Mapping[str, Any], queue: str, source: str = "") -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Principal": principal,
        "Action": "sqs:SendMessage",
        "Resource": f"${{{queue}.Arn}}",
        **({"Condition": {"ArnEquals": {"aws:SourceArn": source}}} if source else {}),
    }


_ROLES = ["${ReconcileFunctionRole.Arn}", "${ReconcileScheduleRole.Arn}"]
DEAD_LETTERS = {
    name: _sent_by(principal, name, *source)
    for name, principal, *source in (
        ("DoorbellDeadLetterQueue", {"Service": "sqs.amazonaws.com"}, "${DoorbellQueue.Arn}"),
        (
            "OnTrainingJobEventDeadLetterQueue",
            {"Service": "events.amazonaws.com"},
            "${OnTrainingJobEventFunctionStateChange.Arn}",
        ),
        ("OnIdleAlarmDeadLetterQueue", {"Service": "sns.amazonaws.com"}, "${AlarmTopic}"),
        ("ReconcileDeadLetterQueue", {"AWS": _ROLES}),
    )
}
_FOURTEEN_DAYS, _ONE_DAY = 1_209_600, 86_400


def wrong_queues(stack: Mapping[str, Any]) -> Iterator[str]:
    """The doorbell and, for each way in, one dead-letter queue, all under the key."""
    expected: dict[str, dict[str, Any]] = {
        name: {"KmsMasterKeyId": "${Key.Arn}", "MessageRetentionPeriod": _FOURTEEN_DAYS}
        for name in DEAD_LETTERS
    }
    expected["ReconcileDeadLetterQueue"]["MessageRetentionPeriod"] = _ONE_DAY
    expected["DoorbellQueue"] = {
        "KmsMasterKeyId": "${Key.Arn}",
        "VisibilityTimeout": 6 * FUNCTIONS["ScheduleFunction"].timeout_seconds,
        "RedrivePolicy": {"deadLetterTargetArn": "${DoorbellDeadLetterQueue.Arn}", "maxReceiveCount": 5},
    }
    if (given := of_type(stack, "AWS::SQS::Queue")) != expected:
        yield f"queues: {given}"


def wrong_queue_policies(stack: Mapping[str, Any]) -> Iterator[str]:
    """A dead-letter queue without a policy deploys cleanly and receives nothing."""
    expected = {
        f"{name}Policy": {
            "Queues": [f"${{{name}}}"],
            "PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        }
        for name, statement in DEAD_LETTERS.items()
    }
    if (given := of_type(stack, "AWS::SQS::QueuePolicy")) != expected:
        yield f"queue policies: {given}"


def _publishers(topic: str, alarms: str) -> dict[str, Any]:
    return {
        "Topics": [f"${{{topic}}}"],
        "PolicyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "cloudwatch.amazonaws.com"},
                    "Action": "sns:Publish",
                    "Resource": f"${{{topic}}}",
                    "Condition": {
                        "StringEquals": {"aws:SourceAccount": "111122223333"},
                        "ArnLike": {
                            "aws:SourceArn": f"arn:aws:cloudwatch:eu-west-1:111122223333:alarm:{alarms}"
                        },
                    },
                }
            ],
        },
    }


def wrong_topics(stack: Mapping[str, Any]) -> Iterator[str]:
    """Only alarms of this stack publish; "the account's root" would let every principal of it do so."""
    topics = {name: without(one, "DisplayName") for name, one in of_type(stack, "AWS::SNS::Topic").items()}
    if topics != {name: {"KmsMasterKeyId": "${Key.Arn}"} for name in ("AlarmTopic", "MailTopic")}:
        yield f"topics: {topics}"
    if (given := of_type(stack, "AWS::SNS::TopicPolicy")) != {
        "AlarmTopicPolicy": _publishers("AlarmTopic", "trainmaster-prod-*"),
        "MailTopicPolicy": _publishers("MailTopic", "operator-prod-*"),
    }:
        yield f"topic policies: {given}"
