"""Computes the state of a metric alarm from its data points.

Source: CloudWatch User Guide, "Using Amazon CloudWatch alarms", "How alarm state is evaluated when data is
missing"; its two tables are test cases.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from local.cloudwatch.metric_math import Point

EXTRA_PERIODS = 2
"""CloudWatch looks at more periods than it evaluates. How many is not published; in its example 5 for 3."""


class StateValue(StrEnum):
    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


class Missing(StrEnum):
    """Values of TreatMissingData."""

    MISSING = "missing"
    IGNORE = "ignore"
    BREACHING = "breaching"
    NOT_BREACHING = "notBreaching"


COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
}
_WORDS = {
    "GreaterThanOrEqualToThreshold": "greater than or equal to",
    "GreaterThanThreshold": "greater than",
    "LessThanOrEqualToThreshold": "less than or equal to",
    "LessThanThreshold": "less than",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    comparison: str
    """A key of ``COMPARISONS``."""
    value: float
    evaluated: int
    """EvaluationPeriods of the alarm."""
    to_alarm: int
    """DatapointsToAlarm of the alarm."""
    missing: Missing

    def is_breached_by(self, value: float) -> bool:
        return COMPARISONS[self.comparison](value, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPoint:
    start: datetime
    """Begin of the point's period."""
    value: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    state: StateValue
    reason: str


def judge(points: Sequence[DataPoint], threshold: Threshold) -> Verdict | None:
    """Compute the state after these data points, oldest first; None leaves it as it is.

    Args:
        points: As many as are evaluated and ``EXTRA_PERIODS`` more.
        threshold: When a point breaches, and what becomes of missing ones.
    """
    known = [point for point in points if point.value is not None][-threshold.evaluated :]
    breaching = [point for point in known if _breaches(point, threshold)]
    unknown = threshold.evaluated - len(known)
    if len(breaching) >= threshold.to_alarm:
        return _crossed(StateValue.ALARM, known, threshold)
    if unknown == 0 or threshold.missing is Missing.NOT_BREACHING:
        return _crossed(StateValue.OK, known, threshold)
    if threshold.missing is Missing.BREACHING:
        is_enough = len(breaching) + unknown >= threshold.to_alarm
        return _crossed(StateValue.ALARM if is_enough else StateValue.OK, known, threshold)
    if len(known) > len(breaching):
        return _crossed(StateValue.OK, known, threshold)
    if threshold.missing is Missing.IGNORE:
        return None
    if breaching and _age(breaching[0], points) >= threshold.to_alarm:
        return _crossed(StateValue.ALARM, known, threshold)
    return Verdict(state=StateValue.INSUFFICIENT_DATA, reason=_unknown(unknown))


def _breaches(point: DataPoint, threshold: Threshold) -> bool:
    return point.value is not None and threshold.is_breached_by(point.value)


def _age(point: DataPoint, points: Sequence[DataPoint]) -> int:
    """Return the age of a point in periods; the newest is 1."""
    return len(points) - points.index(point)


def _crossed(state: StateValue, known: Sequence[DataPoint], threshold: Threshold) -> Verdict:
    if not known:
        kind = "Breaching" if threshold.missing is Missing.BREACHING else "NonBreaching"
        periods = threshold.evaluated
        reason = (
            f"Threshold Crossed: no datapoints were received for {periods} period{_s(periods)} and "
            f"{periods} missing datapoint{_s(periods)} {_were(periods)} treated as [{kind}]."
        )
        return Verdict(state=state, reason=reason)
    is_alarm = state is StateValue.ALARM
    shown = [point for point in known if _breaches(point, threshold) is is_alarm] or known
    values = ", ".join(f"{point.value} ({point.start:%d/%m/%y %H:%M:%S})" for point in reversed(shown))
    needed = threshold.to_alarm if is_alarm else threshold.evaluated - threshold.to_alarm + 1
    edge = "OK -> ALARM" if is_alarm else "ALARM -> OK"
    reason = (
        f"Threshold Crossed: {len(shown)} out of the last {threshold.evaluated} "
        f"datapoints [{values}] {'was' if len(shown) == 1 else 'were'} "
        f"{'' if is_alarm else 'not '}{_WORDS[threshold.comparison]} the threshold ({threshold.value}) "
        f"(minimum {needed} datapoint{_s(needed)} for {edge} transition)."
    )
    return Verdict(state=state, reason=reason)


def _unknown(count: int) -> str:
    return f"Insufficient Data: {count} datapoint{_s(count)} {_were(count)} unknown."


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
