"""Looks for training jobs that run and that nobody has heard of: a lost event costs minutes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.jobs.observations import Listed
from trainmaster.core.rules.violation import Outcome
from trainmaster.ports import Clock, JobReader, PolicyStore, TrainingJobReader, ViolationReader
from trainmaster.services.unmanaged_jobs import Strays

EVERY_MINUTES = 5
"""A run of ``reconcile`` comes each minute."""
MOST_LISTED = 100
MOST_LOOKS = 20
"""Training jobs described in one sweep, two calls each, beside what ``reconcile`` describes anyway."""
_SETTLED = frozenset({Outcome.AUDITED, Outcome.NOT_STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    training: TrainingJobReader
    policies: PolicyStore
    reader: JobReader
    records: ViolationReader
    strays: Strays
    clock: Clock

    def run(self) -> Iterator[TrainmasterError]:
        """As if an event of each had come; yields what could not be done, for the next sweep."""
        now = self.clock()
        if _minute(now) % EVERY_MINUTES:
            return
        try:
            unheard = self._unheard_of()
        except TrainmasterError as error:
            yield error
            return
        for name in in_turn(unheard, now=now):
            try:
                self.strays.hear(name, tagged=True)
            except TrainmasterError as error:
                yield error

    def _unheard_of(self) -> list[str]:
        revision = self.policies.current().revision
        listed = self.training.in_progress(limit=MOST_LISTED)
        return [one.training_job_name for one in listed if not self._is_settled(one, revision)]

    def _is_settled(self, one: Listed, revision: int) -> bool:
        """It has a job, or the policy in force has judged it and there is nothing left to do."""
        if self.reader.alias(one.training_job_name) is not None:
            return True
        found = self.records.violation(one.training_job_name, at=one.created_at)
        return found is not None and found.revision == revision and found.outcome in _SETTLED


def in_turn(names: Sequence[str], *, now: datetime) -> list[str]:
    """At most ``MOST_LOOKS``; where there are more, others in the next sweep."""
    if len(names) <= MOST_LOOKS:
        return list(names)
    first = _minute(now) // EVERY_MINUTES * MOST_LOOKS % len(names)
    return [*names[first:], *names[:first]][:MOST_LOOKS]


def _minute(now: datetime) -> int:
    return int(now.timestamp() // 60)
