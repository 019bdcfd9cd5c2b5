"""A step of one job as it is at the write: whoever was faster has won, and the step sees what came of it."""

from collections.abc import Callable
from dataclasses import replace

from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.ports import Clock, JobStore

TRIES = 5
"""Against the events, passes and calls that change the same job; each takes milliseconds."""


def change_job(
    job: Job | None,
    step: Callable[[Job], Change | None],
    *,
    read: Callable[[], Job | None],
    store: JobStore,
    clock: Clock,
) -> Change | None:
    """Apply the step and write what it makes of the job; after a lost race on the job as it is then.

    Crash safety: one transaction, conditional on the version that the step has seen.

    Args:
        job: As it was read; None: it is gone.
        step: What to do about the job; None: nothing. May refuse by raising.
        read: Reads it again.
        store: Writes the change.
        clock: Of the write.

    Returns:
        The change as written, None when nothing was.

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
