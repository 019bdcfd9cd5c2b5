"""A tip at submission: what a shorter MaxRuntimeInSeconds is worth to a job that waits behind others."""

from datetime import timedelta

from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.model import JobSpec
from trainmaster.core.jobs.run_time import likely_length
from trainmaster.core.planning.wait_reasons import QueuePosition
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.kinds import duration_text

DEFAULT_LIMIT = timedelta(days=1)
"""MaxRuntimeInSeconds that is sent where nobody chose one. Source: SageMaker API, StoppingCondition."""
FAR_LONGER = 4
"""Times its likely length: below that a limit is a fair reserve against a slow run."""
LEAST_GAIN = timedelta(hours=1)
"""A limit that could be lowered by less is not worth a line."""
_MINUTE = timedelta(minutes=1)


def run_time_tip(spec: JobSpec, pool: PoolPolicy, position: QueuePosition) -> FieldError | None:
    """Return what its owner may do for an earlier start; None if nobody is ahead, or the limit seems chosen.

    Backfill takes a job before those ahead only if it is certain to end in time, and certain is the limit.
    """
    if not pool.order.backfill or position.number == 1:
        return None
    length, limit = likely_length(spec), duration_text(spec.max_runtime)
    if length is not None and spec.max_runtime >= max(FAR_LONGER * length, length + LEAST_GAIN):
        likely = duration_text(max(round(length / _MINUTE), 1) * _MINUTE)
        message = f"it may run for {limit}, and jobs like it train for about {likely}"
    elif length is None and spec.max_runtime == DEFAULT_LIMIT:
        message = f"it may run for {limit}, the default"
    else:
        return None
    return FieldError(
        field="StoppingCondition.MaxRuntimeInSeconds",
        message=f"{message}: it starts before a job ahead only if it is certain to end in time",
        hint="set max_run (MaxRuntimeInSeconds) to what the job may need at most, and it may start earlier",
    )
