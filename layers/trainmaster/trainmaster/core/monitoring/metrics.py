"""Table of every metric of the plane, in CloudWatch's words.

Tests compare dashboard, alarms and documents with it. Beside its own dimensions each metric has ``service``,
the name of the stack. A job's name is never a dimension: each value of one is a metric of its own, and is
paid for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

NAMESPACE = "trainmaster"
STACK = "service"
"""Dimension that Powertools puts on every metric; its value is the name of the stack."""


class Unit(StrEnum):
    COUNT = "Count"
    SECONDS = "Seconds"
    NONE = "None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str
    unit: Unit
    meaning: str
    dimensions: tuple[str, ...] = ()
    """Names of its dimensions, beside ``service``."""
    also_whole: bool = False
    """Whether it is written without its dimensions too, as an alarm cannot know the pools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    metric: Metric
    value: float
    of: str | tuple[str, ...] = ()
    """Values of the metric's dimensions; of a single one as it is."""
    note: str = ""
    """Subject of the sample, in the log beside the figure and no dimension; a row's key, say."""

    @property
    def dimensions(self) -> tuple[Mapping[str, str], ...]:
        """The sets of dimensions that it is written with, beside ``service``."""
        values = (self.of,) if isinstance(self.of, str) else self.of
        own = dict(zip(self.metric.dimensions, values, strict=True))
        return (own, {}) if self.metric.also_whole else (own,)


QUEUE_DEPTH = Metric(
    name="QueueDepth",
    unit=Unit.COUNT,
    dimensions=("pool",),
    meaning="jobs that wait in the queue, each minute; held ones and those backing off are not counted",
)
OLDEST_WAIT = Metric(
    name="OldestWaitSeconds",
    unit=Unit.SECONDS,
    dimensions=("pool",),
    also_whole=True,
    meaning="age of the oldest job at the front of the queue that a pass did not start",
)
FIRST_UNSEEN = Metric(
    name="FirstUnseenSeconds",
    unit=Unit.SECONDS,
    meaning="for how long no pass has looked at the first job of a queue, the longest of all pools, each "
    "minute; 0 where no job waits",
)
WAIT = Metric(
    name="WaitSeconds",
    unit=Unit.SECONDS,
    dimensions=("team",),
    meaning="from the submission of a job to its first start",
)
STARTS = Metric(name="Starts", unit=Unit.COUNT, dimensions=("pool",), meaning="attempts that SageMaker took")
PREEMPTIONS = Metric(
    name="Preemptions", unit=Unit.COUNT, dimensions=("pool",), meaning="attempts that stopped for another job"
)
WASTED = Metric(
    name="WastedGpuHours",
    unit=Unit.NONE,
    dimensions=("cause",),
    meaning="training that must be repeated or was wasted, times instances, times GPUs of each",
)
IDLE_STOPS = Metric(
    name="IdleStops", unit=Unit.COUNT, meaning="attempts that were stopped because their GPUs were idle"
)
RETRIES = Metric(
    name="Retries",
    unit=Unit.COUNT,
    dimensions=("failure_class",),
    meaning="attempts that failed or found no instances, and whose job comes back",
)
FAILURES = Metric(
    name="Failures",
    unit=Unit.COUNT,
    dimensions=("failure_class",),
    also_whole=True,
    meaning="jobs that failed for good",
)
STARTS_REFUSED = Metric(
    name="StartsRefused",
    unit=Unit.COUNT,
    dimensions=("pool",),
    also_whole=True,
    meaning="starts that AWS refused for a missing right or for what the request asks for; limits of the "
    "account are not counted",
)
STARTS_PAUSED = Metric(
    name="StartsPaused",
    unit=Unit.COUNT,
    dimensions=("pool",),
    also_whole=True,
    meaning="refused starts that begin a pause of all starts with a role, or that prolong one",
)
VIOLATIONS = Metric(
    name="Violations",
    unit=Unit.COUNT,
    dimensions=("outcome",),
    meaning="training jobs that bypassed the queue, and queued ones that break an audited rule",
)
UNGUARDED = Metric(
    name="UnguardedJobs", unit=Unit.COUNT, meaning="running jobs whose GPUs should be watched and are not"
)
UNKNOWN_STATUSES = Metric(
    name="UnknownStatuses",
    unit=Unit.COUNT,
    meaning="training jobs that came into a status which SageMaker's model does not have",
)
SPOT_FALLBACKS = Metric(
    name="SpotFallbacks", unit=Unit.COUNT, meaning="spot jobs that moved to on-demand instances"
)
MESSAGES_PENDING = Metric(
    name="ErrandsPending",
    unit=Unit.COUNT,
    dimensions=("pool",),
    also_whole=True,
    meaning="notices and clean-ups overdue by more than five minutes; it counts to 100",
)
SERVER_ERRORS = Metric(
    name="ServerErrors", unit=Unit.COUNT, meaning="calls of the API that were answered with 5xx"
)
REPAIRS_FAILED = Metric(
    name="RepairsFailed",
    unit=Unit.COUNT,
    meaning="looks and sweeps of a run of reconcile that failed for a reason no later run will do better at",
)
PASSES_REPEATED = Metric(
    name="PassesRepeated",
    unit=Unit.COUNT,
    dimensions=("pool",),
    also_whole=True,
    meaning="passes that were ended because they did again what they had done, and nothing else",
)
CHAINS_ENDED = Metric(
    name="ChainsEnded",
    unit=Unit.COUNT,
    dimensions=("pool",),
    also_whole=True,
    meaning="passes not finished, as the last of 50 in a row that did nothing; the minute's wake-up resumes",
)
SET_ASIDE = Metric(
    name="RowsSetAside",
    unit=Unit.COUNT,
    dimensions=("pool",),
    also_whole=True,
    meaning="rows that could not be understood and were left as they are; the log has their keys",
)
OUTDATED_DEFAULTS = Metric(
    name="OutdatedDefaults",
    unit=Unit.COUNT,
    meaning="what the policy leaves to an earlier release's defaults, and the next one that is put denies",
)
OF_INSTANCES = ("pool", "instance_type", "capacity_type")
USED = Metric(
    name="InstancesUsed",
    unit=Unit.COUNT,
    dimensions=OF_INSTANCES,
    meaning="instances that jobs of the pool hold, from the claim to the end of the attempt, each minute",
)
WARM = Metric(
    name="InstancesWarm",
    unit=Unit.COUNT,
    dimensions=OF_INSTANCES,
    meaning="instances of warm pools: billed, and kept for the next job of the same kind",
)
CAPACITY = Metric(
    name="InstancesCapacity",
    unit=Unit.COUNT,
    dimensions=OF_INSTANCES,
    meaning="instances that the policy gives the pool; 0 for a type that is in use and no longer in it",
)
JOBS_WAITING = Metric(
    name="JobsWaiting",
    unit=Unit.COUNT,
    dimensions=OF_INSTANCES,
    meaning="jobs that wait in the queue for this type, each minute, of the first 1,000 in the pool's order; "
    "one with a choice of types counts for its first, one with several types for each",
)
SPENT = Metric(
    name="SpentUsd",
    unit=Unit.NONE,
    dimensions=("team",),
    meaning="what attempts that ended cost, at list prices or those of the policy; without those whose price "
    "is unknown. Attempts alone: warm pools are not in it",
)
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            QUEUE_DEPTH,
            OLDEST_WAIT,
            FIRST_UNSEEN,
            WAIT,
            STARTS,
            PREEMPTIONS,
            WASTED,
            IDLE_STOPS,
            RETRIES,
            FAILURES,
            STARTS_REFUSED,
            STARTS_PAUSED,
            VIOLATIONS,
            UNGUARDED,
            UNKNOWN_STATUSES,
            SPOT_FALLBACKS,
            MESSAGES_PENDING,
            SERVER_ERRORS,
            REPAIRS_FAILED,
            PASSES_REPEATED,
            CHAINS_ENDED,
            SET_ASIDE,
            OUTDATED_DEFAULTS,
            USED,
            WARM,
            CAPACITY,
            JOBS_WAITING,
            SPENT,
        )
    },
)
