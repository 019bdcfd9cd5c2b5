"""The invariants: looked at after each step of a history, and each commit as it is made."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.run_time import LEAST_RUNTIME
from trainmaster.core.jobs.states import TRANSITIONS
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import UNMANAGED, parse_policy
from trainmaster.core.records import WriteCondition

from tests.histories.futile import FutilePreemptionsJudge
from tests.memory.sagemaker import MemorySageMaker
from tests.memory.store import MemoryJobStore
from tests.memory.tables import PoolRows, Tables

S = JobState
ASKED_TO_STOP = (S.PREEMPTING, S.STOPPING)


@dataclass(slots=True)
class Watch:
    tables: Tables
    sagemaker: MemorySageMaker
    outside: set[str] = field(default_factory=set)
    """Training jobs that somebody else started: uncounted until they have a job."""
    accepted_stops: set[str] = field(default_factory=set)
    """Jobs whose users were told that they stop."""
    edges: Counter[tuple[JobState, JobState]] = field(default_factory=Counter)
    starts: Counter[str] = field(default_factory=Counter)
    widths: Counter[int] = field(default_factory=Counter)
    """Starts of elastic jobs by their width."""
    preemptions: int = 0
    reuses: int = 0
    retries: int = 0
    futile: FutilePreemptionsJudge = field(default_factory=FutilePreemptionsJudge)
    dependents: int = 0
    """First starts of jobs that had waited for another."""
    fallbacks: int = 0
    """Jobs that left spot."""

    # ---- each commit

    def judge(self, change: Change, condition: WriteCondition | None, *, at: datetime) -> None:
        before, after = change.before, change.after
        self.futile.follow(change, condition, at=at)
        if before.state is not after.state:
            assert after.state in TRANSITIONS[before.state], f"{before.state} to {after.state}"
            self.edges[before.state, after.state] += 1
        if after.state is S.STARTING and before.state is not S.STARTING:
            self._judge_start(after, condition)
        if after.state is S.PREEMPTING and before.state is not S.PREEMPTING and is_preempted(after):
            self._judge_preemption(before, condition, at=at)
        if after.attempt != before.attempt:
            self._judge_new_attempt(before, after)
        self.fallbacks += int(after.spot.left and not before.spot.left)

    def _judge_start(self, job: Job, condition: WriteCondition | None) -> None:
        """I1: no start lifts what is used and warm above capacity; I5: a user's stop is final."""
        assert condition is not None, "a claim without conditions"
        assert job.name not in self.accepted_stops, f"{job.name} starts after its user's stop"
        assert not self.tables.policy.paused, f"{job.name} starts while everything is paused"
        self._judge_conditions(job)
        capacity, rows = self._capacity(), self._rows(job)
        for one in job.vector if job.spec.pool != UNMANAGED else ():
            taken = rows.used[one] + rows.warm[one]
            assert taken <= capacity.get(one, 0), f"{taken} {one} of {capacity.get(one, 0)}"
        self._judge_width(job)
        self.starts[job.name] += 1
        self.reuses += int(condition.reuses is not None)

    def _judge_width(self, job: Job) -> None:
        """I20: an elastic job starts with one of its widths, for as many instance-seconds as are left."""
        live, widths = job.live_attempt, job.spec.widths
        if widths is None:
            return
        width = live.shape.instances
        assert width in widths.counts, f"{job.name} starts with {width} instances of {widths.counts}"
        left = max(job.spec.max_runtime - job.checkpointed, LEAST_RUNTIME) * widths.largest
        assert live.max_runtime * width <= left, f"{job.name} gets {live.max_runtime} at {width}"
        self.widths[width] += 1

    def _judge_conditions(self, job: Job) -> None:
        """I17: no dependent starts before every condition holds at a final end."""
        for condition in job.after.conditions if job.after else ():
            parent = self.tables.jobs[condition.job]
            assert parent.is_final, f"{job.name} starts, and {parent.name} is {parent.state}"
            wanted = {"afterok": (S.COMPLETED,), "afternotok": (S.FAILED, S.STOPPED)}.get(condition.kind)
            assert wanted is None or parent.state in wanted, f"{job.name} starts after {condition}"
            self.dependents += job.attempt == 0

    def _judge_preemption(self, victim: Job, condition: WriteCondition | None, *, at: datetime) -> None:
        """I8: for a job that waits, has a hold, and outranks it (or takes back its own); I16."""
        assert condition is not None
        assert condition.still_waiting is not None
        assert condition.places_hold is not None
        preemptor = self.tables.jobs[condition.still_waiting.name]
        assert preemptor.is_waiting, preemptor.state
        assert victim.spec.preemptible, f"{victim.name} is not preemptible"
        quotas = bool(parse_policy(self.tables.policy.document).pools[0].quotas)
        assert quotas or preemptor.priority > victim.priority, f"{preemptor.name} stops {victim.name}"
        if condition.replaces_hold is None:
            self.futile.judge(preemptor, at=at)
        self.preemptions += 1

    def _judge_new_attempt(self, before: Job, after: Job) -> None:
        """The number rises by one, and only after the training job was seen to be over.

        Somebody may have deleted it between that look and this write: only what has ended can be deleted.
        """
        assert after.attempt == before.attempt + 1
        recovery = parse_policy(self.tables.policy.document).governing.recovery
        assert before.comebacks.retries <= after.comebacks.retries <= recovery.max_retries, (
            f"{after.comebacks.retries} retries"
        )
        self.retries += after.comebacks.retries - before.comebacks.retries
        assert before.live is not None
        ended = self.sagemaker.jobs.get(before.live.training_job_name)
        still = ended is not None and ended.is_live
        assert not still, f"{after.name} waits for another attempt while its last one runs"

    # ---- each step

    def look(self) -> None:
        self._counters()
        self._months()
        self._training_jobs()
        for name in self.accepted_stops:
            state = self.tables.jobs[name].state
            assert state is S.STOPPING or self.tables.jobs[name].is_final, f"{name} was stopped, is {state}"

    def _counters(self) -> None:
        """I6: counters are sums."""
        for pool, rows in self.tables.pools.items():
            live = [job for job in self.tables.jobs.values() if job.is_live and job.spec.pool == pool]
            used = _summed(job.vector for job in live)
            assert +rows.used == used, f"{dict(+rows.used)} in use by the counters, {dict(used)} by jobs"
            warm = _summed(one.vector for one in rows.warm_pools.values())
            assert +rows.warm == warm, f"{dict(+rows.warm)} warm by the counters, {dict(warm)} by pools"

    def _months(self) -> None:
        """Reserved are the worst cases of live attempts, and of no others."""
        reserved: Counter[tuple[str, str]] = Counter()
        for job in self.tables.jobs.values():
            if job.live is not None and job.live.claim.month is not None:
                reserved[job.spec.team, job.live.claim.month] += job.live.claim.reserved_cents
        for key, month in self.tables.months.items():
            assert month.committed - month.spent == reserved[key], f"{key}: {month} against {reserved[key]}"

    def _training_jobs(self) -> None:
        """I2, I3: at most one training job lives for each job, and none without its job."""
        live = {job.live.training_job_name for job in self.tables.jobs.values() if job.live is not None}
        jobless = set(self.sagemaker.live()) - live - self.outside
        assert not jobless, f"training jobs without a job: {sorted(jobless)}"
        assert len(set(self.sagemaker.creates)) == len(self.sagemaker.creates), "a name was created twice"
        counted: Counter[Capacity] = Counter()
        for rows in self.tables.pools.values():
            counted += rows.used + rows.warm
        unmanaged = _summed(self.sagemaker.jobs[name].vector for name in self._unmanaged(live))
        uncounted = self.sagemaker.taken() - counted - self._unsettled() - unmanaged
        assert not uncounted, f"instances that nobody counts: {dict(uncounted)}"

    def _unmanaged(self, live: set[str]) -> set[str]:
        return (set(self.sagemaker.live()) & self.outside) - live

    def _unsettled(self) -> Counter[Capacity]:
        """SageMaker alone picks among warm pools that match.

        One that was claimed may be left over, until it is seen where the attempt trains.
        """
        lives = (job.live for job in self.tables.jobs.values() if job.live is not None)
        return _summed(live.vector for live in lives if live.claim.reuses is not None)

    # ---- the end

    def settled(self) -> None:
        """Nothing is left that only a live job would need."""
        for rows in self.tables.pools.values():
            assert not +rows.used, f"in use: {dict(+rows.used)}"
            assert not +rows.warm, f"warm: {dict(+rows.warm)}"
            assert rows.holds == {}, f"held: {rows.holds}"
        for job in self.tables.jobs.values():
            assert job.is_final, f"{job.name} is {job.state}, waiting: {job.waiting}"
            assert job.reason is not None, f"{job.name} is {job.state} for no reason"

    def _capacity(self) -> dict[Capacity, int]:
        return pool_vector(parse_policy(self.tables.policy.document).pools[0])

    def _rows(self, job: Job) -> PoolRows:
        return self.tables.pools[job.spec.pool]


class JudgedStore(MemoryJobStore):
    """The store, every commit of which is judged."""

    def __init__(self, tables: Tables, watch: Watch) -> None:
        super().__init__(tables)
        self._watch = watch

    def commit(
        self, changes: Sequence[Change], *, at: datetime, condition: WriteCondition | None = None
    ) -> tuple[Job, ...]:
        written = super().commit(changes, at=at, condition=condition)
        for change in changes:
            self._watch.judge(change, condition, at=at)
        return written


def is_preempted(job: Job) -> bool:
    """For another job; not for idle GPUs, nor for spot instances that are taken away too often."""
    return job.reason is not None and job.reason.code == "preemption"


def _summed(vectors: Iterable[Vector]) -> Counter[Capacity]:
    counted: Counter[Capacity] = Counter()
    for vector in vectors:
        counted.update(vector)
    return counted
