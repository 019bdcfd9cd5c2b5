"""The training plans that the twin sells: a small catalogue, the same for the same question.

Real offerings depend on what AWS has free. Here there are up to three for each question: at once, two days
later for less, and in two parts with a day between them for the least. As on SageMaker, windows begin and
end at half past eleven UTC and last whole days.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from local.sagemaker.plan_views import TARGETS, ZONE, duration, money
from local.sagemaker.training_plans import Window

USD_PER_INSTANCE_HOUR: Mapping[str, float] = {
    "ml.p4d.24xlarge": 13.0,
    "ml.p4de.24xlarge": 16.0,
    "ml.p5.4xlarge": 4.5,
    "ml.p5.48xlarge": 36.0,
    "ml.p5e.48xlarge": 40.0,
    "ml.p5en.48xlarge": 42.0,
    "ml.p6-b200.48xlarge": 84.0,
    "ml.p6-b300.48xlarge": 105.0,
    "ml.p6e-gb200.36xlarge": 60.0,
    "ml.trn1.32xlarge": 9.5,
    "ml.trn2.48xlarge": 18.0,
}
"""The twin's own prices, of the order of AWS's."""
MOST_INSTANCES = 64
"""Instances of one type that the twin has to sell."""
_DAY = timedelta(days=1)
_STARTS = timedelta(hours=11, minutes=30)
"""Time of day, UTC, at which windows begin and end."""
_SOONEST = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    instance_type: str
    instances: int
    windows: tuple[Window, ...]
    fee_usd: float

    @property
    def id(self) -> str:
        text = f"{self.instance_type}/{self.instances}/{self.windows}/{self.fee_usd}"
        return f"tpo-{hashlib.sha256(text.encode()).hexdigest()[:40]}"


def offerings(params: Mapping[str, Any], now: datetime) -> list[Offering]:
    """Return what fits SearchTrainingPlanOfferings' parameters, the earliest and then the cheapest first."""
    instance_type, count = params.get("InstanceType", ""), params.get("InstanceCount", 1)
    targets = params.get("TargetResources", TARGETS)
    usd = USD_PER_INSTANCE_HOUR.get(instance_type)
    if (
        usd is None
        or not 1 <= count <= MOST_INSTANCES
        or not set(targets) <= set(TARGETS)
        or "TrainingPlanArn" in params
    ):
        return []
    days = -(-params.get("DurationHours", 24) // 24)
    begin = _next_start(max(params.get("StartTimeAfter", now), now + _SOONEST))
    latest = params.get("EndTimeBefore")
    fitting = [
        Offering(
            instance_type=instance_type,
            instances=count,
            windows=windows,
            fee_usd=round(usd * share * count * days * 24, 2),
        )
        for share, windows in _choices(begin, days)
        if latest is None or windows[-1].end <= latest
    ]
    return sorted(fitting, key=lambda offering: (offering.windows[0].begin, offering.fee_usd))


def offering_view(offering: Offering, params: Mapping[str, Any], *, region: str) -> dict[str, Any]:
    """Write one entry of the answer; the times that were asked for are given back."""
    length = sum((window.length for window in offering.windows), timedelta())
    requested = {
        f"Requested{name}": params[name].timestamp()
        for name in ("StartTimeAfter", "EndTimeBefore")
        if name in params
    }
    return {
        "TrainingPlanOfferingId": offering.id,
        "TargetResources": list(TARGETS),
        **requested,
        **duration(length),
        "UpfrontFee": money(offering.fee_usd),
        "CurrencyCode": "USD",
        "ReservedCapacityOfferings": [
            {
                "ReservedCapacityType": "Instance",
                "InstanceType": offering.instance_type,
                "InstanceCount": offering.instances,
                "AvailabilityZone": ZONE.format(region=region),
                **duration(window.length),
                "StartTime": window.begin.timestamp(),
                "EndTime": window.end.timestamp(),
            }
            for window in offering.windows
        ],
    }


def _choices(begin: datetime, days: int) -> Sequence[tuple[float, tuple[Window, ...]]]:
    """Return shares of the price with their windows."""
    later, first = begin + 2 * _DAY, (days + 1) // 2
    choices: list[tuple[float, tuple[Window, ...]]] = [
        (1.0, (Window(begin=begin, end=begin + days * _DAY),)),
        (0.9, (Window(begin=later, end=later + days * _DAY),)),
    ]
    if days > 1:
        middle = begin + first * _DAY
        parts = (
            Window(begin=begin, end=middle),
            Window(begin=middle + _DAY, end=middle + (days - first + 1) * _DAY),
        )
        choices.append((0.8, parts))
    return choices


def _next_start(instant: datetime) -> datetime:
    start = instant.replace(hour=0, minute=0, second=0, microsecond=0) + _STARTS
    return start if start >= instant else start + _DAY
