"""Metrics in lines of a log."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from local.cloudwatch.embedded import Embedded, embedded_in
from local.cloudwatch.metrics import Metric, Samples

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def line(**changes: Any) -> str:
    directive = {
        "Namespace": "trainmaster",
        "Dimensions": [["service"], ["service", "pool"]],
        "Metrics": [{"Name": "Waiting", "Unit": "Count"}],
    }
    about = {"Timestamp": int(NOON.timestamp() * 1000), "CloudWatchMetrics": [directive]}
    return json.dumps({"_aws": about, "service": "s", "pool": "gpu", "Waiting": [3.0, 5.0]} | changes)


def test_each_set_of_dimensions_is_a_metric_of_its_own() -> None:
    samples = Samples(count=2, total=8, least=3, most=5)
    sets = (frozenset({("service", "s")}), frozenset({("service", "s"), ("pool", "gpu")}))
    assert list(embedded_in(line())) == [
        Embedded(
            metric=Metric(namespace="trainmaster", name="Waiting", dimensions=one),
            samples=samples,
            unit="Count",
            at=NOON,
        )
        for one in sets
    ]


@pytest.mark.parametrize(
    "text",
    [
        "plain text",
        '{"message": "no metrics"}',
        'text that mentions "_aws"',
        line(Waiting="many"),
        line(_aws={"Timestamp": "now"}),
        '{"_aws": {"Timestamp": 1, "CloudWatchMetrics": [{"Namespace": "n"}]}}',
    ],
)
def test_any_other_line_holds_none(text: str) -> None:
    assert list(embedded_in(text)) == []
