"""One step of a job, as it is written."""

from dataclasses import dataclass

from trainmaster.core.jobs.model import Attempt, Job, Reason
from trainmaster.core.planning.snapshot import WarmPool


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One job from one version to the next; the store derives every row that follows from it."""

    before: Job
    after: Job
    ended: Attempt | None = None
    """The attempt that is over, as it is to be remembered."""
    leaves_warm: WarmPool | None = None
    """What SageMaker kept of it: from now on counted as warm, no longer as used."""
    note: Reason | None = None
    """Who wanted it, for the history; with it there is a line even where the state stays."""
