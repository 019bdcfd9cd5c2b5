"""The environment of the functions, read once; the only place that knows the names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    table: str
    wake_up_queue_url: str
    stack: str
    """Value of the tag ``trainmaster:stack`` on every training job we start."""
    account_id: str
    admin_principal_arns: tuple[str, ...]
    retention_days: int
    alarm_topic_arn: str
    """Where alarms of training jobs report to."""
    mail_topic_arn: str
    widget_shows_names: bool = False
    """Whether the dashboard's queue widget names jobs and teams."""
    region: str = ""
    """Where the functions run, as Lambda says it; "" outside of it."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read every setting, or fail at cold start with the name of the missing one (KeyError)."""
        admins = env["TRAINMASTER_ADMIN_PRINCIPAL_ARNS"].split(",")
        return cls(
            table=env["TRAINMASTER_TABLE"],
            wake_up_queue_url=env["TRAINMASTER_DOORBELL_URL"],
            stack=env["TRAINMASTER_STACK"],
            account_id=env["TRAINMASTER_ACCOUNT_ID"],
            admin_principal_arns=tuple(arn.strip() for arn in admins if arn.strip()),
            retention_days=int(env["TRAINMASTER_RETENTION_DAYS"]),
            alarm_topic_arn=env["TRAINMASTER_ALARM_TOPIC_ARN"],
            mail_topic_arn=env["TRAINMASTER_MAIL_TOPIC_ARN"],
            widget_shows_names=env["TRAINMASTER_WIDGET_SHOWS_NAMES"] == "true",
            region=env.get("AWS_REGION", ""),
        )
