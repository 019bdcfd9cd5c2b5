"""AlarmReader over CloudWatch."""

from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.errors import UnavailableError


class CloudWatchAlarms:
    def __init__(self, client: Any) -> None:
        self._client = client

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
