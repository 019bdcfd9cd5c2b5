"""A full pool with a queue of any depth, in a table of the twin's engine: rows as the adapter writes them.

Submitting each job for real would take an hour; the rows of a submission are the same, written in bulk.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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

from local.engine.calls import AwsCall
from local.engine.moto_engine import MotoEngine
from local.wire import Request

POOL = "deep"
INSTANCE_TYPE = "ml.g5.12xlarge"
CAPACITY = 64
RUNNING = 16
TEAMS = tuple(f"team-{number}" for number in range(8))
WIDTHS = (1, 2, 4, 8)
"""Instances that jobs ask for; with the teams that makes 32 lanes."""
RUNNING_PRIORITY = 500
"""Above all who wait, so that a pass preempts nobody."""
PRIORITIES = 10
POLICY = {"version": 1, "pools": [{"name": POOL, "capacity": {INSTANCE_TYPE: CAPACITY}}]}
RETENTION_DAYS = 90
CHUNK = 1000
"""Jobs whose rows are in memory at a time."""
BATCH = 25
"""Source: DynamoDB API reference, BatchWriteItem."""
BODY = Random(0).randbytes(800)
"""Does not shrink when packed: about what gzip leaves of a request from the SageMaker SDK."""
_NO_REQUEST = Request(method="POST", raw_path="/", query="", headers={}, body=b"")
"""The engine answers operations on items by their parameters alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepQueue:
    """One table: who runs, and how many wait."""

    table: str
    pending: int


def build(engine: MotoEngine, pending: int, *, now: datetime) -> DeepQueue:
    """A new table with the policy, a pool without a free instance, and this many waiting jobs."""
    client, table = engine.client("dynamodb"), f"deep-{pending}"
    make_table(client, table)
    policies = DynamoPolicyStore(client, table=table)
    policy = policies.put(POLICY, pools=[POOL], replaces=policies.current())
    pool = parse_policy(POLICY).pools[0]
    store = DynamoJobStore(client, table=table, retention_days=RETENTION_DAYS)
    for job in _jobs(RUNNING, pool, prefix="runs", now=now, width=CAPACITY // RUNNING):
        _run(job, store, policy.version, now=now)
    store.ranked(POOL, pool.order_key)
    _enqueue(engine, table, _jobs(pending, pool, prefix="waits", now=now))
    return DeepQueue(table=table, pending=pending)


def _jobs(
    count: int, pool: PoolPolicy, *, prefix: str, now: datetime, width: int | None = None
) -> Iterator[Job]:
    """Jobs over all teams, widths and priorities in turn, submitted a second after each other."""
    for number in range(count):
        entered = now - timedelta(days=2) + timedelta(seconds=number)
        priority = RUNNING_PRIORITY if width else number % PRIORITIES
        of = width or WIDTHS[number // len(TEAMS) % len(WIDTHS)]
        spec = JobSpec(
            name=f"{prefix}-{number:06d}-fine-tune-resnet-50-on-imagenet",
            entry_id=f"01{number:024d}",
            team=TEAMS[number % len(TEAMS)],
            pool=POOL,
            submitted_by="arn:aws:iam::111122223333:role/vision-research",
            submitted_at=entered,
            shapes=(Shape(vector={Capacity(INSTANCE_TYPE): of}),),
            preemptible=True,
            max_runtime=timedelta(hours=12),
            max_wait=None,
            body_hash="0" * 64,
            checkpoint_uri=f"s3://vision-checkpoints/{number:06d}",
        )
        score = int(entered.timestamp() * 1000) - pool.boost_ms(priority)
        yield Job(spec=spec, state=JobState.PENDING, priority=priority, score=score, ranked_by=pool.order_key)


def _run(job: Job, store: DynamoJobStore, policy_version: int, *, now: datetime) -> None:
    """Submit, claim and record it."""
    store.submit(job, BODY)
    attempt = Attempt(
        number=0,
        training_job_name=job.name,
        shape=job.spec.shapes[0],
        max_runtime=run_time.runtime_left(job)[0],
        claim=Claim(at=now, lease_until=now + steps.LEASE),
    )
    condition = WriteCondition(policy_version=policy_version, most_used=dict.fromkeys(job.vector, CAPACITY))
    (claimed,) = store.commit(
        [Change(before=job, after=steps.claim(job, attempt))], at=now, condition=condition
    )
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{job.name}"
    recorded = steps.recorded(claimed, training_job_arn=arn, now=now)
    store.commit([Change(before=claimed, after=recorded)], at=now)


class _Recorder:
    """Stands for the client of a store: keeps the operations instead of sending them."""

    def __init__(self) -> None:
        self.operations: list[dict[str, Any]] = []

    def transact_write_items(self, **transaction: Any) -> dict[str, Any]:  # noqa: ANN401  as boto3 takes it
        self.operations += transaction["TransactItems"]
        return {}


def _enqueue(engine: MotoEngine, table: str, jobs: Iterator[Job]) -> None:
    """What the store would send for each submission, without the transaction around it."""
    while chunk := list(islice(jobs, CHUNK)):
        recorder = _Recorder()
        store = DynamoJobStore(recorder, table=table, retention_days=RETENTION_DAYS)
        for job in chunk:
            store.submit(job, BODY)
        puts = [one["Put"]["Item"] for one in recorder.operations if "Put" in one]
        for start in range(0, len(puts), BATCH):
            batch = [{"PutRequest": {"Item": item}} for item in puts[start : start + BATCH]]
            _call(engine, "BatchWriteItem", {"RequestItems": {table: batch}})
        for update in (one["Update"] for one in recorder.operations if "Update" in one):
            _call(engine, "UpdateItem", update)


def _call(engine: MotoEngine, operation: str, params: Mapping[str, Any]) -> None:
    call = AwsCall(service="dynamodb", operation=operation, params=params, region=engine.region)
    engine.call(call, _NO_REQUEST)


def make_table(client: Any, name: str) -> None:  # noqa: ANN401  boto3's clients are typed by their service
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
            {"AttributeName": each, "AttributeType": "S"} for each in ("pk", "sk", "team", "ended_at")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_team",
                "KeySchema": schema("team", "ended_at"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def ready_made(engine: MotoEngine, sizes: Iterable[int]) -> dict[int, DeepQueue]:
    """A queue of each depth, all of the same age."""
    now = datetime.now(UTC)
    return {size: build(engine, size, now=now) for size in sizes}
