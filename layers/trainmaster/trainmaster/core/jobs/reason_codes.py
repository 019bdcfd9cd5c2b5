"""Reason codes: every code that a reason can have.

The texts are the wire's: stored, shown, matched by programs.

A code this release does not know was stored by a newer one that was rolled back: it is kept and shown as
it is.
"""

from enum import StrEnum


class ReasonCode(StrEnum):
    """Reasons why a job waits, was stopped or ended, why a GPU is not monitored, what a user changed."""

    # why a job waits
    AHEAD = "ahead"
    RESERVATION = "reservation"
    CAPACITY = "capacity"
    """No free instances; also of an attempt that SageMaker had none for, and a failure class."""
    QUOTA = "quota"
    BUDGET = "budget"
    ACCOUNT_LIMIT = "account-limit"
    REFUSED = "refused"
    """AWS refused the request of its start, or of others with the same role, or a right is missing."""
    BACKOFF = "backoff"
    PAUSED = "paused"
    HELD = "held"
    DEPENDENCY = "dependency"
    """It waits for the ends of other jobs; also of a job that ended because a condition can hold no more."""
    WINDOW = "window"
    """The calendar has lowered the capacity, or will, or another team has reserved it; also of an attempt
    that is stopped for that, and comes back."""
    ARRAY_LIMIT = "array-limit"
    """The tasks of its array that run are as many as may at once."""
    RECOUNT = "recount"
    """The counters of its pool cannot be understood."""
    UNAVAILABLE = "unavailable"
    """SageMaker put a start off."""
    NOT_STOPPED = "not-stopped"
    """It was to be stopped, and AWS denies that."""

    # why an attempt starts in its shape
    CHEAPEST = "cheapest"
    """Earlier runs of its program got most work for a dollar in it, or in shapes that could not start."""

    # why an attempt is stopped, and comes back
    PREEMPTION = "preemption"
    """It is stopped for another job."""
    SPOT_FALLBACK = "spot-fallback"
    """It comes back on on-demand instances."""
    IDLE_REQUEUE = "idle-requeue"
    """Its GPUs were idle."""
    UNDERUSED_REQUEUE = "underused-requeue"
    """Its GPUs were used less than the policy expects."""
    SHRINK = "shrink"
    """It gives up instances for another job, and comes back narrower at once."""
    GROW = "grow"
    """It comes back wider, on instances that no other job can use."""
    MAX_RUNTIME_AT_WIDTH = "max-runtime-at-width"
    """The run time of a narrow attempt was over while steps were left."""
    RESTORED = "restored"
    """The table was restored to before its next attempt."""

    # why a job is over
    COMPLETED = "completed"
    FAILED = "failed"
    """The job failed; at an array, at least one of its tasks did not complete."""
    STOPPED_BY_USER = "stopped-by-user"
    STOPPED_OUTSIDE = "stopped-outside"
    """Its stop was requested neither by us nor through us."""
    DELETED_OUTSIDE = "deleted-outside"
    MAX_RUNTIME = "max-runtime"
    MAX_WAIT = "max-wait"
    IDLE = "idle"
    """Its GPUs were idle, and it is not requeued."""
    UNDERUSED = "underused"
    """Its GPUs were used less than the policy expects, and it is not requeued."""
    LOSS_NOT_FINITE = "loss-not-finite"
    """Its loss is infinite or no number."""
    LOSS_DIVERGED = "loss-diverged"
    """Its loss has risen above a multiple of its lowest level."""
    LOSS_PLATEAU = "loss-plateau"
    """Its loss has not fallen for as long as the policy allows."""
    FAILED_TO_START = "failed-to-start"
    NAME_TAKEN = "name-taken"

    # failure classes: an attempt that failed has its class as the code of its reason, see FailureClass
    SERVICE = "service"
    HARDWARE = "hardware"
    NETWORK = "network"
    GPU_OOM = "gpu-oom"
    HOST_OOM = "host-oom"
    DISK_FULL = "disk-full"
    DATA_ACCESS = "data-access"
    IMAGE = "image"
    USER_CODE = "user-code"
    UNKNOWN = "unknown"
    """The cause is not known; also of a start that was refused with an unknown error."""

    # why a spot job that should move to on-demand instances does not
    NO_FALLBACK = "no-fallback"
    NO_ON_DEMAND_CAPACITY = "no-on-demand-capacity"

    # why the GPUs of an attempt go unwatched
    UNKNOWN_TYPE = "unknown-type"
    MIXED_HOSTS = "mixed-hosts"
    TOO_MANY_HOSTS = "too-many-hosts"
    ALARM_QUOTA = "alarm-quota"
    ALARM_REFUSED = "alarm-refused"
    NO_METRICS = "no-metrics"
    """It has its alarms, and CloudWatch has no data for them."""

    # what else the history notes
    RELEASED = "released"
    PRIORITY = "priority"
    ADOPTED = "adopted"


class ForeignCode(str):
    """A stored code that this release does not know; no rule of it matches such a reason."""

    __slots__ = ()


Code = ReasonCode | ForeignCode


def parse_code(text: str) -> Code:
    """Parse a stored code. It never raises: a row that a newer release wrote must stay readable."""
    try:
        return ReasonCode(text)
    except ValueError:
        return ForeignCode(text)
