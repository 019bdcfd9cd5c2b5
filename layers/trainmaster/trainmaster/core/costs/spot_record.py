"""How often spot instances of a type were interrupted recently: days that count less the older they are."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

HALF_LIFE = timedelta(days=7)
"""A day this old counts half."""
KEPT = timedelta(days=30)
"""Age beyond which a day does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotDay:
    """Totals of the spot attempts that ended on one day (UTC)."""

    day: date
    interruptions: int = 0
    instance_seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRecord:
    interruptions: float = 0.0
    """Number of interrupted attempts, however many instances each had; older days count less."""
    instance_hours: float = 0.0

    @property
    def per_instance_hour(self) -> float | None:
        """Return interruptions per instance-hour; None if no instances ran recently."""
        return self.interruptions / self.instance_hours if self.instance_hours else None

    def expected(self, *, instances: int, runtime: timedelta) -> float | None:
        """Estimate the interruptions of an attempt of this size and length at the recent rate.

        None if it is unknown.
        """
        rate = self.per_instance_hour
        return None if rate is None else rate * instances * (runtime / timedelta(hours=1))


def day_of(at: datetime) -> date:
    """Return the day of an instant in UTC."""
    return at.astimezone(UTC).date()


def record_of(days: Iterable[SpotDay], *, today: date) -> SpotRecord:
    weighted_days = [
        (_weight(today - spot_day.day), spot_day) for spot_day in days if today - spot_day.day <= KEPT
    ]
    return SpotRecord(
        interruptions=sum((weight * spot_day.interruptions for weight, spot_day in weighted_days), 0.0),
        instance_hours=sum(
            (weight * spot_day.instance_seconds / 3600 for weight, spot_day in weighted_days), 0.0
        ),
    )


def _weight(age: timedelta) -> float:
    weight: float = 0.5 ** (age / HALF_LIFE)
    return weight
