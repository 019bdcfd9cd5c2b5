"""Answers the calls that read metrics."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from local.cloudwatch import queries
from local.cloudwatch.metrics import Metric, MetricStore
from local.cloudwatch.queries import Queries, invalid

MOST_PERIODS = 100_800
"""Data points in one answer of GetMetricData. Source: CloudWatch API reference."""


def metric_data(params: Mapping[str, Any], store: MetricStore) -> dict[str, Any]:
    """Answer GetMetricData."""
    wanted = queries.read(params["MetricDataQueries"])
    start, end = params["StartTime"], params["EndTime"]
    if start >= end:
        raise invalid("The parameter EndTime must be greater than StartTime.")
    newest_first = params.get("ScanBy", "TimestampDescending") == "TimestampDescending"
    results = []
    for query_id in wanted.returned:
        points = _points(wanted, query_id, start, end, store)
        if newest_first:
            points.reverse()
        result = {
            "Id": query_id,
            "Label": wanted.labels[query_id],
            "Timestamps": [instant for instant, _ in points],
            "Values": [value for _, value in points],
            "StatusCode": "Complete",
        }
        results.append(result)
    return {"MetricDataResults": results, "Messages": []}


def metric_statistics(params: Mapping[str, Any], store: MetricStore) -> dict[str, Any]:
    """Answer GetMetricStatistics."""
    names = [queries.statistic(name) for name in params.get("Statistics", ())]
    if not names:
        raise invalid("The parameter Statistics is missing.")
    metric, step = Metric.of(params), queries.period(params["Period"])
    datapoints = []
    for unit in [params["Unit"]] if "Unit" in params else store.units(metric):
        for instant in _steps(params["StartTime"], params["EndTime"], step):
            samples = store.samples(metric, start=instant, end=instant + step, unit=unit)
            if samples is not None:
                values = {name: samples.statistic(name) for name in names}
                datapoints.append({"Timestamp": instant, **values, "Unit": unit})
    return {"Label": metric.name, "Datapoints": datapoints}


def metric_list(params: Mapping[str, Any], store: MetricStore) -> dict[str, Any]:
    """Answer ListMetrics, all on one page."""
    metrics = [metric.as_document() for metric in store.metrics() if _is_asked(metric, params)]
    return {"Metrics": metrics}


def _points(
    wanted: Queries, query_id: str, start: datetime, end: datetime, store: MetricStore
) -> list[tuple[datetime, float]]:
    step = wanted.period(query_id)
    points = ((instant, wanted.point(query_id, instant, store)) for instant in _steps(start, end, step))
    return [(instant, value) for instant, value in points if value is not None]


def _steps(start: datetime, end: datetime, step: timedelta) -> Iterable[datetime]:
    if (end - start) / step > MOST_PERIODS:
        raise invalid(f"from StartTime to EndTime there are more than {MOST_PERIODS} periods")
    instant = queries.aligned(start, step)
    while instant < end:
        yield instant
        instant += step


def _is_asked(metric: Metric, params: Mapping[str, Any]) -> bool:
    wanted = params.get("Dimensions", ())
    return (
        params.get("Namespace", metric.namespace) == metric.namespace
        and params.get("MetricName", metric.name) == metric.name
        and all(_has(metric, dimension) for dimension in wanted)
    )


def _has(metric: Metric, wanted: Mapping[str, str]) -> bool:
    return any(
        name == wanted["Name"] and wanted.get("Value", value) == value for name, value in metric.dimensions
    )
