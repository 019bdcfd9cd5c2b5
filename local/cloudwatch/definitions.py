"""Reads and checks what PutMetricAlarm asks to watch.

Source: CloudWatch API reference, PutMetricAlarm; CloudWatch User Guide, "Alarms on math expressions".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from local.cloudwatch import queries
from local.cloudwatch.evaluation import COMPARISONS, EXTRA_PERIODS, DataPoint, Missing, Threshold
from local.cloudwatch.metrics import MetricStore
from local.cloudwatch.queries import Queries, invalid

MOST_METRICS = 10
"""Most metrics in the expression of one alarm."""
_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
_HOUR = timedelta(hours=1)
_UNKNOWN = ("ThresholdMetricId", "EvaluationWindow", "WarmUpConfiguration", "EvaluationCriteria")
_OF_ONE_METRIC = ("MetricName", "Namespace", "Statistic", "Period", "Dimensions", "Unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    queries: Queries
    query_id: str
    """The one that is compared with the threshold."""
    period: timedelta
    threshold: Threshold

    def points(self, end: datetime, store: MetricStore) -> list[DataPoint]:
        """Return the points of the periods before ``end``, oldest first; they move on with each minute."""
        count = self.threshold.evaluated + EXTRA_PERIODS
        starts = [end - self.period * back for back in range(count, 0, -1)]
        return [
            DataPoint(start=start, value=self.queries.point(self.query_id, start, store)) for start in starts
        ]


def watched(settings: Mapping[str, Any]) -> Watched:
    """Read an alarm's settings. Raises AwsError if they make no sense or the twin does not know them."""
    for name in (*_UNKNOWN, "ExtendedStatistic", "EvaluationInterval"):
        if name in settings:
            raise invalid(f"the twin does not know {name}")
    metric_queries = _queries(settings)
    (query_id,) = metric_queries.returned
    definition = Watched(
        queries=metric_queries,
        query_id=query_id,
        period=metric_queries.period(query_id),
        threshold=_threshold(settings),
    )
    _check_length(definition.period, definition.threshold.evaluated)
    return definition


def _queries(settings: Mapping[str, Any]) -> Queries:
    if "Metrics" not in settings:
        if "MetricName" not in settings or "Namespace" not in settings:
            raise invalid("an alarm needs Metrics, or MetricName and Namespace")
        return queries.of_metric(settings)
    if extra := [name for name in _OF_ONE_METRIC if name in settings]:
        raise invalid(f"an alarm with Metrics has no {', '.join(extra)}")
    metric_queries = queries.read(settings["Metrics"])
    for problem in _problems(metric_queries, settings["Metrics"]):
        raise invalid(problem)
    return metric_queries


def _problems(metric_queries: Queries, documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(metric_queries.returned) != 1:
        yield f"exactly one of Metrics must return data, not {len(metric_queries.returned)}"
    if len(metric_queries.sources) > MOST_METRICS:
        yield f"an alarm may have up to {MOST_METRICS} metrics, not {len(metric_queries.sources)}"
    if len({source.period for source in metric_queries.sources.values()}) > 1:
        yield "all metrics of an alarm must have one period"
    if not metric_queries.sources:
        yield f"none of {', '.join(document['Id'] for document in documents)} is a metric"


def _threshold(settings: Mapping[str, Any]) -> Threshold:
    for name in ("Threshold", "ComparisonOperator", "EvaluationPeriods"):
        if name not in settings:
            raise invalid(f"{name} is missing")
    if settings["ComparisonOperator"] not in COMPARISONS:
        raise invalid(f"the twin does not know ComparisonOperator {settings['ComparisonOperator']}")
    try:
        missing = Missing(settings.get("TreatMissingData", Missing.MISSING))
    except ValueError as error:
        raise invalid(f"TreatMissingData is one of {', '.join(Missing)}") from error
    evaluated = settings["EvaluationPeriods"]
    to_alarm = settings.get("DatapointsToAlarm", evaluated)
    if to_alarm > evaluated:
        raise invalid("DatapointsToAlarm must not exceed EvaluationPeriods")
    return Threshold(
        comparison=settings["ComparisonOperator"],
        value=float(settings["Threshold"]),
        evaluated=evaluated,
        to_alarm=to_alarm,
        missing=missing,
    )


def _check_length(period: timedelta, evaluated: int) -> None:
    most = _DAY if period < _HOUR else _WEEK
    if period * evaluated > most:
        raise invalid(f"EvaluationPeriods x Period must not exceed {most.days} day{'s' * (most.days > 1)}")
