"""Closes what a crash, a lost event or a slow call left open. Each repair is valid by itself."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster import lifecycle
from trainmaster.errors import TrainmasterError
from trainmaster.observer import Observer
from trainmaster.policy import parse_policy
from trainmaster.ports import (
    Change,
    CheckpointReader,
    Clock,
    Doorbell,
    JobReader,
    JobStore,
    PolicyStore,
    QueueReader,
)
from trainmaster.scheduling.snapshot import RunningJob

LOOKS = 100
"""Jobs described in one run: about 2 calls a second, below SageMaker's lowest reported rate limit."""
CHECKPOINT_RUNS = 5
"""A run comes each minute: the checkpoints of a job are looked at every five."""
STRAYS = "-"
"""The doorbell's name for the pass over what belongs to no pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    policies: PolicyStore
    queue: QueueReader
    reader: JobReader
    observer: Observer
    store: JobStore
    checkpoints: CheckpointReader
    doorbell: Doorbell
    clock: Clock

    def run(self) -> "Repairs":
        """Look at the live jobs of every pool, and at checkpoints where jobs wait; then wake every pool."""
        repairs = Repairs()
        pools = [pool.name for pool in parse_policy(self.policies.current().document).pools]
        live = [entry for pool in pools for entry in self.queue.running(pool)]
        for entry in due(live, now=self.clock()):
            self._repair(entry, repairs)
        for pool in pools:
            if self.queue.queue_length(pool):
                self._look_for_checkpoints(pool, repairs)
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

    def _look_for_checkpoints(self, pool: str, repairs: "Repairs") -> None:
        """Whom a preemption would cost least depends on the age of what is saved."""
        for entry in self.queue.running(pool):
            if entry.training_since is not None and looks_at(entry.name, now=self.clock()):
                try:
                    self._look_for_checkpoint(entry.name)
                except TrainmasterError as error:
                    repairs.failures.append(error)

    def _look_for_checkpoint(self, name: str) -> None:
        job = self.reader.job(name)
        if job is None or job.live is None or job.spec.checkpoint_uri is None:
            return
        after = lifecycle.checkpoint_seen(job, self.checkpoints.newest(job.spec.checkpoint_uri))
        if after != job:
            self.store.commit([Change(before=job, after=after)], at=self.clock())


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


def looks_at(name: str, *, now: datetime) -> bool:
    """Each job once in five runs, not all in the same."""
    turn = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big")
    return int(now.timestamp() // 60) % CHECKPOINT_RUNS == turn % CHECKPOINT_RUNS
