"""The table of ends: what each end that SageMaker knows makes of a job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from trainmaster.core.jobs.failures import Diagnosis
from trainmaster.core.jobs.model import Job, JobState, Reason
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode

_S = JobState


TERMINAL_STATUSES = frozenset({"Completed", "Failed", "Stopped"})
"""TrainingJobStatus values that are final. Source: SageMaker API, DescribeTrainingJob."""
PENDING_TIME_RAN_OUT = "MaxPendingTimeExceeded"
CAPACITY_ERROR = "CapacityError"
"""The code before the colon in FailureReason when the instances could not be provisioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The attempt after one that failed; it is charged to the job."""

    wait: timedelta
    """The back-off before it."""
    waiting: Reason
    rewritten: Mapping[str, str] = field(default_factory=dict)
    """Hyperparameters that the batch was halved with; empty where it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What a SageMaker end makes of a job."""

    becomes: JobState
    reason: Reason
    """Why the attempt is over, and the job with it unless it comes back."""
    of_attempt: Reason | None = None
    """What is kept of it with the attempt, where the job's reason says more."""
    diagnosis: Diagnosis | None = None
    """Of a failure that was looked into."""
    retry: Retry | None = None
    """Of a failure that the job comes back from."""
    moves: bool = False
    """From now on it asks for on-demand instances."""


def end_of(job: Job, seen: Observation | None) -> End | None:
    """The table of ends; None while the training job has not ended.

    What policy decides comes after it: ``retrying`` about failures, ``spot_rules`` about spot attempts.
    ``seen`` is None when SageMaker does not know the training job (any more).
    """
    assert job.is_live, job.state
    if seen is None:
        return _end(_S.FAILED, ReasonCode.DELETED_OUTSIDE, "the training job was deleted in SageMaker")
    if seen.status not in TERMINAL_STATUSES:
        return None
    return _ended(job, seen)


def _ended(job: Job, seen: Observation) -> End:
    stopping = job.state is JobState.STOPPING
    match (seen.status, seen.secondary_status):
        case ("Completed", _):
            return _end(_S.COMPLETED, ReasonCode.COMPLETED, "the training job completed")
        case ("Stopped", "MaxRuntimeExceeded"):
            return _end(
                _S.STOPPED, ReasonCode.MAX_RUNTIME, "the training job reached its MaxRuntimeInSeconds"
            )
        case _ if stopping:
            return End(becomes=_S.STOPPED, reason=job.reason or _STOPPED_BY_USER)
        case ("Stopped", "MaxWaitTimeExceeded"):
            return _end(_S.STOPPED, ReasonCode.MAX_WAIT, "the spot job reached its MaxWaitTimeInSeconds")
        case ("Failed", _):
            return _failed(seen)
        case ("Stopped", secondary) if secondary == PENDING_TIME_RAN_OUT:
            return _end(_S.PENDING, ReasonCode.CAPACITY, "SageMaker had no instances within the pending time")
        case _ if job.state is JobState.PREEMPTING:
            return End(becomes=_S.PREEMPTED, reason=job.reason or _PREEMPTED)
        case _:
            return _end(
                _S.STOPPED, ReasonCode.STOPPED_OUTSIDE, "somebody stopped the training job in SageMaker"
            )


def _failed(seen: Observation) -> End:
    text = seen.failure_reason or "SageMaker gave no reason"
    if text.partition(":")[0].strip() == CAPACITY_ERROR:
        return _end(_S.PENDING, ReasonCode.CAPACITY, text)
    return _end(_S.FAILED, ReasonCode.UNKNOWN, text)


def _end(becomes: JobState, code: ReasonCode, message: str) -> End:
    return End(becomes=becomes, reason=Reason(code=code, message=message))


_STOPPED_BY_USER = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped on request")
_PREEMPTED = Reason(code=ReasonCode.PREEMPTION, message="made room for a job that ranks ahead")
