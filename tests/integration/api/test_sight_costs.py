"""What the routes read of 2,000 waiting and 20,000 ended jobs: as much as of fewer, or in proportion.

Read units are counted from the answers of the twin's DynamoDB as AWS would bill them. Both tables have the
same jobs a day; the large one goes back for longer, and more wait in it.
"""

import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from math import ceil
from typing import Any

import pytest
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from trainmaster.adapters.dynamodb import DynamoJobStore
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.history_rows import event_item, event_key
from trainmaster.api.usage_groups import MOST_JOBS
from trainmaster.core.history.past_records import PastEvent
from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import Job, JobSpec, JobState
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import NoticeKind

from benchmarks.crowd import replaced
from benchmarks.deep_queue import BODY, INSTANCE_TYPE, PERSON_ROLE, POOL, DeepQueue, fill
from local.clock import TwinClock
from local.engine.calls import AwsCall
from local.engine.client import in_process_client
from local.engine.dynamodb.order import key_of
from local.engine.dynamodb.tables import Table
from local.engine.dynamodb.values import item_bytes, item_to_wire, make_item
from local.engine.moto_engine import MotoEngine
from local.wire import Request, Response
from tests.builders import claimed, seen
from tests.ends import observed
from tests.integration.api.conftest import ADMIN, OWN, Answer, Api

pytestmark = pytest.mark.thorough

NOW = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)
ADA = f"arn:aws:sts::{OWN}:assumed-role/vision-lead/ada"
TEAMS = tuple(f"team-{number}" for number in range(8))
OWN_TEAM = TEAMS[0]
ENDS_A_DAY, ENDS_AT_ONCE = 2000, 100
APART = timedelta(days=1) * ENDS_AT_ONCE / ENDS_A_DAY
READ_UNIT = 4096
"""Bytes. Source: DynamoDB developer guide, "Read and write capacity units"."""
_NO_REQUEST = Request(method="POST", raw_path="/", query="", headers={}, body=b"")
_DIGITS = 6
"""At the end of a name and of an entry's id."""
_COPIED = ("job", "request", "j#")
"""How the sort keys begin of those rows of a job that the routes read, but for that of its ending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one call."""

    units: float
    calls: int
    """Of the table, reads alone."""


@dataclass(slots=True, kw_only=True)
class ReadMeter:
    """Serves a client by the twin's engine and counts what AWS would bill for reading."""

    engine: MotoEngine
    units: float = 0.0
    calls: int = 0

    def serve(self, call: AwsCall, request: Request) -> Response:
        response = self.engine.call(call, request)
        if call.service == "dynamodb":
            self._count(call, json.loads(response.body))
        return response

    def _count(self, call: AwsCall, answer: Mapping[str, Any]) -> None:
        match call.operation:
            case "GetItem":
                self._read([answer["Item"]] if "Item" in answer else [])
            case "Query":
                share = 1.0 if call.params.get("ConsistentRead") else 0.5
                self._read(answer["Items"], share=share, scanned=answer["ScannedCount"])
            case "BatchGetItem":
                self.calls += 1
                found = [one for rows in answer["Responses"].values() for one in rows]
                asked = sum(len(one["Keys"]) for one in call.params["RequestItems"].values())
                self.units += sum(_units([one]) for one in found) + asked - len(found)
            case _:
                pass

    def _read(self, items: Sequence[Mapping[str, Any]], *, share: float = 1.0, scanned: int = 0) -> None:
        """What a filter drops is read and billed too; it is taken to be as large as what it leaves."""
        self.calls += 1
        dropped = max(scanned / len(items), 1.0) if items else 1.0
        self.units += share * _units(items, times=dropped)


def _units(items: Sequence[Mapping[str, Any]], *, times: float = 1.0) -> int:
    return max(1, ceil(sum(item_bytes(item) for item in items) * times / READ_UNIT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An API over a table of so many jobs."""

    api: Api
    meter: ReadMeter

    def ask(
        self, path: str, *, user: str = ADA, headers: Mapping[str, str] | None = None, **query: Any
    ) -> Answer:
        more = {"headers": dict(headers)} if headers else {}
        return self.api.call(
            "GET", path, user=user, query={name: str(one) for name, one in query.items()}, **more
        )

    def cost(self, path: str, *, status: int = 200, **asked: Any) -> Cost:
        self.meter.units, self.meter.calls = 0.0, 0
        answer = self.ask(path, **asked)
        assert answer.status == status, answer
        return Cost(units=self.meter.units, calls=self.meter.calls)


def policy(queue: DeepQueue) -> dict[str, Any]:
    own = [PERSON_ROLE, f"arn:aws:iam::{OWN}:role/vision-*"]
    teams = [
        {"name": team, "roles": "any", "principals": own if team == OWN_TEAM else [f"{PERSON_ROLE}-{team}"]}
        for team in TEAMS
    ]
    return queue.policy | {"teams": teams}


def measured(engine: MotoEngine, *, waiting: int, ended: int) -> Measured:
    meter = ReadMeter(engine=engine)
    client = in_process_client(
        "dynamodb", region=engine.region, endpoint_url=engine.endpoint_url, serve=meter.serve
    )
    queue = DeepQueue(pending=waiting)
    api = Api(client, queue.policy)
    api.now = NOW
    send = partial(_send, engine)
    fill_ends(api, engine, ended=ended)
    fill(client, api.table, queue, now=NOW, send=send)
    api.policies.put(policy(queue), pools=[POOL], replaces=api.policies.current())
    return Measured(api=api, meter=meter)


def fill_ends(api: Api, engine: MotoEngine, *, ended: int) -> None:
    """A job of each instant goes through the store; the others of the instant are copies of its rows."""
    jobs = [ends(api.store, number, NOW - number * APART) for number in range(1, ended // ENDS_AT_ONCE + 1)]
    table = engine._data_plane._tables.find(engine.region, api.table)
    for job in jobs:
        for number in range(ENDS_AT_ONCE):
            _put(table, to_attributes(_event(job, number)))
    for job in jobs:
        for item in [one for key, one in table.order.items.items() if _is_copied(job, key)]:
            _copy(table, job, item)


def _is_copied(job: Job, key: tuple[Any, Any]) -> bool:
    partition, sort = key
    is_ending = partition.startswith("D#") and job.name in sort
    return is_ending or (job.name in partition + sort and sort.startswith(_COPIED))


def _copy(table: Table, job: Job, item: Item) -> None:
    """Under names of the same length; what has neither the name nor the entry's id in it is shared."""
    olds = (job.name, job.spec.entry_id)
    wire = item_to_wire(item)
    own = {name: value for name, value in wire.items() if any(old in json.dumps(value) for old in olds)}
    for number in range(1, ENDS_AT_ONCE):
        changes = {old: f"{old[:-_DIGITS]}{number:0{_DIGITS}d}" for old in olds}
        _put(table, replaced(own, changes), item.attrs)


def _put(table: Table, attributes: dict[str, Any], shared: Mapping[str, DynamoType] | None = None) -> None:
    """Past the checks of a request, which take too long for so many."""
    whole = {**(shared or {}), **{name: DynamoType(value) for name, value in attributes.items()}}
    item = make_item(whole["pk"], whole["sk"], {})
    item.attrs = whole
    table.replace(key_of(item), None, item)


def ends(store: DynamoJobStore, number: int, at: datetime) -> Job:
    """It trained for an hour up to then."""
    began = at - timedelta(hours=1)
    spec = JobSpec(
        name=f"ended-{number:04d}-fine-tune-resnet-50-on-imagenet-000000",
        entry_id=f"02{number:018d}000000",
        team=TEAMS[number % len(TEAMS)],
        pool=POOL,
        submitted_by=ADA,
        submitted_at=began,
        shapes=(Shape(vector={Capacity(INSTANCE_TYPE): 2}),),
        preemptible=True,
        max_runtime=timedelta(hours=12),
        max_wait=None,
        body_hash="0" * 64,
        checkpoint_uri=f"s3://vision-checkpoints/{number:06d}",
    )
    job = Job(spec=spec, state=JobState.PENDING, priority=0, score=0, ranked_by="")
    store.submit(job, BODY)
    holding = claimed(job, job.name, now=began, usd_per_hour=None, month=f"{began:%Y-%m}")
    (holding,) = store.commit([Change(before=job, after=holding)], at=began)
    running = steps.recorded(holding, training_job_arn=f"arn:aws:sagemaker:::{job.name}", now=began)
    (running,) = store.commit([Change(before=holding, after=running)], at=began)
    news = seen(job.name, status="Completed", secondary="Completed", training_since=began, ended_at=at)
    change = observed(running, news, now=at)
    assert change is not None
    store.commit([change], at=at)
    return change.after


def _event(job: Job, number: int) -> dict[str, Any]:
    assert job.ended_at is not None
    text = f"Job {job.name} of team {job.spec.team} has failed: the instances were not there. " * 3
    event = PastEvent(
        id=f"{job.name}-{number}",
        at=job.ended_at,
        kind=next(iter(NoticeKind)).value,
        team=job.spec.team,
        job=job.name,
        detail={"what": text, "todo": f"trainmaster logs {job.name}", "id": f"{number}"},
    )
    pk, sk = event_key(event)
    return {"pk": pk, "sk": sk, **event_item(event)}


def _send(engine: MotoEngine, operation: str, params: Mapping[str, Any]) -> None:
    call = AwsCall(service="dynamodb", operation=operation, params=params, region=engine.region)
    engine.call(call, _NO_REQUEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    small: Measured
    large: Measured


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    """Without garbage collection, which would walk through all the rows again and again."""
    engine = MotoEngine(clock=TwinClock(manual=False))
    gc.disable()
    try:
        small = measured(engine, waiting=1200, ended=ENDS_A_DAY)
        yield Tables(small=small, large=measured(engine, waiting=2000, ended=10 * ENDS_A_DAY))
    finally:
        gc.enable()
        engine.close()


@pytest.mark.parametrize(
    ("path", "query", "units", "calls"),
    [
        pytest.param("/me", {}, 1, 1, id="me"),
        pytest.param("/rules", {}, 1, 1, id="rules"),
        pytest.param("/timeline", {}, 210, 16, id="timeline"),
        pytest.param("/events", {}, 220, 22, id="events"),
        pytest.param("/events", {"team": OWN_TEAM}, 220, 22, id="events of a team"),
        pytest.param("/jobs", {}, 100, 16, id="jobs"),
        pytest.param("/jobs", {"limit": 1000}, 1150, 32, id="jobs, 1,000 of them"),
        pytest.param("/history/export", {}, 580, 35, id="export"),
    ],
)
def test_a_page_costs_as_much_of_a_large_table_as_of_a_small_one(
    tables: Tables, path: str, query: dict[str, Any], units: int, calls: int
) -> None:
    small, large = (one.cost(path, user=ADMIN, **query) for one in (tables.small, tables.large))
    assert large == small
    assert 0 < large.units <= units
    assert 0 < large.calls <= calls


def test_a_304_reads_the_entries_alone(tables: Tables) -> None:
    for table in (tables.small, tables.large):
        tag = table.ask("/jobs", limit=1000).headers["ETag"]
        cost = table.cost("/jobs", limit=1000, headers={"If-None-Match": tag}, status=304)
        assert cost.units <= 100
        assert cost.units * 10 < table.cost("/jobs", limit=1000).units


def test_estimates_read_the_first_thousand_in_the_queue(tables: Tables) -> None:
    small, large = (one.cost("/estimates") for one in (tables.small, tables.large))
    assert large.units <= min(small.units * 1.1, 125)
    assert large.calls == small.calls <= 20


def test_a_filter_on_names_reads_entries_and_the_jobs_it_finds(tables: Tables) -> None:
    cost = tables.large.cost("/jobs", name_prefix="waits-0001")
    assert cost.units <= 220


@pytest.mark.parametrize(
    ("query", "units"),
    [
        pytest.param({"mine": "true"}, 450, id="mine"),
        pytest.param({"submitted_by": PERSON_ROLE}, 450, id="submitted_by"),
        pytest.param({"changed_since": "2026-11-20T12:00:00Z"}, 2250, id="changed_since"),
    ],
)
def test_filters_on_the_rows_of_jobs_read_each_that_waits_once(
    tables: Tables, query: dict[str, Any], units: int
) -> None:
    assert tables.large.cost("/jobs", **query).units <= units


@pytest.mark.parametrize("shown", [50, 1000])
def test_a_list_of_ended_jobs_reads_each_job_shown_and_little_more_of_the_index(
    tables: Tables, shown: int
) -> None:
    """A whole page of the index, 128 units, is more than 50 jobs are worth; here 100 jobs end at once."""
    cost = tables.large.cost("/jobs", state="completed", team=OWN_TEAM, limit=shown)
    assert shown <= cost.units <= 1.7 * shown + 60


def test_the_history_of_pools_costs_what_waits_and_what_ended_in_the_period(tables: Tables) -> None:
    asked: dict[str, Any] = {"from": "2026-11-10T12:00:00Z"}
    day = tables.large.cost("/pools/history").units
    assert day - tables.small.cost("/pools/history").units <= (2000 - 1200) / 10
    all_of_it = tables.large.cost("/pools/history", **asked).units
    assert day <= 600
    assert all_of_it - day <= 18_000 / 4.5


@pytest.mark.parametrize("group_by", ["team", "job"])
def test_money_by_what_the_ledger_says_reads_the_month_alone(tables: Tables, group_by: str) -> None:
    cost = tables.large.cost("/usage", user=ADMIN, team="*", group_by=group_by)
    assert cost.units <= 10 * ENDS_A_DAY / 30


@pytest.mark.parametrize(
    ("query", "each"),
    [
        pytest.param({"group_by": "user"}, 1, id="user"),
        pytest.param({"group_by": "model_name"}, 2, id="model_name"),
        pytest.param({"from": "2026-11-19T12:00:00Z"}, 1, id="from"),
    ],
)
def test_money_by_what_only_jobs_say_reads_each_job_of_the_team(
    tables: Tables, query: dict[str, Any], each: int
) -> None:
    cost = tables.large.cost("/usage", **query)
    assert cost.units <= 10 * ENDS_A_DAY / len(TEAMS) * (each + 1 / 30) + 10


def test_money_of_all_teams_reads_at_most_5000_jobs(tables: Tables) -> None:
    cost = tables.large.cost("/usage", user=ADMIN, team="*", group_by="user")
    assert cost.units <= 10 * ENDS_A_DAY / 30 + MOST_JOBS
