"""Log groups, alarms and dashboards."""

from collections.abc import Callable
from typing import Any

from local.deployment.resources.kinds import Kind, Made, Properties, Site, names

_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "Period": int,
    "EvaluationPeriods": int,
    "DatapointsToAlarm": int,
    "Threshold": float,
}


def _log_group(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("LogGroupName", f"/{site.name(logical_id)}")
    logs = site.client("logs")
    encryption = {"kmsKeyId": properties["KmsKeyId"]} if "KmsKeyId" in properties else {}
    logs.create_log_group(logGroupName=name, **encryption)
    if days := properties.get("RetentionInDays"):
        logs.put_retention_policy(logGroupName=name, retentionInDays=int(days))
    return Made(ref=name, attributes={"Arn": site.arn("logs", f"log-group:{name}:*")})


def _alarm(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("AlarmName", site.name(logical_id))
    request = {key: _NUMBERS.get(key, lambda value: value)(value) for key, value in properties.items()}
    site.client("cloudwatch").put_metric_alarm(**request | {"AlarmName": name})
    return Made(ref=name, attributes={"Arn": site.arn("cloudwatch", f"alarm:{name}")})


def _dashboard(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("DashboardName", site.name(logical_id))
    site.client("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=properties["DashboardBody"])
    return Made(ref=name)


KINDS = {
    "AWS::Logs::LogGroup": Kind(create=_log_group, optional=names("LogGroupName KmsKeyId RetentionInDays")),
    "AWS::CloudWatch::Alarm": Kind(
        create=_alarm,
        required=names("ComparisonOperator EvaluationPeriods"),
        optional=names(
            "ActionsEnabled AlarmActions AlarmDescription AlarmName DatapointsToAlarm Dimensions"
            " ExtendedStatistic InsufficientDataActions MetricName Metrics Namespace OKActions Period"
            " Statistic Threshold TreatMissingData Unit"
        ),
    ),
    "AWS::CloudWatch::Dashboard": Kind(
        create=_dashboard, required=names("DashboardBody"), optional=names("DashboardName")
    ),
}
