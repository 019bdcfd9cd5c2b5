"""Answers to jobs that ask for the same as one that was just made to wait."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from trainmaster.core.planning.backfill import BackfillReservation
from trainmaster.core.planning.quotas import Quotas
from trainmaster.core.planning.snapshot import Held, Snapshot, WaitingJob

_Party = tuple[int, str]
"""Tier and team, as ``Quotas.party`` returns them."""
_Asked = tuple[_Party, Held, bool]
"""A demand: the party, the instances, and whether it asks no price."""
_Answer = tuple[int, timedelta, BackfillReservation]
"""The highest priority and the shortest run that were answered, and the reservation ahead."""


@dataclass(kw_only=True)
class SameAnswers:
    """Answers of one plan.

    They hold until something is given away, kept or freed: then all of them are forgotten.

    Nothing else about a job decides once it fits nowhere, others wait ahead, and none may be stopped for
    one of its priority. A warm pool of its own would have been given up for the one that was answered.
    """

    snapshot: Snapshot
    quotas: Quotas
    asks_no_price: Callable[[WaitingJob], bool]
    """``Preemptions.asks_no_price``."""
    are_kept: bool = True
    """False where equal demands do not get equal answers: training plans are for some of them only."""
    by_request: dict[_Asked, _Answer] = field(default_factory=dict)

    def of(self, job: WaitingJob) -> BackfillReservation | None:
        """Return the reservation ahead of it.

        None means that it must be considered, as a shorter job might pass those ahead.
        """
        if not self.by_request or not _is_plain(job):
            return None
        answer = self.by_request.get(self._asked(job))
        if answer is None:
            return None
        priority, runs_at_most, first = answer
        # A higher priority might preempt, and a shorter run might backfill: such a job must be considered
        # itself.
        return first if job.priority <= priority and job.runs_at_most >= runs_at_most else None

    def note(self, job: WaitingJob, first: BackfillReservation) -> None:
        """Record that it waits behind others; not with budgets, as more than its demand counts then."""
        if self.are_kept and _is_plain(job) and not self.snapshot.budgets:
            self.by_request[self._asked(job)] = (job.priority, job.runs_at_most, first)

    def _asked(self, job: WaitingJob) -> _Asked:
        return self.quotas.party(job), job.held, self.asks_no_price(job)

    def forget(self) -> None:
        self.by_request.clear()


def _is_plain(job: WaitingJob) -> bool:
    """Tell whether only its demand, priority and length decide about it."""
    if job.own_quota is not None:  # what its team uses decides, too
        return False
    return len(job.shapes) == 1 and not job.is_refused and job.futile is None and job.max_wait is None
