"""Said at submission of MaxRuntimeInSeconds: the default that holds, and what a shorter one is worth."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.model import JobSpec
from trainmaster.core.jobs.run_time import likely_length
from trainmaster.core.planning.wait_reasons import QueuePosition
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.kinds import duration_text
from trainmaster.core.request.completion import DEFAULT_RUNTIME, has_runtime
from trainmaster.core.request.request import Ask
from trainmaster.core.submission.request_places import Places

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
    elif length is None and spec.max_runtime == DEFAULT_RUNTIME:
        message = f"it may run for {limit}, the default"
    else:
        return None
    return FieldError(
        field=Places.RUNTIME,
        message=f"{message}: it starts before a job ahead only if it is certain to end in time",
        hint="set max_run (MaxRuntimeInSeconds) to what the job may need at most, and it may start earlier",
    )


def default_run_time_warnings(sent: Mapping[str, Any], ask: Ask) -> Iterator[FieldError]:
    """Yield that the job gets a default, if the request as sent has no run time."""
    if not has_runtime(sent):
        seconds = int(ask.max_runtime.total_seconds())
        usual = int(DEFAULT_RUNTIME.total_seconds())
        whose = "SageMaker's own default" if seconds == usual else "which is what max_runtime allows"
        yield FieldError(
            field=Places.RUNTIME,
            message=f"is not given: the job is stopped after {seconds} s, {whose}",
            hint="give the seconds after which SageMaker is to stop it",
        )
