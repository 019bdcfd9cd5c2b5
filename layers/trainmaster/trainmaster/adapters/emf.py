"""Metrics as lines of the log, which CloudWatch reads: its embedded metric format, by Powertools."""

from collections.abc import Iterable
from itertools import groupby

from aws_lambda_powertools.metrics import EphemeralMetrics

from trainmaster.metrics import Sample


def write(samples: Iterable[Sample], *, stack: str) -> None:
    """One line for all samples with the same dimensions. The namespace is POWERTOOLS_METRICS_NAMESPACE."""
    ordered = sorted(samples, key=_dimensions)
    for dimensions, same in groupby(ordered, key=_dimensions):
        line = EphemeralMetrics(service=stack)
        for name, content in dimensions:
            line.add_dimension(name=name, value=content)
        for sample in same:
            line.add_metric(name=sample.metric.name, unit=sample.metric.unit.value, value=sample.value)
        line.flush_metrics()


def _dimensions(sample: Sample) -> tuple[tuple[str, str], ...]:
    return tuple(sample.dimensions.items())
