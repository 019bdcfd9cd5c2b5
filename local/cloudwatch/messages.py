"""Writes the message that an alarm sends to an SNS topic.

Source: CloudWatch User Guide, "Acting on alarm changes"; the fields as messages of the service have them.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from botocore.loaders import Loader

from local.cloudwatch.alarms import METRIC_ALARM, Alarm, Transition


def subject(transition: Transition) -> str:
    alarm = transition.alarm
    return f'{alarm.state.value}: "{alarm.name}" in {_region_name(_region(alarm))}'


def message(transition: Transition) -> str:
    """Write the message of a transition as JSON."""
    alarm, settings = transition.alarm, transition.alarm.settings
    about = {
        "AlarmName": alarm.name,
        "AlarmDescription": settings.get("AlarmDescription"),
        "AWSAccountId": alarm.arn.split(":")[4],
        "AlarmConfigurationUpdatedTimestamp": _written(alarm.configured_at),
        "NewStateValue": alarm.state.value.value,
        "NewStateReason": alarm.state.reason,
        "StateChangeTime": _written(alarm.state.since),
        "Region": _region_name(_region(alarm)),
        "AlarmArn": alarm.arn,
        "OldStateValue": transition.before.value,
        "OKActions": settings.get("OKActions", []),
        "AlarmActions": settings.get("AlarmActions", []),
        "InsufficientDataActions": settings.get("InsufficientDataActions", []),
    }
    return json.dumps(about | _cause(transition))


def _cause(transition: Transition) -> dict[str, Any]:
    settings = transition.alarm.settings
    if transition.alarm.kind == METRIC_ALARM:
        return {"Trigger": _trigger(settings)}
    children = [
        {
            "Arn": child.arn,
            "State": {"Value": child.state.value.value, "Timestamp": _written(child.state.since)},
        }
        for child in transition.children
    ]
    return {"AlarmRule": settings["AlarmRule"], "TriggeringChildren": children}


def _trigger(settings: Mapping[str, Any]) -> dict[str, Any]:
    compared = {
        "EvaluationPeriods": settings["EvaluationPeriods"],
        "DatapointsToAlarm": settings.get("DatapointsToAlarm", settings["EvaluationPeriods"]),
        "ComparisonOperator": settings["ComparisonOperator"],
        "Threshold": settings["Threshold"],
        "TreatMissingData": settings.get("TreatMissingData", "missing"),
        "EvaluateLowSampleCountPercentile": "",
    }
    if "Metrics" in settings:
        return {"Metrics": [_query(query) for query in settings["Metrics"]], **compared}
    return {
        "MetricName": settings["MetricName"],
        "Namespace": settings["Namespace"],
        "StatisticType": "Statistic",
        "Statistic": settings["Statistic"].upper(),
        "Unit": settings.get("Unit"),
        "Dimensions": _dimensions(settings.get("Dimensions", ())),
        "Period": settings["Period"],
        **compared,
    }


def _query(query: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"ReturnData": True, **query}
    if "MetricStat" in query:
        metric = query["MetricStat"]["Metric"]
        metric = {**metric, "Dimensions": _dimensions(metric.get("Dimensions", ()))}
        shown["MetricStat"] = {**query["MetricStat"], "Metric": metric}
    return shown


def _dimensions(dimensions: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    return [{"value": dimension["Value"], "name": dimension["Name"]} for dimension in dimensions]


def _written(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant.microsecond // 1000:03d}+0000"


def _region(alarm: Alarm) -> str:
    return alarm.arn.split(":")[3]


@cache
def _region_name(region: str) -> str:
    """Return the console's name of a region, such as "US East (N. Virginia)"."""
    partitions = Loader().load_data("endpoints")["partitions"]
    names = {
        code: description["description"]
        for part in partitions
        for code, description in part["regions"].items()
    }
    return str(names.get(region, region))
