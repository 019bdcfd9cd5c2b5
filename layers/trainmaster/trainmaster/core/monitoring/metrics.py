"""Every metric of the plane, in CloudWatch's words; dashboard, alarms and documents are held to it.

Beside its own dimensions each has ``service``, the name of the stack. A job's name is never a dimension: each
value of one is a metric of its own, and is paid for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

NAMESPACE = "trainmaster"
STACK = "service"
"""The dimension that Powertools puts on every metric; its value is the name of the stack."""


class Unit(StrEnum):
    COUNT = "Count"
    SECONDS = "Seconds"
    NONE = "None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str
    unit: Unit
    meaning: str
    dimension: str | None = None
    """Beside ``service``."""
    also_whole: bool = False
    """Written without its dimension too: an alarm cannot know the pools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    metric: Metric
    value: float
    of: str = ""
    """Value of the metric's dimension."""

    @property
    def dimensions(self) -> tuple[Mapping[str, str], ...]:
        """Sets of dimensions that it is written with, beside ``service``."""
        if self.metric.dimension is None:
            return ({},)
        own = {self.metric.dimension: self.of}
        return (own, {}) if self.metric.also_whole else (own,)


QUEUE_DEPTH = Metric(
    name="QueueDepth",
    unit=Unit.COUNT,
    dimension="pool",
    meaning="jobs that wait in their turn, each minute; held ones and those backing off are not counted",
)
OLDEST_WAIT = Metric(
    name="OldestWaitSeconds",
    unit=Unit.SECONDS,
    dimension="pool",
    also_whole=True,
    meaning="since the oldest of the jobs at the front of the queue that a pass did not start was submitted",
)
WAIT = Metric(
    name="WaitSeconds",
    unit=Unit.SECONDS,
    dimension="team",
    meaning="from the submission of a job to its first start",
)
STARTS = Metric(name="Starts", unit=Unit.COUNT, dimension="pool", meaning="attempts that SageMaker took")
PREEMPTIONS = Metric(
    name="Preemptions", unit=Unit.COUNT, dimension="pool", meaning="attempts that stopped for another job"
)
WASTED = Metric(
    name="WastedGpuHours",
    unit=Unit.NONE,
    dimension="cause",
    meaning="training that has to be done again or was for nothing, times instances, times GPUs of each",
)
IDLE_STOPS = Metric(
    name="IdleStops", unit=Unit.COUNT, meaning="attempts that were stopped because their GPUs did nothing"
)
RETRIES = Metric(
    name="Retries",
    unit=Unit.COUNT,
    dimension="failure_class",
    meaning="attempts that failed or found no instances, and whose job comes back",
)
FAILURES = Metric(
    name="Failures", unit=Unit.COUNT, dimension="failure_class", meaning="jobs that failed for good"
)
VIOLATIONS = Metric(
    name="Violations",
    unit=Unit.COUNT,
    dimension="outcome",
    meaning="training jobs that went round the queue, and queued ones that break an audited rule",
)
UNGUARDED = Metric(
    name="UnguardedJobs", unit=Unit.COUNT, meaning="running jobs whose GPUs should be watched and are not"
)
SPOT_FALLBACKS = Metric(
    name="SpotFallbacks", unit=Unit.COUNT, meaning="spot jobs that moved to on-demand instances"
)
MESSAGES_PENDING = Metric(
    name="ErrandsPending",
    unit=Unit.COUNT,
    dimension="pool",
    also_whole=True,
    meaning="what is to be told or tidied up for more than five minutes and was not yet; it counts to 100",
)
SERVER_ERRORS = Metric(
    name="ServerErrors", unit=Unit.COUNT, meaning="calls of the API that were answered with 5xx"
)
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        one.name: one
        for one in (
            QUEUE_DEPTH,
            OLDEST_WAIT,
            WAIT,
            STARTS,
            PREEMPTIONS,
            WASTED,
            IDLE_STOPS,
            RETRIES,
            FAILURES,
            VIOLATIONS,
            UNGUARDED,
            SPOT_FALLBACKS,
            MESSAGES_PENDING,
            SERVER_ERRORS,
        )
    },
)
