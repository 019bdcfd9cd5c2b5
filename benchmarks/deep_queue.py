"""A full pool with a queue of any depth, in a table of the twin's engine: rows as the adapter writes them.

Submitting each job for real would take an hour; the rows of a submission are the same, written in bulk.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from random import Random
from typing import Any

from trainmaster.adapters.dynamodb import DynamoJobStore, DynamoPolicyStore
from trainmaster.core.jobs import run_time
from trainmaster.core.jobs.attempts import Attempt, Claim
from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import Job, JobSpec, JobState
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.policy import PoolPolicy, parse_policy
from trainmaster.core.records import WriteCondition

from benchmarks.crowd import replaced
from benchmarks.table_fill import Rows, Send
from local.engine.calls import AwsCall
from local.engine.moto_engine import MotoEngine
from local.wire import Request
from tests.integration.messages import request

POOL = "deep"
INSTANCE_TYPE = "ml.g5.12xlarge"
CAPACITY = 64
"""Least capacity; a pool of more or wider jobs has more."""
RUNNING_WIDTH = 4
WIDTHS = (1, 2, 4, 8)
"""Instances that jobs ask for, unless there are to be more lanes."""
RUNNING_PRIORITY = 500
"""Priority above all waiting jobs, so that a pass preempts none."""
PRIORITIES = 10
SUFFIX = "-fine-tune-resnet-50-on-imagenet"
PERSON_ROLE = "arn:aws:iam::111122223333:role/vision"
MOST_SUBMISSIONS = 100_000
RETENTION_DAYS = 90
WHOLE = 100
"""Running jobs with all of their rows; of further ones a pass finds no more than it reads."""
CHUNK = 1000
"""Jobs whose rows are in memory at a time."""
BODY = json.dumps(request("waits", Environment={"DIGEST": Random(0).randbytes(450).hex()})).encode()
"""Packed about 800 bytes, as gzip leaves of a request from the SageMaker SDK."""
_NO_REQUEST = Request(method="POST", raw_path="/", query="", headers={}, body=b"")
"""The engine answers operations on items by their parameters alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepQueue:
    """A full pool: its running jobs, and how many jobs wait."""

    pending: int
    running: int = 16
    teams: int = 8
    lanes: int = 32
    label: str = ""
    """Tells queues of one size apart."""

    @property
    def table(self) -> str:
        return f"deep{self.label}-{self.pending}-{self.running}-{self.teams}-{self.lanes}"

    @property
    def widths(self) -> Sequence[int]:
        """Return the widths of waiting jobs; with the teams they make the lanes."""
        of_a_team = self.lanes // self.teams
        return WIDTHS if of_a_team == len(WIDTHS) else range(1, of_a_team + 1)

    @property
    def running_width(self) -> int:
        return max(RUNNING_WIDTH, -(-max(self.widths, default=0) // self.running))

    @property
    def policy(self) -> dict[str, Any]:
        capacity = {INSTANCE_TYPE: max(CAPACITY, self.running * self.running_width)}
        limits = {"max_submissions_per_minute": MOST_SUBMISSIONS}
        teams = [{"name": "vision", "principals": [PERSON_ROLE], "roles": "any"}]
        pool = {"name": POOL, "capacity": capacity, "limits": limits}
        return {"version": 1, "pools": [pool], "teams": teams}

    def name(self, number: int) -> str:
        """Return the name of the waiting job that was submitted after ``number`` others."""
        return f"waits-{number:06d}{SUFFIX}"


def build(engine: MotoEngine, queue: DeepQueue, *, now: datetime) -> DeepQueue:
    """Make a table with the policy, a pool without a free instance, and this many waiting jobs."""
    client = engine.client("dynamodb")
    make_table(client, queue.table)
    fill(client, queue.table, queue, now=now, send=sender(engine))
    return queue


def fill(client: Any, table: str, queue: DeepQueue, *, now: datetime, send: Send) -> None:
    policies = DynamoPolicyStore(client, table=table)
    policy = policies.put(queue.policy, pools=[POOL], replaces=policies.current())
    pool = parse_policy(queue.policy).pools[0]
    rows = Rows()
    store = DynamoJobStore(rows, table=table, retention_days=RETENTION_DAYS)
    running = _jobs(queue, pool, now=now, running=True)
    for job in islice(running, WHOLE):
        run(job, store, policy.version, now=now)
    for transaction in _copies(next(running, None), running, policy.version, now=now):
        rows.transact_write_items(TransactItems=transaction)
    rows.send(table, send)
    DynamoJobStore(client, table=table, retention_days=RETENTION_DAYS).ranked(POOL, pool.order_key)
    for number, job in enumerate(_jobs(queue, pool, now=now, running=False), start=1):
        store.submit(job, BODY)
        if number % CHUNK == 0:
            rows.send(table, send)
    rows.send(table, send)


def _jobs(queue: DeepQueue, pool: PoolPolicy, *, now: datetime, running: bool) -> Iterator[Job]:
    """Yield jobs over all teams, widths and priorities in turn, submitted a second after each other."""
    for number in range(queue.running if running else queue.pending):
        entered = now - timedelta(days=2) + timedelta(seconds=number)
        priority = RUNNING_PRIORITY if running else number % PRIORITIES
        widths = [queue.running_width] if running else queue.widths
        spec = JobSpec(
            name=f"runs-{number:06d}{SUFFIX}" if running else queue.name(number),
            entry_id=f"01{number:024d}",
            team=f"team-{number % queue.teams}",
            pool=POOL,
            submitted_by="arn:aws:iam::111122223333:role/vision-research",
            submitted_at=entered,
            shapes=(Shape(vector={Capacity(INSTANCE_TYPE): widths[number // queue.teams % len(widths)]}),),
            preemptible=True,
            max_runtime=timedelta(hours=12),
            max_wait=None,
            body_hash="0" * 64,
            checkpoint_uri=f"s3://vision-checkpoints/{number:06d}",
        )
        score = int(entered.timestamp() * 1000) - pool.boost_ms(priority)
        yield Job(spec=spec, state=JobState.PENDING, priority=priority, score=score, ranked_by=pool.order_key)


def run(job: Job, store: DynamoJobStore, policy_version: int, *, now: datetime) -> None:
    """Submit, claim and record it."""
    store.submit(job, BODY)
    attempt = Attempt(
        number=0,
        training_job_name=job.name,
        shape=job.spec.shapes[0],
        max_runtime=run_time.runtime_left(job)[0],
        claim=Claim(at=now, lease_until=now + steps.LEASE),
    )
    condition = WriteCondition(policy_version=policy_version)
    (claimed,) = store.commit(
        [Change(before=job, after=steps.claim(job, attempt))], at=now, condition=condition
    )
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{job.name}"
    recorded = steps.recorded(claimed, training_job_arn=arn, now=now)
    store.commit([Change(before=claimed, after=recorded)], at=now)


def _copies(
    model: Job | None, others: Iterable[Job], policy_version: int, *, now: datetime
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows a pass reads of running jobs, and their share of the counters, copied from one job."""
    if model is None:
        return
    recorder = _Recorder()
    run(model, DynamoJobStore(recorder, table="", retention_days=RETENTION_DAYS), policy_version, now=now)
    running = [
        operation
        for operation in recorder.operations
        if "Put" in operation and _begins(operation["Put"]["Item"], "R#")
    ]
    counted = [
        operation
        for operation in recorder.operations
        if "Update" in operation and _begins(operation["Update"]["Key"], "T#", "P#")
    ]
    read = [running[-1], *counted]
    yield read
    for job in others:
        yield replaced(read, {model.name: job.name, model.spec.team: job.spec.team})


def _begins(key: Mapping[str, Any], *beginnings: str) -> bool:
    return bool(key["pk"]["S"].startswith(beginnings))


class _Recorder:
    """Stands for the client of a store: keeps the operations instead of sending them."""

    def __init__(self) -> None:
        self.operations: list[dict[str, Any]] = []

    def transact_write_items(self, **transaction: Any) -> dict[str, Any]:
        self.operations += transaction["TransactItems"]
        return {}


def sender(engine: MotoEngine) -> Send:
    """Return what sends rows to the engine's tables, past the client."""
    return partial(_call, engine)


def _call(engine: MotoEngine, operation: str, params: Mapping[str, Any]) -> None:
    call = AwsCall(service="dynamodb", operation=operation, params=params, region=engine.region)
    engine.call(call, _NO_REQUEST)


def make_table(client: Any, name: str) -> None:
    def schema(partition: str, sort: str) -> list[dict[str, str]]:
        return [
            {"AttributeName": partition, "KeyType": "HASH"},
            {"AttributeName": sort, "KeyType": "RANGE"},
        ]

    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=schema("pk", "sk"),
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": "S"}
            for attribute in ("pk", "sk", "team", "ended_at")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_team",
                "KeySchema": schema("team", "ended_at"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def ready_made(engine: MotoEngine, queues: Iterable[DeepQueue]) -> list[DeepQueue]:
    """Build the queues, all of the same age."""
    now = datetime.now(UTC)
    return [build(engine, queue, now=now) for queue in queues]
