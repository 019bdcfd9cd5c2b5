"""One state as a plane: tables and SageMaker made of it, the handlers over them, and the next state."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.core.errors import AccountLimitError, OutcomeUnknownError, TrainmasterError, UnavailableError
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.elastic_state import ElasticState
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.policy import parse_policy
from trainmaster.core.records import Alias, StoredPolicy, WriteCondition
from trainmaster.core.request.request import Launcher, attempt_name, read_request
from trainmaster.core.request.strict_json import canonical
from trainmaster.core.submission.admission import Submission, new_job
from trainmaster.services.end_policy import EndPolicy
from trainmaster.services.observer import Observer
from trainmaster.services.scheduler.pass_summary import Summary

from tests.bodies import resources, tag_list
from tests.builders import NOON, A, changed
from tests.memory.edges import FOREVER, MemoryLogs
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.sagemaker import MemorySageMaker, TrainingJob
from tests.memory.store import MemoryJobStore
from tests.memory.tables import PoolRows, Tables
from tests.model.handlers import USER, cancel, scheduler
from tests.model.replay import Replay, SuspendedError
from tests.model.states import Moving, Rows, State
from tests.model.tokens import Tokens
from tests.model.training_jobs import Training

AGE = timedelta(minutes=10)
"""In which a lease is over, and a training job that is still missing was deleted."""
LATER = timedelta(hours=1)
WARM = {"keep_alive": "1h", "retain": "30m", "max_idle": "1h"}


class ModelStore(MemoryJobStore):
    """Versions are what a job is like: who read just this may write, whatever happened in between."""

    def __init__(self, tables: Tables, plane: "Plane") -> None:
        super().__init__(tables)
        self._plane = plane

    def commit(
        self, changes: Sequence[Change], *, at: datetime, condition: WriteCondition | None = None
    ) -> tuple[Job, ...]:
        super().commit(changes, at=at, condition=condition)
        for change in changes:
            self._plane.saw(change)
            jobs, name = self._tables.jobs, change.after.name
            jobs[name] = self._plane.stored(changed(jobs[name], refused_starts=_claims(change)))
        return tuple(self._tables.jobs[change.after.name] for change in changes)


class ModelSageMaker(MemorySageMaker):
    def create(
        self, request: Mapping[str, Any], *, launcher: Launcher | None = None, outcome: str = "ok"
    ) -> str:
        if outcome == "limit":
            raise AccountLimitError("no more")
        if outcome == "throttled":
            raise UnavailableError("throttled")
        arn = super().create(request, launcher=launcher)
        if outcome == "lost":
            raise OutcomeUnknownError("no answer")
        return arn


class Plane:
    """Makes planes of states and states of planes, for one exploration."""

    def __init__(self, *, warm_pools: bool, elastic: bool = False) -> None:
        self.capacity = 2 if elastic else 1
        pool = {"name": "main", "capacity": {A: self.capacity}, "preemption": {"max_per_job": 1}}
        if elastic:  # time stands still, so a growth may not wait for any
            pool |= {"elastic": {"snooze": "0s"}}
        document = {"pools": [pool | ({"warm_pool": WARM} if warm_pools else {})]}
        self.pool = parse_policy(document).pools[0]
        self.policy = StoredPolicy(revision=1, version=1, paused=False, document=document)
        self.tokens = Tokens()
        self.edges: Counter[tuple[JobState, JobState]] = Counter()
        self.bodies = {name: _body(name, priority) for name, priority in (("job1", 1), ("job2", 2))}
        if elastic:
            self.bodies["job1"] = _elastic(self.bodies["job1"])
        self._canonical = {name: canonical(body) for name, body in self.bodies.items()}
        self._jobs: dict[int, Job] = {}
        self._moves: dict[tuple[Any, ...], tuple[State, Moving | None]] = {}
        """What a process did, by what it was and what it saw."""
        self.requests: dict[tuple[str, int], Mapping[str, Any]] = {}
        """What CreateTrainingJob got, by name and instances: the same whenever an attempt has this width."""

    # ---- jobs

    def saw(self, change: Change) -> None:
        if change.before.state is not change.after.state:
            self.edges[change.before.state, change.after.state] += 1

    def stored(self, job: Job) -> Job:
        """Without what differs between two states that behave alike: instants, counts of back-offs, money."""
        plain = changed(
            job,
            ver=0,
            live=None if job.live is None else _plain_attempt(job.live, job.starts.refused),
            not_before=None if job.not_before is None else NOON,
            waiting=None,
            started_at=None,
            ended_at=None if job.ended_at is None else NOON,
            checkpointed=timedelta(),
            productive=timedelta(),
            unknown_errors=0,
            refused_by_account=AccountRefusals(count=1, again_at=NOON) if job.starts.by_account else None,
            wasted={},
            cents=0,
            unpriced=False,
            elastic=None if job.elastic is None else _plain_state(job.elastic),
        )
        token = self.tokens.of(plain)
        return self.job(token)

    def job(self, token: int) -> Job:
        """With its token for a version."""
        if token not in self._jobs:
            self._jobs[token] = replace(self.tokens.value(token), ver=token)
        return self._jobs[token]

    def new_job(self, name: str) -> Job:
        body = self.bodies[name]
        submission = Submission(body=body, ask=read_request(body), team="default", submitted_by=USER)
        return new_job(submission, self.pool, entry_id=f"01{name}", now=NOON)

    # ---- from a state to a plane and back

    def tables(self, state: State) -> Tables:
        tables = Tables()
        rows: Rows = self.tokens.value(state.rows)
        for token in state.jobs:
            tables.jobs[self.job(token).name] = self.job(token)
        tables.policy = self.policy
        pool = tables.pools["main"]
        pool.policy_version = self.policy.version
        pool.order_key = self.pool.order_key
        pool.used.update({_A: rows.used})
        pool.warm.update({_A: rows.warm})
        pool.holds = {one.preemptor: one for one in rows.holds}
        pool.warm_pools = {one.training_job_name: one for one in rows.warm_pools}
        pool.limits = {} if rows.limit is None else {_A: rows.limit}
        tables.requests = self._canonical
        for job in tables.jobs.values():
            for number in range(job.attempt + 1):
                name = attempt_name(job.name, job.spec.entry_id, number)
                tables.aliases[name] = Alias(job=job.name, entry_id=job.spec.entry_id, attempt=number)
        return tables

    def sagemaker(self, state: State, clock: Callable[[], datetime]) -> ModelSageMaker:
        sagemaker = ModelSageMaker(clock=clock)
        for token in state.training:
            one: Training = self.tokens.value(token)
            sagemaker.jobs[one.name] = TrainingJob(
                name=one.name,
                request=self.requests[one.name, one.instances],
                created=NOON,
                status=one.status,
                secondary=one.secondary,
                reason=one.reason,
                training_since=NOON if one.trained else None,
                ended=None if one.status in ("InProgress", "Stopping") else NOON,
                warm=one.warm,
                kept_until=NOON + LATER if one.warm == "Available" else None,
            )
        return sagemaker

    def state_of(self, before: State, tables: Tables, sagemaker: MemorySageMaker) -> State:
        """What the plane holds now; processes, budgets and stops are the caller's business."""
        self.requests |= {(name, _instances(job)): job.request for name, job in sagemaker.jobs.items()}
        training = [
            Training(
                name=one.name,
                status=one.status,
                secondary=one.secondary,
                reason=one.reason,
                trained=one.training_since is not None,
                warm=one.warm,
                instances=_instances(one),
            )
            for _, one in sorted(sagemaker.jobs.items())
        ]
        return before._replace(
            jobs=tuple(tables.jobs[name].ver for name in sorted(tables.jobs)),
            rows=self.tokens.of(_rows(tables.pools["main"])),
            training=tuple(self.tokens.of(one) for one in training),
        )

    def first_state(self, left: tuple[int, ...]) -> State:
        tables = Tables()
        tables.jobs["job1"] = self.stored(self.new_job("job1"))
        nothing = State(jobs=(), rows=0, training=(), processes=(), left=left, stops=frozenset())
        return self.state_of(nothing, tables, MemorySageMaker(clock=lambda: NOON))

    # ---- processes

    def move(
        self, state: State, process: Moving, outcome: str, *, may_change: bool
    ) -> tuple[State, Moving | None]:
        """Run it to its next write, or to its end; None when it is over."""
        key = (state.jobs, state.rows, state.training, process, outcome, may_change)
        if key not in self._moves:
            alone = state._replace(processes=(), left=(), stops=frozenset())
            self._moves[key] = self._move(alone, process, outcome, may_change=may_change)
        after, next_one = self._moves[key]
        stops = state.stops | after.stops
        return after._replace(processes=state.processes, left=state.left, stops=stops), next_one

    def _move(
        self, state: State, process: Moving, outcome: str, *, may_change: bool
    ) -> tuple[State, Moving | None]:
        now = NOON + process.late * AGE
        tables, sagemaker = self.tables(state), self.sagemaker(state, lambda: now)
        answers = [self.tokens.value(one) for one in process.answers]
        replay = Replay(answers=answers, may_change=may_change, outcome=outcome)
        stops, next_one = state.stops, None
        try:
            if self._run(process, replay, tables, sagemaker, now):
                stops |= {process.subject}
        except SuspendedError:
            tokens = tuple(self.tokens.of(one) for one in replay.answers)
            next_one = process._replace(answers=tokens)
        return self.state_of(state, tables, sagemaker)._replace(stops=stops), next_one

    def _run(
        self, process: Moving, replay: Replay, tables: Tables, sagemaker: ModelSageMaker, now: datetime
    ) -> bool:
        """True when a user was told that his job stops."""
        store = replay.watched(ModelStore(tables, self))
        reader, training = replay.watched(MemoryReader(tables)), replay.watched(sagemaker)
        try:
            if process.act == "pass":
                scheduler(replay, tables, store, reader, training).look("main", Summary(), deadline=FOREVER)
            elif process.act == "cancel":
                return cancel(process.subject, replay, tables, store, reader)
            else:
                policies = MemoryPolicyStore(tables)
                end_policy = EndPolicy(policies=policies, reader=reader, training=training, logs=MemoryLogs())
                observer = Observer(
                    store=store,
                    reader=reader,
                    training=training,
                    end_policy=end_policy,
                    clock=lambda: now,
                    listing=training,
                )
                job = reader.job(process.subject)
                if job is not None and job.is_live:
                    observer.look(job)
        except TrainmasterError as error:
            if not error.retryable:
                raise
        return False


def _claims(change: Change) -> int:
    """Tells two claims of one attempt apart, as versions do: who saw the first must not undo the second."""
    undone = change.before.state is JobState.STARTING and change.after.state is JobState.PENDING
    return (change.before.starts.refused + undone) % 3


_A = Capacity(A)


def _body(name: str, priority: int) -> dict[str, Any]:
    one = resources(InstanceType=A, InstanceCount=1, VolumeSizeInGB=1)
    return one | {"TrainingJobName": name, "Tags": tag_list({"priority": str(priority)})}


def _instances(job: TrainingJob) -> int:
    return int(job.request["ResourceConfig"]["InstanceCount"])


def _elastic(body: dict[str, Any]) -> dict[str, Any]:
    """The job as one that runs with one instance or two."""
    asked = {"InstanceType": A, "InstanceCount": 2, "VolumeSizeInGB": 1}
    tags = [*body["Tags"], {"Key": "trainmaster:elastic", "Value": "1-2"}]
    checkpoints = {"S3Uri": "s3://vision-data/checkpoints/job1"}
    return body | {"ResourceConfig": asked, "Tags": tags, "CheckpointConfig": checkpoints}


def _plain_state(state: ElasticState) -> ElasticState:
    return replace(state, resized_at=None if state.resized_at is None else NOON)


def _plain_attempt(live: Attempt, claims: int) -> Attempt:
    """A later claim has a later lease: who came to look at an earlier one comes too early for it."""
    return changed(
        live,
        claimed_at=NOON,
        lease_until=NOON + timedelta(minutes=5) + claims * AGE,
        training_since=None if live.training_since is None else NOON,
        missing_since=None if live.missing_since is None else NOON,
        last_checkpoint=None,
    )


def _rows(pool: PoolRows) -> Rows:
    limit = pool.limits.get(_A)
    return Rows(
        used=pool.used[_A],
        warm=pool.warm[_A],
        holds=tuple(pool.holds[name] for name in sorted(pool.holds)),
        warm_pools=tuple(pool.warm_pools[name] for name in sorted(pool.warm_pools)),
        limit=None
        if limit is None
        else AccountLimit(limit=limit.limit, until=_soon(limit.until), refusals=1),
    )


def _soon(instant: datetime) -> datetime:
    """Before or after now is all that matters."""
    return NOON + LATER if instant > NOON else NOON - LATER
