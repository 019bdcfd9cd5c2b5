"""Faults of ours while a job was about to start: one job must not fail every pass over its pool."""

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.services.scheduler.context import PassContext

MAX_MESSAGE = 500


def blame(waiting: WaitingJob, fault: Exception, context: PassContext) -> None:
    """Count it for the job; after a few the job stands aside, and operators are notified once.

    Where that cannot be written the next pass counts.
    """
    message = f"trainmaster failed to start it: {type(fault).__name__}: {fault}"[:MAX_MESSAGE]
    try:
        job = context.reader.job(waiting.name)
        if job is None or job.is_final:
            return
        after = steps.faulted(job, message=message, now=context.clock())
        context.store.commit([Change(before=job, after=after)], at=context.clock())
    except TrainmasterError:
        return
