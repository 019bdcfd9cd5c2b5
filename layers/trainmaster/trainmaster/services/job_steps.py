"""Apply a step to one job as it is at the write: after a lost race the step sees the new state."""

from collections.abc import Callable
from dataclasses import replace

from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.ports import Clock, JobStore

TRIES = 5
"""Tries against events, passes and calls that change the same job; each takes milliseconds."""


def change_job(
    job: Job | None,
    step: Callable[[Job], Change | None],
    *,
    read: Callable[[], Job | None],
    store: JobStore,
    clock: Clock,
) -> Change | None:
    """Apply the step and write its result; after a lost race apply it to the job as it is then.

    Crash safety: one transaction, conditional on the version that the step has seen.

    Args:
        job: The job as it was read; None if it is gone.
        step: Returns the change to make, or None for no change. It may refuse by raising.
        read: Reads the job again.
        store: Writes the change.
        clock: Gives the time of the write.

    Returns:
        The change as written; None if nothing was written.

    Raises:
        LostRaceError: Others kept changing the job.
    """
    for _ in range(TRIES):
        change = None if job is None else step(job)
        if change is None:
            return None
        try:
            (after,) = store.commit([change], at=clock())
        except LostRaceError:
            job = read()
        else:
            return replace(change, after=after)
    raise LostRaceError("the job kept changing; try again")
