"""Closes what a crash, a lost event or a slow call left open. Each repair is valid by itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.checkpoints import looked_at, needs_look
from trainmaster.core.monitoring.metrics import QUEUE_DEPTH, UNGUARDED, Sample
from trainmaster.core.outbox import checkpoints_unreadable_notice, to_tell
from trainmaster.core.outbox.texts.refusals import PlatformSubject
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy import UNMANAGED, parse_policy
from trainmaster.ports import CheckpointReader, Clock, JobReader, JobStore, PolicyStore, QueueReader, WakeUps
from trainmaster.services.alarm_sweep import AlarmSweep, Readings
from trainmaster.services.observer import Observer
from trainmaster.services.unmanaged_jobs import UnmanagedJobSweep


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
        if not newest.is_readable:
            self._tell_operators(job, job.spec.checkpoint_uri)
        after = looked_at(job, newest, max_age=max_age, now=self.clock())
        if after != job:
            self.store.commit([Change(before=job, after=after)], at=self.clock())

    def _tell_operators(self, job: Job, uri: str) -> None:
        """Once a pool: the users of one bucket know no others, and those who run the stack know all."""
        subject = PlatformSubject.CHECKPOINTS_UNREADABLE
        notice = checkpoints_unreadable_notice(uri, job=job.name)
        message = to_tell(notice, cause=f"{job.spec.pool}#{subject}", at=self.clock())
        self.store.leave_once(job.spec.pool, message, subject=subject)


LOOKS = 100
"""Jobs described in one run: about 2 calls a second, below SageMaker's lowest reported rate limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    policies: PolicyStore
    queue: QueueReader
    reader: JobReader
    observer: Observer
    alarm_sweep: AlarmSweep
    checkpoint_looks: CheckpointLooks
    sweep: UnmanagedJobSweep
    wake_ups: WakeUps
    clock: Clock

    def run(self) -> "Repairs":
        """Look at the live jobs of every pool, their alarms and their checkpoints; then wake every pool."""
        repairs = Repairs()
        policy = parse_policy(self.policies.current().document)
        pools = [*(pool.name for pool in policy.pools), UNMANAGED]
        readings = self._alarms(repairs)
        live = {pool: self.queue.running(pool) for pool in pools}
        everybody = [entry for entries in live.values() for entry in entries]
        repairs.unmonitored = sum(entry.unmonitored is not None for entry in everybody)
        for entry in due(everybody, now=self.clock()):
            self._repair(entry, repairs)
        if readings is not None:
            repairs.failures += self.alarm_sweep.run(readings, everybody, policy.governing)
        for pool, entries in live.items():
            depth = self.queue.queue_length(pool)
            repairs.depths[pool] = depth
            max_age = policy.governing.checkpoints.max_age
            repairs.failures += self.checkpoint_looks.run(entries, others_wait=depth > 0, max_age=max_age)
        repairs.failures += self.sweep.run()
        self.wake_ups.send(pools)
        return repairs

    def _alarms(self, repairs: "Repairs") -> Readings | None:
        """None: CloudWatch does not tell; the rest of the run goes on without."""
        try:
            return self.alarm_sweep.read()
        except TrainmasterError as error:
            repairs.failures.append(error)
            return None

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
    depths: dict[str, int] = field(default_factory=dict)
    """Jobs that wait in their turn, by pool."""
    unmonitored: int = 0
    """Running jobs whose GPUs go unwatched although the policy wants it."""

    def samples(self) -> Iterator[Sample]:
        for pool, depth in self.depths.items():
            yield Sample(metric=QUEUE_DEPTH, value=depth, of=pool)
        yield Sample(metric=UNGUARDED, value=self.unmonitored)


def due(live: Sequence[RunningJob], *, now: datetime) -> list[RunningJob]:
    """Whom to look at now: nobody whose claim is still under way; the rest in turn, ``LOOKS`` a minute."""
    open_to_repair = [job for job in live if job.known_to_sagemaker or job.lease_until <= now]
    if len(open_to_repair) <= LOOKS:
        return open_to_repair
    first = int(now.timestamp() // 60) * LOOKS % len(open_to_repair)
    return [*open_to_repair[first:], *open_to_repair[:first]][:LOOKS]
