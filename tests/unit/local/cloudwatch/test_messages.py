"""What an alarm tells a topic, and which topics let it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from local.cloudwatch.alarms import Alarm, State, Transition
from local.cloudwatch.definitions import watched
from local.cloudwatch.evaluation import StateValue
from local.cloudwatch.messages import message, subject
from local.cloudwatch.rules import parse
from local.deployment.events.alarm_actions import may_publish

NOON = datetime(2026, 1, 1, 12, 0, 0, 7000, tzinfo=UTC)
PREFIX = "arn:aws:cloudwatch:us-east-1:111122223333:alarm:"
TOPIC = "arn:aws:sns:us-east-1:111122223333:topic"
COMPARED = {"EvaluationPeriods": 3, "Threshold": 1.0, "ComparisonOperator": "LessThanThreshold"}
HOST: dict[str, Any] = {
    "Namespace": "/aws/sagemaker/TrainingJobs",
    "MetricName": "GPUUtilization",
    "Dimensions": [{"Name": "Host", "Value": "j/algo-1"}],
}


def alarm(name: str = "idle", **settings: Any) -> Alarm:
    is_composite = "AlarmRule" in settings
    whole = settings if is_composite else COMPARED | settings
    return Alarm(
        name=name,
        arn=f"{PREFIX}{name}",
        settings={"AlarmName": name, "AlarmActions": [TOPIC], **whole},
        configured_at=NOON,
        state=State(value=StateValue.ALARM, reason="because", since=NOON),
        definition=parse(settings["AlarmRule"]) if is_composite else watched(whole),
    )


def told(of: Alarm, *children: Alarm) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(message(Transition(alarm=of, before=StateValue.OK, children=children)))
    return found


def test_a_message_says_which_alarm_went_where_and_when() -> None:
    found = told(alarm(AlarmDescription="GPUs", Statistic="Average", Period=300, **HOST))
    assert found == {
        "AlarmName": "idle",
        "AlarmDescription": "GPUs",
        "AWSAccountId": "111122223333",
        "AlarmConfigurationUpdatedTimestamp": "2026-01-01T12:00:00.007+0000",
        "NewStateValue": "ALARM",
        "NewStateReason": "because",
        "StateChangeTime": "2026-01-01T12:00:00.007+0000",
        "Region": "US East (N. Virginia)",
        "AlarmArn": f"{PREFIX}idle",
        "OldStateValue": "OK",
        "OKActions": [],
        "AlarmActions": [TOPIC],
        "InsufficientDataActions": [],
        "Trigger": {
            "MetricName": "GPUUtilization",
            "Namespace": "/aws/sagemaker/TrainingJobs",
            "StatisticType": "Statistic",
            "Statistic": "AVERAGE",
            "Unit": None,
            "Dimensions": [{"value": "j/algo-1", "name": "Host"}],
            "Period": 300,
            "EvaluationPeriods": 3,
            "DatapointsToAlarm": 3,
            "ComparisonOperator": "LessThanThreshold",
            "Threshold": 1.0,
            "TreatMissingData": "missing",
            "EvaluateLowSampleCountPercentile": "",
        },
    }


def test_metric_math_is_told_with_its_queries() -> None:
    stat = {"Metric": HOST, "Period": 300, "Stat": "Average"}
    metrics = [
        {"Id": "m0", "MetricStat": stat, "ReturnData": False},
        {"Id": "e", "Expression": "m0 / 4", "Label": "busy"},
    ]
    trigger = told(alarm(Metrics=metrics))["Trigger"]
    metric = HOST | {"Dimensions": [{"value": "j/algo-1", "name": "Host"}]}
    assert trigger["Metrics"] == [
        {"Id": "m0", "MetricStat": stat | {"Metric": metric}, "ReturnData": False},
        {"Id": "e", "Expression": "m0 / 4", "Label": "busy", "ReturnData": True},
    ]


def test_a_composite_alarm_is_told_with_its_rule_and_children() -> None:
    child = alarm("part.0", Statistic="Average", Period=300, **HOST)
    found = told(alarm(AlarmRule='ALARM("part.0")'), child)
    assert "Trigger" not in found
    assert found["AlarmRule"] == 'ALARM("part.0")'
    assert found["TriggeringChildren"] == [
        {
            "Arn": f"{PREFIX}part.0",
            "State": {"Value": "ALARM", "Timestamp": "2026-01-01T12:00:00.007+0000"},
        }
    ]


def test_the_subject_is_that_of_the_console() -> None:
    idle = alarm(AlarmRule="TRUE")
    assert subject(Transition(alarm=idle, before=StateValue.OK)) == 'ALARM: "idle" in US East (N. Virginia)'


def policy(principal: object, **conditions: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sns:Publish", "Resource": TOPIC}
    return {"Version": "2012-10-17", "Statement": [statement | {"Condition": conditions}]}


CLOUDWATCH = {"Service": "cloudwatch.amazonaws.com"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(policy(CLOUDWATCH), True, id="the service is named"),
        pytest.param(
            policy(CLOUDWATCH, ArnLike={"aws:SourceArn": f"{PREFIX}id*"}), True, id="the alarm's name matches"
        ),
        pytest.param(
            policy(CLOUDWATCH, ArnLike={"aws:SourceArn": f"{PREFIX}operator-*"}),
            False,
            id="only other alarms may",
        ),
        pytest.param(
            policy(CLOUDWATCH, StringEquals={"aws:SourceAccount": "999999999999"}),
            False,
            id="another account's alarms may",
        ),
        pytest.param(policy({"Service": "events.amazonaws.com"}), False, id="another service may"),
        pytest.param(
            policy({"AWS": "*"}, StringEquals={"AWS:SourceOwner": "111122223333"}),
            True,
            id="the policy that a topic is born with",
        ),
        pytest.param(policy({"AWS": "arn:aws:iam::111122223333:root"}), False, id="only the account's users"),
    ],
)
def test_a_topic_hears_only_of_alarms_that_its_policy_lets_publish(
    document: dict[str, Any],
    expected: bool,  # noqa: FBT001
) -> None:
    assert may_publish(document, TOPIC, alarm(AlarmRule="TRUE")) is expected
