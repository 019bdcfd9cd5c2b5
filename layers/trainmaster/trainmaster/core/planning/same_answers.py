"""What a job is answered that asks for the same as one that was just told to wait."""

from dataclasses import dataclass, field

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob

_Asked = tuple[str, int, tuple[tuple[Capacity, int], ...]]
"""Team, tier, and the instances."""


@dataclass(slots=True, kw_only=True)
class SameAnswers:
    """Of one plan. They hold as long as nothing is given away, kept or freed: then all of them are forgotten.

    Nothing else about a job decides once it fits nowhere, others wait ahead, and nobody may be stopped for
    one of its priority.
    """

    by_request: dict[_Asked, tuple[int, Reason]] = field(default_factory=dict)
    """The highest priority that was answered, and what."""

    def of(self, job: WaitingJob, tier: int) -> Reason | None:
        """None: it has to be looked at."""
        if not self.by_request or not _is_plain(job):
            return None
        priority, reason = self.by_request.get(_asked(job, tier), (-1, None))
        return reason if job.priority <= priority else None

    def note(self, job: WaitingJob, tier: int, reason: Reason, snapshot: Snapshot) -> None:
        """It waits behind others. With budgets and warm pools more counts than what it asks for."""
        if _is_plain(job) and not snapshot.budgets and not snapshot.warm_pools:
            self.by_request[_asked(job, tier)] = (job.priority, reason)

    def forget(self) -> None:
        self.by_request.clear()


def _is_plain(job: WaitingJob) -> bool:
    return len(job.shapes) == 1 and job.refused is None


def _asked(job: WaitingJob, tier: int) -> _Asked:
    return (job.team, tier, tuple(job.shapes[0].vector.items()))
