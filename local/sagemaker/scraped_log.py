"""A job's log on its way to CloudWatch, and the metrics in its lines with it."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from local.sagemaker.loads import Sample
from local.sagemaker.metric_definitions import Definitions, Emitted
from local.sagemaker.ports import LogLine, LogSink, MetricSink

_DIMENSION = "TrainingJobName"
"""Source: SageMaker Python SDK 2.257, analytics.py, TrainingJobAnalytics."""


class ScrapedLog:
    """A ``LogSink`` of one job that publishes the metrics in its lines and passes the lines on."""

    def __init__(
        self, training_job: str, definitions: Definitions, *, logs: LogSink, metrics: MetricSink
    ) -> None:
        self._training_job = training_job
        self._definitions = definitions
        self._logs = logs
        self._metrics = metrics
        self._lock = threading.Lock()
        self._last: dict[str, Emitted] = {}

    def put(self, group: str, stream: str, lines: Sequence[LogLine]) -> None:
        for line in lines:
            for name, value in self._definitions.values_in(line.message):
                at = datetime.fromtimestamp(line.timestamp_ms / 1000, UTC)
                self._publish(Emitted(name=name, value=value, at=at))
        self._logs.put(group, stream, lines)

    def last(self) -> tuple[Emitted, ...]:
        """Return the newest value of each metric, over all hosts."""
        with self._lock:
            return tuple(self._last.values())

    def _publish(self, emitted: Emitted) -> None:
        dimension = (_DIMENSION, self._training_job)
        sample = Sample(metric=emitted.name, dimension=dimension, value=emitted.value, unit="None")
        self._metrics.put(sample, at=emitted.at)
        with self._lock:
            self._last[emitted.name] = emitted
