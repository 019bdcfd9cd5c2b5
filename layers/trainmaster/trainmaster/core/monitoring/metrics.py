"""Every metric of the plane, in CloudWatch's words, and what a change counts as.

Dashboard, alarms and documents are held to the table. Beside its own dimensions each metric has ``service``,
the name of the stack. A job's name is never a dimension: each value of one is a metric of its own, and is
paid for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

from trainmaster.core.costs.ledger import Cause, lost_to
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.lifecycle.change import (
    Change,
    EndKind,
    end_kind,
    failure_class,
    reason_of_end,
    status_is_news,
    stop_denied,
)
from trainmaster.core.memory.accelerators import gpus
from trainmaster.core.rules.violation import Outcome, ViolationRecord, says_the_same

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
    note: str = ""
    """What it is about, beside the figure in the log and no dimension: a row's key, say."""

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
    meaning="jobs that wait in the queue, each minute; held ones and those backing off are not counted",
)
OLDEST_WAIT = Metric(
    name="OldestWaitSeconds",
    unit=Unit.SECONDS,
    dimension="pool",
    also_whole=True,
    meaning="since the oldest of the jobs at the front of the queue that a pass did not start was submitted",
)
FIRST_UNSEEN = Metric(
    name="FirstUnseenSeconds",
    unit=Unit.SECONDS,
    meaning="for how long no pass has looked at the first job of a queue, the longest of all pools, each "
    "minute; 0 where nobody waits",
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
    dimension="pool",
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
    dimension="pool",
    also_whole=True,
    meaning="passes that were ended because they did again what they had done, and nothing else",
)
CHAINS_ENDED = Metric(
    name="ChainsEnded",
    unit=Unit.COUNT,
    dimension="pool",
    also_whole=True,
    meaning="passes not finished, as the last of 50 in a row that did nothing; the minute's wake-up goes on",
)
SET_ASIDE = Metric(
    name="RowsSetAside",
    unit=Unit.COUNT,
    dimension="pool",
    also_whole=True,
    meaning="rows that could not be understood and were left as they are; the log has their keys",
)
OUTDATED_DEFAULTS = Metric(
    name="OutdatedDefaults",
    unit=Unit.COUNT,
    meaning="what the policy leaves to an earlier release's defaults, and the next one that is put denies",
)
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        one.name: one
        for one in (
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
        )
    },
)

_HOUR = timedelta(hours=1)


def samples(change: Change) -> Iterator[Sample]:
    """What a change counts as, once it is written.

    Each is counted by whoever wrote it: a death before the samples are out loses them, and none is out twice.
    """
    yield from _samples_of_start(change)
    kind = end_kind(change)
    if kind is not None:
        yield from _samples_of_end(change, kind)
        yield from _samples_of_waste(change)
    if stop_denied(change) is not None:
        yield Sample(metric=VIOLATIONS, value=1, of=Outcome.NOT_STOPPED.value)
    if status_is_news(change):
        yield Sample(metric=UNKNOWN_STATUSES, value=1)


def samples_of_record(record: ViolationRecord, replaces: ViolationRecord | None) -> Iterator[Sample]:
    """What a record of a violation counts as; the same judgement of a later policy is none."""
    if replaces is None or not says_the_same(replaces, record):
        yield Sample(metric=VIOLATIONS, value=1, of=record.outcome.value)


def _samples_of_start(change: Change) -> Iterator[Sample]:
    spec, started = change.after.spec, _taken_by_sagemaker(change)
    if started is None:
        return
    yield Sample(metric=STARTS, value=1, of=spec.pool)
    if started.number == 0:
        waited = started.claim.at - spec.submitted_at
        yield Sample(metric=WAIT, value=waited.total_seconds(), of=spec.team)


def _taken_by_sagemaker(change: Change) -> Attempt | None:
    """The attempt, if this change is the first to know its training job."""
    before, after = change.before.live, change.ended or change.after.live
    if before is None or before.training_job_arn is not None or after is None:
        return None
    return after if after.training_job_arn is not None else None


def _samples_of_end(change: Change, kind: EndKind) -> Iterator[Sample]:
    match kind:
        case EndKind.PREEMPTED:
            yield Sample(metric=PREEMPTIONS, value=1, of=change.after.spec.pool)
        case EndKind.RETRIED:
            yield Sample(metric=RETRIES, value=1, of=failure_class(change))
        case EndKind.FAILED:
            yield Sample(metric=FAILURES, value=1, of=failure_class(change))
        case EndKind.MOVED_TO_ON_DEMAND:
            yield Sample(metric=SPOT_FALLBACKS, value=1)
        case EndKind.COMPLETED | EndKind.STOPPED | EndKind.REQUEUED:
            pass


def _samples_of_waste(change: Change) -> Iterator[Sample]:
    reason, ended = reason_of_end(change), change.ended
    if reason is not None and lost_to(reason.code) is Cause.IDLE:
        yield Sample(metric=IDLE_STOPS, value=1)
    if ended is not None and ended.lost:
        code = ended.reason.code if ended.reason else ""
        yield Sample(metric=WASTED, value=_gpu_hours_lost(ended), of=lost_to(code).value)


def _gpu_hours_lost(ended: Attempt) -> float:
    """Types whose GPUs nobody knows count as having none."""
    count = sum((gpus(one.instance_type) or 0) * number for one, number in ended.vector.items())
    return ended.lost / _HOUR * count
