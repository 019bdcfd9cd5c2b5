"""Metrics in lines of a log.

Source: CloudWatch User Guide, "Specification: Embedded metric format".
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.cloudwatch.metrics import Metric, Samples

_MARK = '"_aws"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    metric: Metric
    samples: Samples
    unit: str
    at: datetime


def embedded_in(line: str) -> Iterator[Embedded]:
    """Yield the metrics that a line holds; none if it is not of that format, as CloudWatch does."""
    if _MARK not in line:
        return
    try:
        document = json.loads(line)
        about = document["_aws"]
        at = datetime.fromtimestamp(about["Timestamp"] / 1000, UTC)
        metrics = [
            metric for directive in about["CloudWatchMetrics"] for metric in _read(document, directive, at)
        ]
    except (ValueError, KeyError, TypeError):
        return
    yield from metrics


def _read(document: Mapping[str, Any], directive: Mapping[str, Any], at: datetime) -> Iterator[Embedded]:
    """Yield each metric once for each of its sets of dimensions."""
    for names in directive["Dimensions"]:
        dimensions = frozenset((name, str(document[name])) for name in names)
        for definition in directive["Metrics"]:
            name = definition["Name"]
            values = document[name] if isinstance(document[name], list) else [document[name]]
            yield Embedded(
                metric=Metric(namespace=directive["Namespace"], name=name, dimensions=dimensions),
                samples=Samples.of({"Values": [float(value) for value in values]}),
                unit=definition.get("Unit", "None"),
                at=at,
            )
