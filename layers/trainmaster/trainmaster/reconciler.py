"""Closes what a crash, a lost event or a slow call left open. Each repair is valid by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.errors import TrainmasterError
from trainmaster.observer import Observer
from trainmaster.policy import parse_policy
from trainmaster.ports import Clock, Doorbell, JobReader, PolicyStore, QueueReader
from trainmaster.scheduling.snapshot import RunningJob

LOOKS = 100
"""Jobs described in one run: about 2 calls a second, below SageMaker's lowest reported rate limit."""
STRAYS = "-"
"""The doorbell's name for the pass over what belongs to no pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    policies: PolicyStore
    queue: QueueReader
    reader: JobReader
    observer: Observer
    doorbell: Doorbell
    clock: Clock

    def run(self) -> "Repairs":
        """Look at the live jobs of every pool, then wake every pool."""
        repairs = Repairs()
        pools = [pool.name for pool in parse_policy(self.policies.current().document).pools]
        live = [entry for pool in pools for entry in self.queue.running(pool)]
        for entry in due(live, now=self.clock()):
            self._repair(entry, repairs)
        self.doorbell.ring([*pools, STRAYS])
        return repairs

    def _repair(self, entry: RunningJob, repairs: "Repairs") -> None:
        """One job SageMaker will not talk about must not keep the others waiting."""
        try:
            job = self.reader.job(entry.name)
            if job is not None and job.is_live and self.observer.look(job) is not None:
                repairs.changed.append(entry.name)
        except TrainmasterError as error:
            repairs.failures.append(error)


@dataclass(slots=True)
class Repairs:
    changed: list[str] = field(default_factory=list)
    failures: list[TrainmasterError] = field(default_factory=list)


def due(live: Sequence[RunningJob], *, now: datetime) -> list[RunningJob]:
    """Whom to look at now: nobody whose claim is still under way; the rest in turn, ``LOOKS`` a minute."""
    open_to_repair = [job for job in live if job.known_to_sagemaker or job.lease_until <= now]
    if len(open_to_repair) <= LOOKS:
        return open_to_repair
    first = int(now.timestamp() // 60) * LOOKS % len(open_to_repair)
    return [*open_to_repair[first:], *open_to_repair[:first]][:LOOKS]
