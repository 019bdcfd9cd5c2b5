"""Samples by the minute, and what is read from them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.cloudwatch.metric_reading import metric_data, metric_list, metric_statistics
from local.cloudwatch.metrics import Metric, MetricStore, Samples
from local.cloudwatch.queries import read
from local.wire import AwsError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FIVE = 5 * MINUTE


def metric(host: str = "a", name: str = "m") -> Metric:
    return Metric(namespace="n", name=name, dimensions=frozenset({("Host", host)}))


def store_with(*values: float | None) -> MetricStore:
    """One value a minute from noon on; None: nothing."""
    store = MetricStore()
    for place, value in enumerate(values):
        if value is not None:
            at = NOON + place * MINUTE + timedelta(seconds=17)
            store.put(metric(), Samples.of({"Value": value}), at=at, unit="Percent")
    return store


def source(query_id: str, host: str = "a", **changes: Any) -> dict[str, Any]:
    described = {"Namespace": "n", "MetricName": "m", "Dimensions": [{"Name": "Host", "Value": host}]}
    stat = {"Metric": described, "Period": 60, "Stat": "Average"} | changes
    return {"Id": query_id, "MetricStat": stat}


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [("Average", 3.0), ("Maximum", 6.0), ("Minimum", 1.0), ("SampleCount", 3.0), ("Sum", 9.0)],
)
def test_statistics_over_a_window(statistic: str, expected: float) -> None:
    found = store_with(1, 2, 6, 100).samples(metric(), start=NOON, end=NOON + 3 * MINUTE)
    assert found is not None
    assert found.statistic(statistic) == expected


def test_another_dimension_is_another_metric() -> None:
    assert store_with(1).samples(metric("b"), start=NOON, end=NOON + MINUTE) is None


@pytest.mark.parametrize(
    ("datum", "expected"),
    [
        ({"Value": 2.0}, Samples(count=1, total=2, least=2, most=2)),
        ({"Values": [1.0, 4.0], "Counts": [2.0, 1.0]}, Samples(count=3, total=6, least=1, most=4)),
        (
            {"StatisticValues": {"SampleCount": 5, "Sum": 9, "Minimum": 1, "Maximum": 3}},
            Samples(count=5, total=9, least=1, most=3),
        ),
    ],
)
def test_each_form_of_a_datum_is_understood(datum: dict[str, Any], expected: Samples) -> None:
    assert Samples.of(datum) == expected


def test_metric_data_of_a_metric_and_of_an_expression() -> None:
    queries = [source("m0") | {"ReturnData": False}, {"Id": "e", "Expression": "FILL(m0, 7) * 2"}]
    asked = {"MetricDataQueries": queries, "StartTime": NOON, "EndTime": NOON + 3 * MINUTE}
    (result,) = metric_data(asked | {"ScanBy": "TimestampAscending"}, store_with(1, None, 3))[
        "MetricDataResults"
    ]
    assert (result["Id"], result["Values"]) == ("e", [2.0, 14.0, 6.0])
    assert result["Timestamps"] == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    (newest_first,) = metric_data(asked, store_with(1, None, 3))["MetricDataResults"]
    assert newest_first["Values"] == [6.0, 14.0, 2.0]


def test_periods_begin_at_whole_multiples() -> None:
    asked = {
        "MetricDataQueries": [source("m0", Period=300)],
        "StartTime": NOON + MINUTE,
        "EndTime": NOON + 6 * MINUTE,
    }
    (result,) = metric_data(asked, store_with(1, 3))["MetricDataResults"]
    assert (result["Timestamps"], result["Values"]) == ([NOON], [2.0])


def test_metric_statistics_name_the_unit() -> None:
    asked = {
        "Namespace": "n",
        "MetricName": "m",
        "Dimensions": [{"Name": "Host", "Value": "a"}],
        "StartTime": NOON,
        "EndTime": NOON + FIVE,
        "Period": 300,
        "Statistics": ["Sum", "Maximum"],
    }
    assert metric_statistics(asked, store_with(1, 3))["Datapoints"] == [
        {"Timestamp": NOON, "Sum": 4.0, "Maximum": 3.0, "Unit": "Percent"}
    ]
    assert metric_statistics(asked | {"Unit": "Bytes"}, store_with(1, 3))["Datapoints"] == []


def test_metrics_are_listed_by_name_and_dimension() -> None:
    listed = {"Namespace": "n", "MetricName": "m", "Dimensions": [{"Name": "Host", "Value": "a"}]}
    assert metric_list({}, store_with(1))["Metrics"] == [listed]
    assert metric_list({"Dimensions": [{"Name": "Host"}]}, store_with(1))["Metrics"] == [listed]
    assert metric_list({"Dimensions": [{"Name": "Host", "Value": "b"}]}, store_with(1))["Metrics"] == []
    assert metric_list({"MetricName": "other"}, store_with(1))["Metrics"] == []


@pytest.mark.parametrize(
    ("queries", "says"),
    [
        pytest.param([source("m0"), source("m0")], "must differ", id="an id twice"),
        pytest.param([source("m0", Stat="p99")], "the statistics", id="a percentile"),
        pytest.param([source("m0", Period=30)], "whole minutes", id="a period below a minute"),
        pytest.param([{"Id": "e", "Expression": "e + 1"}], "refers to itself", id="a cycle"),
        pytest.param([{"Id": "e"}], "ends too early", id="no expression at all"),
        pytest.param(
            [source("m0") | {"ReturnData": False}, {"Id": "e", "Expression": "[m0]"}], "TS", id="an array"
        ),
        pytest.param([source("m0") | {"Expression": "m0"}], "both", id="metric and expression"),
    ],
)
def test_queries_that_make_no_sense_are_refused(queries: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(AwsError, match=says) as caught:
        read(queries)
    assert caught.value.code == "ValidationError"
