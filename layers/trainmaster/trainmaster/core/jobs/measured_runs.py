"""Which ended attempts tell how fast their job's kind of work is done in their shape."""

from trainmaster.core.durations.work_speeds import SHORTEST_TRAINING, MeasuredRun
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import vector_text
from trainmaster.core.jobs.model import JobSpec


def measured_run(spec: JobSpec, attempt: Attempt) -> MeasuredRun | None:
    """Return what an ended attempt tells; None if it tells nothing that later jobs can rely on.

    Attempts of several types are left out, as no one shape did the work, and those on training plans, whose
    instances are paid for in advance.
    """
    if spec.work_kind is None or attempt.speed is None or attempt.end is None or len(attempt.vector) != 1:
        return None
    if attempt.trained is None or attempt.trained < SHORTEST_TRAINING:
        return None
    if any(capacity.is_plan for capacity in attempt.vector):
        return None
    return MeasuredRun(
        shape=vector_text(attempt.vector),
        speed=attempt.speed,
        ended_at=attempt.end.at,
        settings=spec.work_kind.partition(":")[2],
    )
