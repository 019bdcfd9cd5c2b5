"""Looks for the newest checkpoints of running jobs: what a preemption would lose, and who saves no more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.checkpoints import looked_at, needs_look
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.ports import CheckpointReader, Clock, JobReader, JobStore


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLooks:
    reader: JobReader
    store: JobStore
    checkpoints: CheckpointReader
    clock: Clock

    def run(
        self, live: Sequence[RunningJob], *, others_wait: bool, max_age: timedelta
    ) -> Iterator[TrainmasterError]:
        """The jobs of one pool; yields what could not be done, for the next run."""
        for entry in live:
            if needs_look(entry, others_wait=others_wait, max_age=max_age, now=self.clock()):
                try:
                    self._look(entry.name, max_age)
                except TrainmasterError as error:
                    yield error

    def _look(self, name: str, max_age: timedelta) -> None:
        job = self.reader.job(name)
        if job is None or job.live is None or job.spec.checkpoint_uri is None:
            return
        newest = self.checkpoints.newest(job.spec.checkpoint_uri)
        after = looked_at(job, newest, max_age=max_age, now=self.clock())
        if after != job:
            self.store.commit([Change(before=job, after=after)], at=self.clock())
