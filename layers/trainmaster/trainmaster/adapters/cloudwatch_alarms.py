"""Implement AlarmReader, AlarmKeeper and MetricReader over CloudWatch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.core.errors import AlarmQuotaError, AlarmRefusedError, UnavailableError
from trainmaster.core.monitoring.alarms import METRIC, NAMESPACE, Alarm, AlarmReading, AlarmState

TYPES = ("MetricAlarm", "CompositeAlarm")
AT_ONCE = 100
"""Names in one DeleteAlarms, of which only one may be a composite. Source: CloudWatch API reference."""
COUNTED = timedelta(minutes=5)
"""Period of a count of data points: half an hour of all hosts of a call fits one page of the answer."""
_PASSING = frozenset(
    {"Throttling", "ThrottlingException", "RequestLimitExceeded", "InternalFailure", "InternalServiceError"}
)
_QUOTA = frozenset({"LimitExceeded", "LimitExceededFault", "LimitExceededException"})
_SERVER_FAULT = 500


class CloudWatchAlarms:
    def __init__(self, client: Any, *, topic_arn: str) -> None:
        self._client = client
        self._topic_arn = topic_arn

    # ---- what they say

    def reading(self, alarm_name: str) -> AlarmReading | None:
        answer = _called(
            self._client.describe_alarms, {"AlarmNames": [alarm_name], "AlarmTypes": list(TYPES)}
        )
        return next((_reading(alarm) for alarm in _alarms(answer)), None)

    def readings(self, prefix: str) -> Mapping[str, AlarmReading]:
        paginator = self._client.get_paginator("describe_alarms")
        wanted = {"AlarmNamePrefix": prefix, "AlarmTypes": list(TYPES)}
        pages = _called(lambda **parameters: list(paginator.paginate(**parameters)), wanted)
        return {alarm["AlarmName"]: _reading(alarm) for page in pages for alarm in _alarms(page)}

    def have_data(self, hosts: Sequence[str], *, since: datetime, until: datetime) -> Mapping[str, bool]:
        """Tell which hosts' metrics have data points, in one call; hosts without an answer are left out."""
        by_id = {f"m{number}": host for number, host in enumerate(hosts)}
        queries = [_count_query(query_id, host) for query_id, host in by_id.items()]
        wanted = {"MetricDataQueries": queries, "StartTime": since, "EndTime": until}
        answer = _called(self._client.get_metric_data, wanted)
        if answer.get("NextToken"):
            return {}
        return {
            by_id[result["Id"]]: bool(result.get("Values"))
            for result in answer["MetricDataResults"]
            if result.get("Values") or result.get("StatusCode") == "Complete"
        }

    # ---- making and deleting them

    def put(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            if alarm.hosts:
                _called(self._client.put_metric_alarm, self._metric_alarm(alarm))
            else:
                _called(self._client.put_composite_alarm, self._composite(alarm))

    def delete(self, names: Sequence[str]) -> None:
        """Delete metric alarms, named with a part's number, in groups; possible composites one by one."""
        for is_part, same in groupby(names, key=lambda name: "." in name):
            group, size = list(same), AT_ONCE if is_part else 1
            for start in range(0, len(group), size):
                self._delete(group[start : start + size])

    def _delete(self, names: list[str]) -> None:
        try:
            self._client.delete_alarms(AlarmNames=names)
        except ClientError as error:
            if error.response["Error"]["Code"] not in {"ResourceNotFound", "ResourceNotFoundException"}:
                raise UnavailableError(_refusal("DeleteAlarms", error)) from error
        except BotoCoreError as error:
            raise UnavailableError("CloudWatch did not answer DeleteAlarms") from error

    def _metric_alarm(self, alarm: Alarm) -> dict[str, Any]:
        return {
            **self._common(alarm),
            "Metrics": list(_metrics(alarm)),
            "EvaluationPeriods": alarm.out_of,
            "DatapointsToAlarm": alarm.periods,
            "Threshold": float(alarm.below),
            "ComparisonOperator": "LessThanThreshold",
            "TreatMissingData": "notBreaching",
        }

    def _composite(self, alarm: Alarm) -> dict[str, Any]:
        return {**self._common(alarm), "AlarmRule": alarm.rule}

    def _common(self, alarm: Alarm) -> dict[str, Any]:
        topics = [self._topic_arn] if alarm.acts else []
        return {
            "AlarmName": alarm.name,
            "AlarmDescription": alarm.description,
            "ActionsEnabled": True,
            "AlarmActions": topics,
            "OKActions": topics,
        }


def _metric_of(host: str) -> dict[str, Any]:
    return {
        "Namespace": NAMESPACE,
        "MetricName": METRIC,
        "Dimensions": [{"Name": "Host", "Value": host}],
    }


def _count_query(query_id: str, host: str) -> dict[str, Any]:
    period = int(COUNTED.total_seconds())
    stat = {"Metric": _metric_of(host), "Period": period, "Stat": "SampleCount"}
    return {"Id": query_id, "MetricStat": stat}


def _metrics(alarm: Alarm) -> Iterator[dict[str, Any]]:
    period = int(alarm.period.total_seconds())
    for number, host in enumerate(alarm.hosts):
        stat = {"Metric": _metric_of(host), "Period": period, "Stat": "Average"}
        yield {"Id": f"m{number}", "MetricStat": stat, "ReturnData": False}
    yield {
        "Id": "percent",
        "Expression": alarm.expression,
        "Label": "per cent of one GPU",
        "ReturnData": True,
    }


def _called(operation: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    try:
        return operation(**parameters)
    except ClientError as error:
        raise _refused(error) from error
    except BotoCoreError as error:
        raise UnavailableError("CloudWatch did not answer") from error


def _refused(error: ClientError) -> UnavailableError:
    code = error.response["Error"]["Code"]
    if code in _QUOTA:
        return AlarmQuotaError("CloudWatch takes no more alarms of this account")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _PASSING or status >= _SERVER_FAULT:
        return UnavailableError(_refusal(error.operation_name, error))
    return AlarmRefusedError(_refusal(error.operation_name, error))


def _refusal(operation: str, error: ClientError) -> str:
    return f"CloudWatch refused {operation}: {error.response['Error']['Code']}"


def _alarms(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*answer.get("MetricAlarms", []), *answer.get("CompositeAlarms", [])]


def _reading(alarm: Mapping[str, Any]) -> AlarmReading:
    """Read an alarm's state and since when it lasts.

    StateUpdatedTimestamp also moves when only the reason of the state changes, so the transition comes first.
    """
    since: datetime = alarm.get("StateTransitionedTimestamp") or alarm["StateUpdatedTimestamp"]
    whole = since.microsecond // 1000 * 1000
    return AlarmReading(
        state=AlarmState(alarm["StateValue"]), since=since.astimezone(UTC).replace(microsecond=whole)
    )
