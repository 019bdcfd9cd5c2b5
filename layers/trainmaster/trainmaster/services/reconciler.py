"""Closes what a crash, a lost event or a slow call left open. Each repair is valid by itself."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from trainmaster.core.errors import ThrottledError, TrainmasterError
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.checkpoints import looked_at, needs_look
from trainmaster.core.monitoring.metrics import OUTDATED_DEFAULTS, REPAIRS_FAILED, UNGUARDED, Sample
from trainmaster.core.outbox import checkpoints_unreadable_notice, to_tell
from trainmaster.core.outbox.texts.refusals import PlatformSubject
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy import DEFAULTS_RULE, UNMANAGED, UNMANAGED_POOL, Policy
from trainmaster.ports import (
    Beside,
    CheckpointReader,
    Clock,
    JobReader,
    JobStore,
    PolicyStore,
    QueueReader,
    Rotation,
    WakeUps,
)
from trainmaster.services.alarm_sweep import AlarmSweep, Readings
from trainmaster.services.deadline import Deadline
from trainmaster.services.dependency_sweep import DependencySweep
from trainmaster.services.metric_looks import MetricLooks
from trainmaster.services.observer import Observer
from trainmaster.services.policy_in_force import policy_in_force
from trainmaster.services.queue_fronts import FrontLooks, Fronts
from trainmaster.services.repair_steps import RepairSteps
from trainmaster.services.scheduler.creation import TAGS_WITHIN
from trainmaster.services.unmanaged_jobs import UnmanagedJobSweep


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLooks:
    reader: JobReader
    store: JobStore
    checkpoints: CheckpointReader
    clock: Clock

    def run(
        self, live: Sequence[RunningJob], *, others_wait: bool, max_age: timedelta, deadline: Deadline
    ) -> Iterator[Exception]:
        """The jobs of one pool; yields what could not be done, for the next run."""
        for entry in live:
            if deadline.is_over:
                return
            try:
                if needs_look(entry, others_wait=others_wait, max_age=max_age, now=self.clock()):
                    self._look(entry.name, max_age)
            except Exception as error:  # noqa: BLE001  one job must not keep the others waiting
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
"""Jobs described in one run, where the account's rate allows as many."""
FOR_THE_SWEEPS = timedelta(seconds=10)
"""Of a run's time, kept free of looks at jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    policies: PolicyStore
    queue: QueueReader
    reader: JobReader
    observer: Observer
    alarm_sweep: AlarmSweep
    metric_looks: MetricLooks
    checkpoint_looks: CheckpointLooks
    sweep: UnmanagedJobSweep
    dependency_sweep: DependencySweep
    wake_ups: WakeUps
    rotation: Rotation
    front_looks: FrontLooks
    repair: RepairSteps
    beside: Beside
    clock: Clock

    def run(self, *, deadline: Deadline) -> "Repairs":
        """Wake every pool, look at the live jobs, their alarms and their checkpoints, and wake their pools.

        First, because whatever becomes of the rest the passes go on; last, because of what was found, where
        there was anything to look at: of many pools most are idle.
        """
        repairs = Repairs()
        policy = policy_in_force(self.policies).policy
        repairs.outdated = sum(one.rule == DEFAULTS_RULE for one in policy.warnings)
        repairs.fronts.pools = (*policy.pools, UNMANAGED_POOL)
        pools = [pool.name for pool in repairs.fronts.pools]
        self._wake(pools, repairs)
        readings = self._alarms(repairs)
        live = {pool: self._live(pool, repairs) for pool in pools}
        everybody = [entry for entries in live.values() for entry in entries]
        repairs.unmonitored = sum(entry.unmonitored is not None for entry in everybody)
        self._look_at(everybody, repairs, deadline.within(deadline.left() - FOR_THE_SWEEPS))
        if readings is not None:
            repairs.failures += self.alarm_sweep.run(readings, everybody, policy.governing, deadline)
        repairs.failures += self.metric_looks.run(everybody, policy.governing.watch, deadline)
        self._checkpoints(live, policy, repairs, deadline)
        for pool in repairs.fronts.depths:
            with repairs.bulkhead():
                self.front_looks.run(pool, repairs.fronts)
        repairs.failures += self.sweep.run(deadline)
        repairs.failures += self.dependency_sweep.run(pools, deadline)
        with repairs.bulkhead():
            self.repair.run(deadline)
        if everybody:
            self._wake([*(pool for pool in pools if live[pool]), UNMANAGED], repairs)
        return repairs

    def _wake(self, pools: Sequence[str], repairs: "Repairs") -> None:
        with repairs.bulkhead():
            self.wake_ups.send(pools)

    def _alarms(self, repairs: "Repairs") -> Readings | None:
        """None: CloudWatch does not tell; the rest of the run goes on without."""
        with repairs.bulkhead():
            return self.alarm_sweep.read()
        return None

    def _live(self, pool: str, repairs: "Repairs") -> tuple[RunningJob, ...]:
        with repairs.bulkhead():
            return self.queue.running(pool)
        return ()

    def _look_at(self, live: Sequence[RunningJob], repairs: "Repairs", deadline: Deadline) -> None:
        """As many as the time allows; the next run begins with the first whom it did not reach."""
        last: str | None = None
        with repairs.bulkhead():
            last = self.rotation.looked_upto()
        turns = due(live, behind=last, now=self.clock())
        looks = _Looks(turns[:LOOKS])
        self.beside(partial(self._repair, one, looks, repairs) for one in looks.in_turn(deadline))
        repairs.failures += looks.refused.values()
        reached = looks.reached()
        if reached and len(reached) < len(turns):
            with repairs.bulkhead():
                self.rotation.note_looked(reached[-1].name)

    def _repair(self, entry: RunningJob, looks: "_Looks", repairs: "Repairs") -> None:
        """One job that cannot be looked at must not keep the others waiting."""
        with repairs.bulkhead(), looks.at(entry):
            job = self.reader.job(entry.name)
            if job is not None and job.is_live and self.observer.look(job) is not None:
                repairs.changed.append(entry.name)

    def _checkpoints(
        self,
        live: Mapping[str, Sequence[RunningJob]],
        policy: Policy,
        repairs: "Repairs",
        deadline: Deadline,
    ) -> None:
        max_age = policy.governing.checkpoints.max_age
        for pool, entries in live.items():
            with repairs.bulkhead():
                depth = self.queue.queue_length(pool)
                repairs.fronts.depths[pool] = depth
                repairs.failures += self.checkpoint_looks.run(
                    entries, others_wait=depth > 0, max_age=max_age, deadline=deadline
                )


@dataclass(slots=True)
class _Looks:
    """Of one run. One that the account's rate refused comes once more, before those that wait."""

    turns: Sequence[RunningJob]
    refused: dict[str, ThrottledError] = field(default_factory=dict)
    """By job; nothing was learned of these."""
    _begun: set[str] = field(default_factory=set)
    _again: deque[RunningJob] = field(default_factory=deque)

    def in_turn(self, deadline: Deadline) -> Iterator[RunningJob]:
        waiting = deque(self.turns)
        while (self._again or waiting) and not deadline.is_over:
            entry = (self._again or waiting).popleft()
            self._begun.add(entry.name)
            yield entry

    @contextmanager
    def at(self, entry: RunningJob) -> Iterator[None]:
        """A look at this one."""
        comes_again = self.refused.pop(entry.name, None) is not None
        try:
            yield
        except ThrottledError as error:
            self.refused[entry.name] = error
            if not comes_again:
                self._again.append(entry)

    def reached(self) -> list[RunningJob]:
        """Up to the first who was not looked at; one at least of those begun, so that no run stands still."""
        missed = (number for number, one in enumerate(self.turns) if not self._is_seen(one))
        return list(self.turns[: max(next(missed, len(self.turns)), min(1, len(self._begun)))])

    def _is_seen(self, entry: RunningJob) -> bool:
        """A look that failed for another reason is one: no later run would do it better."""
        return entry.name in self._begun and entry.name not in self.refused


@dataclass(slots=True)
class Repairs:
    changed: list[str] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    """What could not be done, for the next run."""
    fronts: Fronts = field(default_factory=Fronts)
    unmonitored: int = 0
    """Running jobs whose GPUs go unwatched although the policy wants it."""
    outdated: int = 0
    """Defaults of an earlier release that the policy leans on."""

    @contextmanager
    def bulkhead(self) -> Iterator[None]:
        """What fails within is noted and stops nothing else."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  see above
            self.failures.append(error)

    @property
    def faults(self) -> list[Exception]:
        """What no later run will do better: a fault of ours."""
        return [one for one in self.failures if not (isinstance(one, TrainmasterError) and one.retryable)]

    def samples(self) -> Iterator[Sample]:
        yield from self.fronts.samples()
        yield Sample(metric=UNGUARDED, value=self.unmonitored)
        if self.outdated:
            yield Sample(metric=OUTDATED_DEFAULTS, value=self.outdated)
        if self.faults:
            yield Sample(metric=REPAIRS_FAILED, value=len(self.faults))


def due(live: Sequence[RunningJob], *, behind: str | None, now: datetime) -> list[RunningJob]:
    """Whom to look at, in turn: by name, first those behind the last one looked at.

    Nobody whose claim is a moment old: most likely its Create is under way.
    """
    looked_at = sorted(
        (job for job in live if job.known_to_sagemaker or now - job.claimed_at >= TAGS_WITHIN),
        key=lambda job: job.name,
    )
    later = [job for job in looked_at if behind is None or job.name > behind]
    return [*later, *looked_at[: len(looked_at) - len(later)]]
