"""The environment of the functions, read once; the only place that knows the names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from trainmaster.core.submission.api_shares import Throttle


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
    """Topic that the alarms of training jobs report to."""
    mail_topic_arn: str
    widget_shows_names: bool = False
    """Whether the dashboard's queue widget names jobs and teams."""
    api_throttle: Throttle | None = None
    """Rate limits of the API's stage; None in functions other than the API."""
    training_role_arns: tuple[str, ...] = ()
    """Roles, perhaps with ``*`` in their names, that the stack may pass to SageMaker; only the API knows."""
    region: str = ""
    """AWS region the functions run in, set by Lambda; "" outside of Lambda."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read every setting, or fail at cold start with the name of the missing one (KeyError)."""
        return cls(
            table=env["TRAINMASTER_TABLE"],
            wake_up_queue_url=env["TRAINMASTER_DOORBELL_URL"],
            stack=env["TRAINMASTER_STACK"],
            account_id=env["TRAINMASTER_ACCOUNT_ID"],
            admin_principal_arns=_arns(env["TRAINMASTER_ADMIN_PRINCIPAL_ARNS"]),
            retention_days=int(env["TRAINMASTER_RETENTION_DAYS"]),
            alarm_topic_arn=env["TRAINMASTER_ALARM_TOPIC_ARN"],
            mail_topic_arn=env["TRAINMASTER_MAIL_TOPIC_ARN"],
            widget_shows_names=env["TRAINMASTER_WIDGET_SHOWS_NAMES"] == "true",
            api_throttle=_throttle(env),
            training_role_arns=_arns(env["TRAINMASTER_TRAINING_ROLE_ARNS"])
            if "TRAINMASTER_TRAINING_ROLE_ARNS" in env
            else (),
            region=env.get("AWS_REGION", ""),
        )


def _arns(listed: str) -> tuple[str, ...]:
    return tuple(arn.strip() for arn in listed.split(",") if arn.strip())


def _throttle(env: Mapping[str, str]) -> Throttle | None:
    """Read the rate limits, which only the API's function has."""
    if "TRAINMASTER_API_REQUESTS_PER_SECOND" not in env:
        return None
    per_second = float(env["TRAINMASTER_API_REQUESTS_PER_SECOND"])
    return Throttle(per_second=per_second, burst=float(env["TRAINMASTER_API_BURST"]))
