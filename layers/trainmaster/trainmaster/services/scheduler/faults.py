"""Handle our own faults while a job was about to start, so that one job does not fail every pass."""

from contextlib import suppress

from trainmaster.core.errors import TrainmasterError, WriteRefusedError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.services.scheduler.context import PassContext

MAX_MESSAGE = 500


def blame(waiting: WaitingJob, fault: Exception, context: PassContext) -> None:
    """Count the fault for the job; after a few the job stands aside, and operators are notified once.

    If that cannot be written, the next pass counts.
    """
    message = f"trainmaster failed to start it: {type(fault).__name__}: {fault}"[:MAX_MESSAGE]
    with suppress(TrainmasterError):
        job = context.reader.job(waiting.name)
        if job is None or job.is_final:
            return
        counted = steps.faulted(job, message=message, now=context.clock())
        if isinstance(fault, WriteRefusedError) and job.is_waiting:
            _say_at_once(job, counted, message, context)
        else:
            context.store.commit([Change(before=job, after=counted)], at=context.clock())


def _say_at_once(job: Job, counted: Job, message: str, context: PassContext) -> None:
    """Explain the fault to the job's owner at once, as trying again changes nothing.

    Standing aside is counted in the team's row, which may be the very one that takes no more.
    """
    reason = Reason(code=ReasonCode.BACKOFF, message=message)
    for after in (steps.explained(counted, reason), steps.explained(job, reason)):
        with suppress(WriteRefusedError):
            context.store.commit([Change(before=job, after=after)], at=context.clock())
            return
