"""AlarmReader and AlarmKeeper over CloudWatch."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.alarms import Alarm
from trainmaster.errors import UnavailableError


class CloudWatchAlarms:
    def __init__(self, client: Any, *, topic_arn: str) -> None:
        self._client = client
        self._topic_arn = topic_arn

    def in_alarm_since(self, alarm_name: str) -> datetime | None:
        try:
            answer = self._client.describe_alarms(
                AlarmNames=[alarm_name],
                AlarmTypes=["MetricAlarm", "CompositeAlarm"],
            )
        except (ClientError, BotoCoreError) as error:
            raise UnavailableError("CloudWatch did not answer DescribeAlarms") from error
        alarms = [*answer.get("MetricAlarms", []), *answer.get("CompositeAlarms", [])]
        changed = (one["StateUpdatedTimestamp"] for one in alarms if one["StateValue"] == "ALARM")
        since: datetime | None = next(changed, None)
        return None if since is None else since.astimezone(UTC)

    def names(self, prefix: str, *, in_alarm: bool = False) -> tuple[str, ...]:
        wanted: dict[str, Any] = {"AlarmNamePrefix": prefix, "AlarmTypes": ["MetricAlarm", "CompositeAlarm"]}
        if in_alarm:
            wanted["StateValue"] = "ALARM"
        try:
            pages = list(self._client.get_paginator("describe_alarms").paginate(**wanted))
        except (ClientError, BotoCoreError) as error:
            raise UnavailableError("CloudWatch did not answer DescribeAlarms") from error
        kinds = ("MetricAlarms", "CompositeAlarms")
        return tuple(one["AlarmName"] for page in pages for kind in kinds for one in page.get(kind, []))

    def put(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            raise NotImplementedError(alarm.name)

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            raise NotImplementedError(name)
