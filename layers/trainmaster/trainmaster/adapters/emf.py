"""Metrics as lines of the log, which CloudWatch reads: its embedded metric format, by Powertools."""

from collections import defaultdict
from collections.abc import Iterable

from aws_lambda_powertools.metrics import EphemeralMetrics

from trainmaster.core.monitoring.metrics import Sample


def write(samples: Iterable[Sample], *, stack: str) -> None:
    """Write one line for all samples with the same dimensions. The namespace is POWERTOOLS_METRICS_NAMESPACE.

    A sample with a note has a line of its own.
    """
    by_dimensions: dict[tuple[tuple[tuple[str, str], ...], str], list[Sample]] = defaultdict(list)
    for sample in samples:
        for dimensions in sample.dimensions:
            by_dimensions[tuple(dimensions.items()), sample.note].append(sample)
    for (own, note), same in by_dimensions.items():
        line = EphemeralMetrics(service=stack)
        if note:
            line.add_metadata(key="note", value=note)
        for name, content in own:
            line.add_dimension(name=name, value=content)
        for sample in same:
            line.add_metric(name=sample.metric.name, unit=sample.metric.unit.value, value=sample.value)
        if line.metric_set:  # of 100 values of one metric Powertools has written a line by itself
            line.flush_metrics()
