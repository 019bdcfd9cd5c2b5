"""How often spot instances of a type were taken away recently: days that count less the older they are."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

HALF_LIFE = timedelta(days=7)
"""A day this old counts half."""
KEPT = timedelta(days=30)
"""An older day does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotDay:
    """Of spot attempts that ended on one day (UTC)."""

    day: date
    interruptions: int = 0
    instance_seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRecord:
    interruptions: float = 0.0
    """Of whole attempts, however many instances they had."""
    instance_hours: float = 0.0

    @property
    def per_instance_hour(self) -> float | None:
        """None: nobody ran on it recently."""
        return self.interruptions / self.instance_hours if self.instance_hours else None

    def expected(self, *, instances: int, runtime: timedelta) -> float | None:
        """Interruptions of an attempt of this size and length, were it to go on like this."""
        rate = self.per_instance_hour
        return None if rate is None else rate * instances * (runtime / timedelta(hours=1))


def day_of(at: datetime) -> date:
    """In UTC."""
    return at.astimezone(UTC).date()


def record_of(days: Iterable[SpotDay], *, today: date) -> SpotRecord:
    weighed = [(_weight(today - one.day), one) for one in days if today - one.day <= KEPT]
    return SpotRecord(
        interruptions=sum((weight * one.interruptions for weight, one in weighed), 0.0),
        instance_hours=sum((weight * one.instance_seconds / 3600 for weight, one in weighed), 0.0),
    )


def _weight(age: timedelta) -> float:
    weight: float = 0.5 ** (age / HALF_LIFE)
    return weight
