"""What the product's table would hold of one pool, as plain values: a snapshot is made of this alone.

It learns when a job is submitted, trains, saves or ends, never how long it is going to run.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from trainmaster.core.forecast.run_times import Run, RunTimes
from trainmaster.core.jobs.attempts import CheckpointState
from trainmaster.core.jobs.instances import Capacity, Choice, Shape, Vector, lane_text
from trainmaster.core.jobs.model import JobSpec, JobState
from trainmaster.core.jobs.run_time import END_SLACK, LEAST_RUNTIME
from trainmaster.core.lifecycle.steps import LEASE
from trainmaster.core.planning.actions import Charge
from trainmaster.core.planning.order import score_of
from trainmaster.core.planning.snapshot import (
    ExpectedRun,
    PreemptionReservation,
    RunningJob,
    Snapshot,
    WaitingJob,
    WarmPool,
)
from trainmaster.core.policy import PoolPolicy
from trainmaster_client.simulate.sources.drawn_facts import PRIORITIES

from benchmarks.replay.jobs import TraceJob
from benchmarks.replay.lanes import LaneKey, Lanes

BEGIN = datetime(2017, 10, 18, tzinfo=UTC)
"""Second 0 of a trace; any would do."""


def instant(second: int) -> datetime:
    return BEGIN + timedelta(seconds=second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the product knows of a job beside its place."""

    spec: JobSpec
    key: LaneKey
    score: int
    checkpointed: timedelta = timedelta()
    """Training of earlier attempts in checkpoints that somebody saw."""
    lost: timedelta = timedelta()
    """Training of earlier attempts that no checkpoint saved."""
    preemptions: int = 0
    attempts: int = 0

    @property
    def trained(self) -> timedelta | None:
        """How long it is known to train at least, as the product's rows say it."""
        return self.checkpointed + self.lost / self.attempts if self.attempts else None

    @property
    def still(self) -> timedelta | None:
        predicted = self.spec.predicted
        return None if predicted is None else max(predicted - self.checkpointed, timedelta())


class PoolTable:
    def __init__(self, rules: PoolPolicy) -> None:
        self.rules = rules
        self.lanes = Lanes()
        self.holds: dict[str, PreemptionReservation] = {}
        """By preemptor."""
        self.warm_pools: dict[str, WarmPool] = {}
        """By training-job name."""
        self.run_times: dict[LaneKey, RunTimes] = {}
        self.used = 0
        self._capacity = Capacity(next(iter(rules.capacity)))
        self._shapes: dict[tuple[str, int], tuple[Shape, LaneKey]] = {}
        self._known: dict[str, Known] = {}
        self._running: dict[str, RunningJob] = {}
        self._running_read: tuple[RunningJob, ...] | None = ()

    def snapshot(self) -> Snapshot:
        if self._running_read is None:
            self._running_read = tuple(self._running.values())
        holds = tuple(self.holds.values())
        return Snapshot(
            used={self._capacity: self.used},
            warm={self._capacity: self.warm},
            warm_pools=tuple(self.warm_pools.values()),
            holds=holds,
            waiting=self.lanes.heads(),
            running=self._running_read,
            gone_preemptors=frozenset(one.preemptor for one in holds if one.preemptor not in self.lanes),
        )

    @property
    def warm(self) -> int:
        return sum(self.count(pool.vector) for pool in self.warm_pools.values())

    def count(self, vector: Vector) -> int:
        """The pool has one type."""
        return vector[self._capacity]

    # ---- what happens to a job

    def submitted(self, job: TraceJob, *, now: datetime) -> None:
        shape, key = self._shape(job)
        times = self.run_times.get(key)
        spec = JobSpec(
            name=job.job_id,
            entry_id=job.job_id,
            team=job.team,
            pool=job.pool,
            submitted_by=job.team,
            submitted_at=now,
            shapes=(shape,),
            preemptible=True,
            max_runtime=timedelta(seconds=job.max_runtime_s),
            max_wait=None,
            body_hash=job.job_id,
            checkpoint_uri=None if job.checkpoint_every_s is None else f"s3://checkpoints/{job.job_id}",
            predicted=None if times is None else times.predicted,
        )
        priority = PRIORITIES[job.klass]
        known = Known(spec=spec, key=key, score=score_of(spec, priority, self.rules))
        self._known[job.job_id] = known
        self._queue(known, priority)

    def claimed(self, job: WaitingJob, charge: Charge | None, *, now: datetime) -> None:
        """It holds its instances, and SageMaker has it."""
        known = self._known[job.name]
        self.lanes.remove(job.name)
        self.used += self.count(job.vector)
        self._put(
            RunningJob(
                name=job.name,
                ver=job.ver + 1,
                team=job.team,
                state=JobState.RUNNING,
                vector=job.vector,
                priority=job.priority,
                score=job.score,
                claimed_at=now,
                lease_until=now + LEASE,
                training_job_name=f"{job.name}-r{known.attempts}",
                known_to_sagemaker=True,
                training_since=None,
                stop_sent=False,
                preemptible=True,
                has_checkpoint=job.has_checkpoint,
                preemptions=known.preemptions,
                expected=ExpectedRun(
                    at_most=job.runs_at_most, predicted=job.predicted, trained=known.trained
                ),
                cents_per_hour=None if charge is None else int(charge.usd_per_hour * 100),
                warm_key=job.shapes[0].warm_key if self.rules.warm_pool.keep_alive else None,
            )
        )

    def trains(self, name: str, *, now: datetime) -> None:
        most = self._runs_at_most(self._known[name])
        job = self._running[name]
        expected = replace(job.expected, ends_by=now + most + END_SLACK)
        self._put(replace(job, training_since=now, expected=expected))

    def saved(self, name: str, at: datetime) -> None:
        """Somebody has seen a checkpoint of this instant."""
        if self._running[name].checkpoint.last != at:
            self._put(replace(self._running[name], checkpoint=CheckpointState(last=at)))

    def preempting(self, name: str) -> None:
        self._put(replace(self._running[name], state=JobState.PREEMPTING, stop_sent=True))

    def completed(self, name: str, *, now: datetime) -> None:
        job, known = self._release(name), self._known.pop(name)
        assert job.training_since is not None
        trained = known.checkpointed + (now - job.training_since)
        run = Run(trained=trained, limit=known.spec.max_runtime, priority=job.priority, ended_at=now)
        times = self.run_times.get(known.key)
        self.run_times[known.key] = times.after(run) if times else RunTimes.of(run)
        self._leave_warm(job, now=now)

    def preempted(self, name: str, *, now: datetime) -> None:
        """It has stopped, and waits again in its old turn."""
        job, known = self._release(name), self._known[name]
        checkpointed = lost = timedelta()
        if job.training_since is not None:
            checkpointed = (job.checkpoint.last or job.training_since) - job.training_since
            lost = now - job.training_since - checkpointed
            self._leave_warm(job, now=now)
        known = replace(
            known,
            checkpointed=known.checkpointed + checkpointed,
            lost=known.lost + lost,
            preemptions=known.preemptions + 1,
            attempts=known.attempts + 1,
        )
        self._known[name] = known
        self._queue(known, job.priority)

    # ---- rows

    def _queue(self, known: Known, priority: int) -> None:
        spec = known.spec
        self.lanes.add(
            known.key,
            WaitingJob(
                name=spec.name,
                ver=2 * known.attempts + 1,
                team=spec.team,
                state=JobState.PREEMPTED if known.preemptions else JobState.PENDING,
                shapes=spec.shapes,
                priority=priority,
                score=known.score,
                submitted_at=spec.submitted_at,
                runs_at_most=self._runs_at_most(known),
                has_checkpoint=spec.has_checkpoint,
                predicted=known.still,
                trained=known.trained,
            ),
        )

    def _runs_at_most(self, known: Known) -> timedelta:
        return max(known.spec.max_runtime - known.checkpointed, LEAST_RUNTIME)

    def _release(self, name: str) -> RunningJob:
        self._running_read = None
        job = self._running.pop(name)
        self.used -= self.count(job.vector)
        return job

    def _leave_warm(self, job: RunningJob, *, now: datetime) -> None:
        if job.warm_key is None:
            return
        self.warm_pools[job.training_job_name] = WarmPool(
            training_job_name=job.training_job_name,
            team=job.team,
            vector=job.vector,
            warm_key=job.warm_key,
            since=now,
            expires_at=now + self.rules.warm_pool.keep_alive,
        )

    def _put(self, job: RunningJob) -> None:
        self._running_read = None
        self._running[job.name] = job

    def _shape(self, job: TraceJob) -> tuple[Shape, LaneKey]:
        """One a team and width: a pool has one type, and a team one role, network and disk size."""
        found = self._shapes.get((job.team, job.instances))
        if found is None:
            shape = Shape(vector={self._capacity: job.instances}, warm_key=f"{job.team}/{job.instances}")
            found = shape, (job.team, lane_text([shape], Choice.FIRST_FIT))
            self._shapes[job.team, job.instances] = found
        return found
