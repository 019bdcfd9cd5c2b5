"""Which alarms watch the GPUs of an attempt, as data; CloudWatch's words."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

PREFIX = "trainmaster"


class AlarmKind(StrEnum):
    IDLE = "idle"
    UTILIZATION = "utilization"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One metric alarm over the hosts of an attempt, or a composite of such alarms."""

    name: str
    description: str
    acts: bool
    """Its transitions go to the alarm topic."""
    hosts: tuple[str, ...] = ()
    """Values of dimension Host; empty: it is a composite."""
    expression: str = ""
    """Metric math over ``m0``, ``m1`` ... of its hosts; in per cent of one GPU."""
    below: int = 0
    period: timedelta = timedelta(minutes=5)
    periods: int = 1
    """Data points in a row that must be below."""
    rule: str = ""
    """AlarmRule of a composite."""
    tags: dict[str, str] = field(default_factory=dict)


def alarm_name(stack: str, kind: str, training_job_name: str) -> str:
    return f"{PREFIX}-{stack}-{kind}-{training_job_name}"
