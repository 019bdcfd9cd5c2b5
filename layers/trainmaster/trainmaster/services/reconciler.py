"""Repair what a crash, a lost event or a slow call left open. Each repair is valid by itself."""

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
from trainmaster.services.calendars import recent_changes
from trainmaster.services.deadline import Deadline
from trainmaster.services.dependency_sweep import DependencySweep
from trainmaster.services.metric_looks import LossLooks, MetricLooks, ProgressLooks
from trainmaster.services.observer import Observer
from trainmaster.services.plan_looks import PlanLooks, recent_windows
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
        """Look at checkpoints of one pool's jobs; yield what failed, for the next run."""
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
        """Notify operators once a pool: users of one bucket know no others, and operators know all."""
        subject = PlatformSubject.CHECKPOINTS_UNREADABLE
        notice = checkpoints_unreadable_notice(uri, job=job.name)
        message = to_tell(notice, cause=f"{job.spec.pool}#{subject}", at=self.clock())
        self.store.leave_once(job.spec.pool, message, subject=subject)


LOOKS = 100
"""Jobs described in one run, if the account's rate allows as many."""
FOR_THE_SWEEPS = timedelta(seconds=10)
"""Part of a run's time that is kept free of looks at jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    policies: PolicyStore
    queue: QueueReader
    reader: JobReader
    observer: Observer
    alarm_sweep: AlarmSweep
    metric_looks: MetricLooks
    progress_looks: ProgressLooks
    loss_looks: LossLooks
    plan_looks: PlanLooks
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

        Pools are woken first, so that passes go on whatever happens to the rest; and last, to act on what was
        found, but only where there was anything to look at: if there are many pools, most are idle.
        """
        repairs = Repairs()
        policy = policy_in_force(self.policies, self.clock()).policy
        repairs.outdated = sum(warning.rule == DEFAULTS_RULE for warning in policy.warnings)
        repairs.fronts.pools = (*policy.pools, UNMANAGED_POOL)
        pools = [pool.name for pool in repairs.fronts.pools]
        self._wake(pools, repairs)
        with repairs.bulkhead():
            self._note_calendars(policy)
        with repairs.bulkhead():
            self._look_at_plans(policy, repairs, deadline)
        readings = self._alarms(repairs)
        live = {pool: self._live(pool, repairs) for pool in pools}
        everybody = [entry for entries in live.values() for entry in entries]
        repairs.unmonitored = sum(entry.unmonitored is not None for entry in everybody)
        self._look_at(everybody, repairs, deadline.within(deadline.left() - FOR_THE_SWEEPS))
        if readings is not None:
            repairs.failures += self.alarm_sweep.run(readings, everybody, policy.governing, deadline)
        repairs.failures += self.metric_looks.run(everybody, policy.governing.watch, deadline)
        repairs.failures += self.progress_looks.run(everybody, deadline)
        repairs.failures += self.loss_looks.run(everybody, policy.governing.loss, deadline)
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

    def _note_calendars(self, policy: Policy) -> None:
        now = self.clock()
        changes = (*recent_changes(policy, now), *recent_windows(policy, now))
        if changes:
            self.policies.note_capacity(changes)

    def _look_at_plans(self, policy: Policy, repairs: "Repairs", deadline: Deadline) -> None:
        """Look at training plans, and wake the pools whose plans have changed."""
        looked = list(self.plan_looks.run(policy, deadline=deadline))
        repairs.failures += [look.failure for look in looked if look.failure is not None]
        changed = sorted({look.pool for look in looked if look.failure is None})
        if changed:
            self._wake(changed, repairs)

    def _alarms(self, repairs: "Repairs") -> Readings | None:
        """Read the alarms; None if CloudWatch fails, and the rest of the run goes on without them."""
        with repairs.bulkhead():
            return self.alarm_sweep.read()
        return None

    def _live(self, pool: str, repairs: "Repairs") -> tuple[RunningJob, ...]:
        with repairs.bulkhead():
            return self.queue.running(pool)
        return ()

    def _look_at(self, live: Sequence[RunningJob], repairs: "Repairs", deadline: Deadline) -> None:
        """Look at as many jobs as the time allows; the next run begins with the first one not reached."""
        last: str | None = None
        with repairs.bulkhead():
            last = self.rotation.looked_upto()
        turns = due(live, behind=last, now=self.clock())
        looks = _Looks(turns[:LOOKS])
        self.beside(partial(self._repair, entry, looks, repairs) for entry in looks.in_turn(deadline))
        repairs.failures += looks.refused.values()
        reached = looks.reached()
        if reached and len(reached) < len(turns):
            with repairs.bulkhead():
                self.rotation.note_looked(reached[-1].name)

    def _repair(self, entry: RunningJob, looks: "_Looks", repairs: "Repairs") -> None:
        """Look at one job; if that fails, the others are looked at anyway."""
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
    """Orders the looks of one run; a throttled one is repeated once, before the remaining ones."""

    turns: Sequence[RunningJob]
    refused: dict[str, ThrottledError] = field(default_factory=dict)
    """Errors of throttled looks by job; nothing was learned about these jobs."""
    _begun: set[str] = field(default_factory=set)
    _again: deque[RunningJob] = field(default_factory=deque)

    def in_turn(self, deadline: Deadline) -> Iterator[RunningJob]:
        waiting = deque(self.turns)
        while (self._again or waiting) and not deadline.is_over:
            # Drawn while earlier looks run: these may have put throttled jobs into _again by now.
            entry = (self._again or waiting).popleft()
            self._begun.add(entry.name)
            yield entry

    @contextmanager
    def at(self, entry: RunningJob) -> Iterator[None]:
        """Guard the look at one job, and note if it was throttled."""
        comes_again = self.refused.pop(entry.name, None) is not None
        try:
            yield
        except ThrottledError as error:
            self.refused[entry.name] = error
            if not comes_again:
                self._again.append(entry)

    def reached(self) -> list[RunningJob]:
        """Return the jobs before the first unseen one, but at least one begun, so that runs progress."""
        missed = (number for number, entry in enumerate(self.turns) if not self._is_seen(entry))
        return list(self.turns[: max(next(missed, len(self.turns)), min(1, len(self._begun)))])

    def _is_seen(self, entry: RunningJob) -> bool:
        """Tell whether a job was looked at; a look that failed counts, as a later run would not do better."""
        return entry.name in self._begun and entry.name not in self.refused


@dataclass(slots=True)
class Repairs:
    changed: list[str] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    """Errors of steps that failed, for the next run."""
    fronts: Fronts = field(default_factory=Fronts)
    unmonitored: int = 0
    """Number of running jobs whose GPUs are not watched although the policy requires it."""
    outdated: int = 0
    """Number of defaults of an earlier release that the policy relies on."""

    @contextmanager
    def bulkhead(self) -> Iterator[None]:
        """Note a failure within the block, so that it stops nothing else."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  see above
            self.failures.append(error)

    @property
    def faults(self) -> list[Exception]:
        """Failures that no later run will repair: faults of ours."""
        return [
            error for error in self.failures if not (isinstance(error, TrainmasterError) and error.retryable)
        ]

    def samples(self) -> Iterator[Sample]:
        yield from self.fronts.samples()
        yield Sample(metric=UNGUARDED, value=self.unmonitored)
        if self.outdated:
            yield Sample(metric=OUTDATED_DEFAULTS, value=self.outdated)
        if self.faults:
            yield Sample(metric=REPAIRS_FAILED, value=len(self.faults))


def due(live: Sequence[RunningJob], *, behind: str | None, now: datetime) -> list[RunningJob]:
    """List the jobs to look at in turn: by name, first those behind the last one looked at.

    A job whose claim is a moment old is left out: most likely its Create is in progress.
    """
    looked_at = sorted(
        (job for job in live if job.known_to_sagemaker or now - job.claimed_at >= TAGS_WITHIN),
        key=lambda job: job.name,
    )
    later = [job for job in looked_at if behind is None or job.name > behind]
    return [*later, *looked_at[: len(looked_at) - len(later)]]
