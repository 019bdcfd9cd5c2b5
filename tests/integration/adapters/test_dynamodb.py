"""The table: what a commit writes, what a pass reads, and who loses a race."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError
from trainmaster.adapters.dynamodb import (
    DynamoJobStore,
    DynamoPolicyStore,
    DynamoReadCounts,
    DynamoReader,
    queue_reads,
    reads,
)
from trainmaster.adapters.dynamodb.attribute_values import from_attributes, to_attributes
from trainmaster.adapters.dynamodb.calls import Transactions
from trainmaster.core.durations.histogram import bucket
from trainmaster.core.durations.learned_rows import LATEST
from trainmaster.core.errors import LostRaceError, UnavailableError, WriteRefusedError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Choice, Shape, lane_text
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.candidates import MANY_TEAMS
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import PreemptionReservation, Snapshot, WarmPool
from trainmaster.core.policy import parse_policy
from trainmaster.core.records import TeamCalls, WriteCondition
from trainmaster.services.scheduler.stops import MAX_VICTIMS

from tests.builders import NOON, A, B, claimed, job, minutes, of, seen, waiting
from tests.ends import observed
from tests.integration.conftest import TABLE

S = JobState
DOCUMENT = {
    "pools": [{"name": "main", "capacity": {A: 4, B: 4}}],
    "teams": [{"name": "vision", "principals": [], "budget": {"usd_per_month": 100}}],
}


class Calls:
    """The client, noting what is read and what is written in one transaction."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.reads: Counter[str] = Counter()
        """Calls by partition."""
        self.transactions: list[list[dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_item(self, **call: Any) -> Any:
        self.reads[call["Key"]["pk"]["S"]] += 1
        return self._client.get_item(**call)

    def query(self, **call: Any) -> Any:
        values = call["ExpressionAttributeValues"]
        self.reads[values.get(":pk", values.get(":team"))["S"]] += 1
        return self._client.query(**call)

    def transact_write_items(self, **call: Any) -> Any:
        self.transactions.append(call["TransactItems"])
        return self._client.transact_write_items(**call)


class Table:
    """Store, reader and policy over one table, with one pool."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.calls = Calls(client)
        self.store = DynamoJobStore(self.calls, table=TABLE, retention_days=90)
        self.reader = DynamoReader(self.calls, table=TABLE)
        policies = DynamoPolicyStore(client, table=TABLE)
        self.policy = policies.put(DOCUMENT, pools=["main"], replaces=policies.current())

    def submitted(self, name: str, **fields: Any) -> Job:
        one = job(name, **{"entry_id": f"01{name}"} | fields)
        self.store.submit(one, b'{"TrainingJobName": "x"}')
        return one

    def change(self, before: Job, after: Job, **condition: Any) -> Job:
        limits = WriteCondition(policy_version=self.policy.version, **condition) if condition else None
        (written,) = self.store.commit([Change(before=before, after=after)], at=NOON, condition=limits)
        return written

    def running(self, name: str, **fields: Any) -> Job:
        claim = {key: fields.pop(key) for key in ("month", "reserved_cents") if key in fields}
        one = self.submitted(name, **fields)
        live = self.change(one, claimed(one, **claim))
        return self.change(live, steps.recorded(live, training_job_arn="arn:x", now=NOON))

    def snapshot(self) -> Snapshot:
        policy = parse_policy(DOCUMENT)
        return self.reader.snapshot(policy.pools[0], policy=policy, paused=False, now=NOON)

    def row(self, pk: str, sk: str) -> dict[str, Any]:
        """One row without its key."""
        item = self.client.get_item(TableName=TABLE, Key={"pk": {"S": pk}, "sk": {"S": sk}})["Item"]
        return {name: part for name, part in from_attributes(item).items() if name not in {"pk", "sk"}}

    def rows(self, *partitions: str) -> set[tuple[str, str]]:
        """Keys of the rows there are."""
        items = self.client.scan(TableName=TABLE)["Items"]
        keys = {(item["pk"]["S"], item["sk"]["S"]) for item in items}
        return {key for key in keys if key[0] in partitions}


def key_of(operation: dict[str, Any]) -> tuple[str, str]:
    """Of one element of TransactItems."""
    ((_, content),) = operation.items()
    key = content.get("Key") or content["Item"]
    return (key["pk"]["S"], key["sk"]["S"])


def warm_pool(name: str) -> WarmPool:
    end = NOON + minutes(9)
    return WarmPool(
        training_job_name=name, team="vision", vector=of(1), warm_key="k", since=NOON, expires_at=end
    )


KEYED = Shape(vector=of(1), warm_key="k")
HOLD = PreemptionReservation(preemptor="p", vector=of(1), victims=("v",))
COMPLETED: dict[str, Any] = {
    "status": "Completed",
    "secondary": "Completed",
    "training_since": NOON - minutes(10),
    "ended_at": NOON,
}


@pytest.fixture
def table(dynamodb: Any) -> Table:
    return Table(dynamodb)


def test_a_claim_and_an_end_touch_each_row_once_and_leave_what_they_should(table: Table) -> None:
    warm = warm_pool("earlier")
    table.store.change_warm("main", None, warm, at=NOON)
    one = table.submitted("a", team="vision")
    claim = claimed(one, month="2026-11", reserved_cents=700, shape=KEYED, reuses="earlier")
    live = table.change(one, claim, warm=of(1), reuses=warm, most_committed=0)
    assert table.rows("Q#main#vision#ml.a.xlarge=1", "W#main", "R#main") == {("R#main", "a")}
    assert table.row("P#main", "counters").items() >= {f"used#{A}": 1, f"warm#{A}": 0}.items()
    assert table.row("U#vision#2026-11", "total") == {"committed": 700}
    over = observed(live, seen("a", **COMPLETED, warm_status="Available"), now=NOON)
    assert over is not None
    table.store.commit([over], at=NOON)
    assert table.rows("Q#main#vision#ml.a.xlarge=1", "W#main", "R#main") == {("W#main", "a")}
    assert table.row("P#main", "counters").items() >= {f"used#{A}": 0, f"warm#{A}": 1}.items()
    assert table.row("U#vision#2026-11", "total") == {"committed": 0}
    assert table.row("U#vision#2026-11", "j#a").items() >= {"unpriced": 1}.items()
    assert (
        table.row("H#main", "vision#ml.a.xlarge=1").items()
        >= {"t1": 600, "t2": 600, "b#23#18": 1, "n#2026-11#0": 1}.items()
    )
    for operations in table.calls.transactions:
        assert len({key_of(one) for one in operations}) == len(operations)


@pytest.mark.thorough
def test_as_many_victims_as_are_asked_at_a_time_are_one_transaction(table: Table) -> None:
    teams = ("vision", "speech")
    victims = [table.running(f"v{number:02d}", team=teams[number % 2]) for number in range(MAX_VICTIMS)]
    first, preemptor = table.running("v99"), table.submitted("p")
    entry = waiting_entry(preemptor)
    before = PreemptionReservation(preemptor="p", vector=of(25), missing=of(24))
    table.store.commit(
        [Change(before=first, after=steps.preempted_for(first, entry))],
        at=NOON,
        condition=WriteCondition(policy_version=table.policy.version, places_hold=before),
    )
    condition = WriteCondition(
        policy_version=table.policy.version,
        used=of(25),
        places_hold=replace(before, missing=None),
        replaces_hold=before,
        still_waiting=entry,
    )
    changes = [Change(before=one, after=steps.preempted_for(one, entry)) for one in victims]
    table.store.commit(changes, at=NOON, condition=condition)
    assert MAX_VICTIMS == 24
    assert len(table.calls.transactions[-1]) <= 100, "Source: DynamoDB limits, TransactWriteItems"
    assert {one.state for one in table.snapshot().running} == {S.PREEMPTING}


@pytest.mark.thorough
@pytest.mark.parametrize("depth", [3, 100])
def test_a_pass_reads_the_same_however_deep_the_queue_is(table: Table, depth: int) -> None:
    for number in range(depth):
        table.submitted(f"a{number:02d}", score=number)
    table.calls.reads.clear()
    table.snapshot()
    assert dict(table.calls.reads) == {
        "P#main": 1,
        "T#main": 1,
        "O#main": 1,
        "L#main": 2,
        "B#main": 1,
        "R#main": 1,
    }


def test_a_pass_reads_warm_pools_only_where_some_are_counted_and_months_only_of_budgets(table: Table) -> None:
    table.store.change_warm("main", None, warm_pool("w"), at=NOON)
    for team in ("vision", "speech"):
        table.submitted(f"of-{team}", team=team)
    table.calls.reads.clear()
    table.snapshot()
    assert table.calls.reads["W#main"] == 1
    assert [name for name in table.calls.reads if name.startswith("U#")] == ["U#vision#2026-11"]


def test_jobs_of_a_lane_too_long_for_a_key_share_its_digest_everywhere(table: Table) -> None:
    long: dict[Capacity, int] = {}
    for number in range(20):
        long |= of(1, f"ml.long{number:02d}.24xlarge")
    live = table.running("a", vector=long)
    table.submitted("b", vector=long)
    assert [entry.name for entry in table.snapshot().waiting] == ["b"]
    over = observed(live, seen("a", **COMPLETED), now=NOON)
    assert over is not None
    table.store.commit([over], at=NOON)
    text = lane_text((Shape(vector=long),), Choice.FIRST_FIT)
    assert len(text) > 200
    assert table.reader.entrance("main", "default", text, learned=(), now=NOON).predicted == minutes(10)


def test_rows_written_while_a_job_lives_expire_twice_as_late_as_the_job(table: Table) -> None:
    one = table.running("v", team="vision", attempt=1)
    victim = table.change(one, steps.preempted_for(one, waiting("urgent")))
    over = observed(victim, seen("v", status="Stopped", secondary="Stopped"), now=NOON)
    assert over is not None
    table.store.commit([over], at=NOON)
    twice = int((NOON + timedelta(days=180)).timestamp())
    taken = ("U#vision#2026-11", "p#2026-11-02T12:00:00.000+00:00#v")
    for key in (("J#v", "a#01v#000001"), ("N#v", "alias"), ("J#v", "h#01v#000000004"), taken):
        assert table.row(*key)["ttl"] == twice, key
    assert "ttl" not in table.row("J#v", "job")


def test_reads_of_a_minute_are_summed_and_expire(table: Table) -> None:
    counts = DynamoReadCounts(lambda: table.client, table=TABLE)
    at = NOON + timedelta(seconds=59)
    thirty, five, one = (TeamCalls(reads=count, calls=2 * count) for count in (30, 5, 1))
    assert counts.add_calls("red", thirty, at=NOON) == {"red": thirty}
    both = TeamCalls(reads=35, calls=70)
    assert counts.add_calls("red", five, at=at) == {"red": both}
    assert counts.add_calls("blue#1", one, at=at) == {"red": both, "blue#1": one}
    assert counts.add_calls("red", one, at=at + timedelta(seconds=1)) == {"red": one}
    minute = f"{int(NOON.timestamp()) // 60:010d}"
    expires = int((at + timedelta(hours=1)).timestamp())
    row = {"reads#red": 35, "calls#red": 70, "reads#blue#1": 1, "calls#blue#1": 2, "ttl": expires}
    assert table.row("S#-##", minute) == row


def completes(table: Table, name: str, *, at: datetime = NOON, **fields: Any) -> None:
    over = observed(table.running(name, **fields), seen(name, **COMPLETED | {"ended_at": at}), now=at)
    assert over is not None
    table.store.commit([over], at=at)


RUN_TIMES = ("H#main", "default#ml.a.xlarge=1")


def test_run_times_expire_90_days_after_the_last_job_that_asked_for_the_same(table: Table) -> None:
    for days in (0, 60):
        at = NOON + timedelta(days=days)
        completes(table, f"after{days}", at=at)
        assert table.row(*RUN_TIMES)["ttl"] == int((at + timedelta(days=90)).timestamp())


def test_run_times_of_the_release_before_expire_from_the_next_job_on(table: Table) -> None:
    completes(table, "a")
    key = to_attributes(dict(zip(("pk", "sk"), RUN_TIMES, strict=True)))
    names = {"#ttl": "ttl"}
    table.client.update_item(
        TableName=TABLE, Key=key, UpdateExpression="REMOVE #ttl", ExpressionAttributeNames=names
    )
    assert table.reader.entrance("main", "default", f"{A}=1", learned=(), now=NOON).predicted == minutes(10)
    completes(table, "b")
    assert "ttl" in table.row(*RUN_TIMES)


def test_a_priority_that_comes_again_after_months_leaves_none_of_them_in_the_run_times(table: Table) -> None:
    for number, months in enumerate((0, 1, 5, 9, 17)):
        completes(table, f"job{number}", at=NOON + timedelta(days=30.5 * months), priority=7)
    counted = [name for name in table.row(*RUN_TIMES) if name.startswith("n#")]
    assert counted == ["n#2028-04#7"]


def test_a_histogram_expires_with_its_last_job_and_stays_below_a_write_unit(table: Table) -> None:
    """Whatever its jobs: every length that there is, of more jobs than ever end in a year."""
    buckets = range(bucket(timedelta(days=28)) + 1)
    every = {f"w#{number}": 10**24 for number in buckets}
    table.client.put_item(
        TableName=TABLE, Item=to_attributes({"pk": "K#main", "sk": "n00a#2026#default", **every})
    )
    completes(table, "b", learned_in=("n00a",))
    row = table.row("K#main", "n00a#2026#default")
    assert row["ttl"] == int((NOON + timedelta(days=90)).timestamp())
    assert len(row) == 2 + len(every) + LATEST
    digits = (len(str(content)) for content in row.values())
    assert sum(map(len, row)) + sum(-(-count // 2) + 1 for count in digits) < 1024


def test_a_team_with_many_shapes_costs_no_other_team_s_estimate_more(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "MOST_RUN_TIMES", 2)
    for number in range(1, 5):
        completes(table, f"many{number}", team="alpha", vector=of(number))
    completes(table, "mine", team="vision", vector=of(3))
    table.calls.reads.clear()
    found = table.reader.run_times("main", [("vision", f"{A}=3"), ("alpha", f"{A}=1"), ("vision", f"{B}=1")])
    assert list(found) == [("alpha", f"{A}=1"), ("alpha", f"{A}=2"), ("vision", f"{A}=3")]
    assert table.calls.reads["H#main"] == 1
    whole = table.reader.run_times("main", ())
    assert list(whole) == [("alpha", f"{A}=1"), ("alpha", f"{A}=2")]


def backwards(tasks: Iterable[Callable[[], object]]) -> None:
    for task in reversed(list(tasks)):
        task()


@pytest.fixture
def few_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass reads 2 of the pool's order, then 2 of each team and lane."""
    monkeypatch.setattr(queue_reads, "FIRST", 2)
    monkeypatch.setattr(queue_reads, "HEADS", 2)


@pytest.mark.usefixtures("few_first")
def test_heads_of_teams_and_lanes_are_the_same_in_whatever_order_they_come(table: Table) -> None:
    for team in ("a", "b", "c"):
        for number in range(4):
            shape = of(1) if number % 2 else of(1, B)
            table.submitted(f"{team}{number}", team=team, score=number + 50 * ord(team), vector=shape)
    other = DynamoReader(table.calls, table=TABLE, beside=backwards)
    policy = parse_policy(DOCUMENT)
    snapshot = other.snapshot(policy.pools[0], policy=policy, paused=False, now=NOON)
    assert [one.name for one in snapshot.waiting] == [one.name for one in table.snapshot().waiting]
    assert {one.team for one in snapshot.waiting} == {"a", "b", "c"}


MANY = MANY_TEAMS + 2
"""Teams with a job each: so many less two are not among the first two."""


@pytest.mark.usefixtures("few_first")
def test_one_read_of_the_order_spares_one_of_each_of_many_teams(table: Table) -> None:
    names = [f"j{number:02d}" for number in range(MANY)]
    for number, name in enumerate(names):
        table.submitted(name, team=f"team-{number:02d}", score=number)
    table.calls.reads.clear()
    assert [one.name for one in table.snapshot().waiting] == names
    assert table.calls.reads["O#main"] == 1 + 1
    assert not [one for one in table.calls.reads if one.startswith("OT#")]
    (last,) = [key for _, key in table.rows("O#main") if key.endswith(f"#{names[-1]}")]
    table.client.delete_item(TableName=TABLE, Key={"pk": {"S": "O#main"}, "sk": {"S": last}})
    assert [one.name for one in table.snapshot().waiting] == names, "a lost row hides nobody"
    assert [one for one in table.calls.reads if one.startswith("OT#")] == [f"OT#main#team-{MANY - 1:02d}"]


@pytest.mark.usefixtures("few_first")
def test_heads_that_cannot_be_read_fail_the_snapshot(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for score, team in enumerate("aab"):
        table.submitted(f"{team}{score}", team=team, score=score)

    def refused(call: Any) -> bool:
        return str(call["ExpressionAttributeValues"][":pk"]["S"]).startswith("OT#")

    query = table.client.query

    def throttled(**call: Any) -> Any:
        if refused(call):
            answer: Any = {"Error": {"Code": "ProvisionedThroughputExceededException"}}
            raise ClientError(answer, "Query")
        return query(**call)

    monkeypatch.setattr(table.client, "query", throttled)
    with pytest.raises(UnavailableError):
        table.snapshot()


def test_months_and_warm_pools_never_expire(table: Table) -> None:
    table.store.change_warm("main", None, warm_pool("w"), at=NOON)
    one = table.running("a", month="2026-11", reserved_cents=9)
    over = observed(one, seen("a", **COMPLETED), now=NOON)
    assert over is not None
    table.store.commit([over], at=NOON)
    kept = [("W#main", "w"), ("U#default#2026-11", "total"), ("U#default#2026-11", "j#a")]
    for key in (*kept, ("P#main", "counters")):
        assert "ttl" not in table.row(*key), key


def test_amounts_and_prices_come_back_exactly(table: Table) -> None:
    one = table.submitted("a", wasted={"preemption": 7}, cents=123, checkpointed=minutes(1.5))
    price = Decimal("98.320000000000000001")
    live = table.change(one, claimed(one, usd_per_hour=price, max_runtime=minutes(58.5)), most_used=of(9))
    assert table.reader.job("a") == live
    assert live.live is not None
    assert live.live.claim.usd_per_hour == price


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda store: store.learn_limit("main", Capacity(A), None), id="a learned limit"),
        pytest.param(lambda store: store.ranked("main", "age-1"), id="the order of a pool"),
        pytest.param(lambda store: store.warned("vision", "2026-11"), id="a warning"),
        pytest.param(
            lambda store: store.change_warm("main", None, warm_pool("w"), at=NOON), id="a warm pool"
        ),
        pytest.param(lambda store: store.drop_hold("main", HOLD), id="a hold"),
    ],
)
def test_a_table_that_refuses_is_unavailable_for_now(write: Callable[[DynamoJobStore], None]) -> None:
    refusal = ClientError({"Error": {"Code": "ThrottlingException", "Message": "m"}}, "UpdateItem")
    client = Mock(spec_set=["update_item", "transact_write_items"])
    client.update_item.side_effect = client.transact_write_items.side_effect = refusal
    with pytest.raises(UnavailableError, match="ThrottlingException"):
        write(DynamoJobStore(client, table=TABLE, retention_days=90))


def test_finished_jobs_are_listed_newest_first_and_expire(table: Table) -> None:
    for number in range(3):
        one = table.submitted(f"a{number}")
        reason = Reason(code=ReasonCode.STOPPED_BY_USER, message="x")
        table.change(one, steps.cancelled(one, reason=reason, now=NOON + minutes(number)))
    found = table.reader.finished("default", state=S.STOPPED, after=None, limit=2)
    rest = table.reader.finished("default", state=S.STOPPED, after=found[-1], limit=2)
    assert [name for _, name in (*found, *rest)] == ["a2", "a1", "a0"]
    for pk, sk in (("J#a0", "job"), ("J#a0", "request"), ("N#a0", "alias")):
        item = table.client.get_item(TableName=TABLE, Key={"pk": {"S": pk}, "sk": {"S": sk}})["Item"]
        assert int(item["ttl"]["N"]) == int((NOON + minutes(90 * 24 * 60)).timestamp()), sk


def _cancelled(*codes: str) -> ClientError:
    reasons = [{"Code": code} for code in codes]
    answer = {
        "Error": {"Code": "TransactionCanceledException", "Message": "m"},
        "CancellationReasons": reasons,
    }
    return ClientError(answer, "TransactWriteItems")  # type: ignore[arg-type]


class Refusing:
    """A client that raises each error in turn, then takes the write."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def transact_write_items(self, **_: Any) -> None:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)


def test_C13_a_transaction_conflict_is_tried_again_and_is_not_a_lost_race() -> None:
    client = Refusing(_cancelled("None", "TransactionConflict"), _cancelled("TransactionConflict", "None"))
    Transactions(client, pause=lambda _: None).write([])
    assert client.calls == 3


@pytest.mark.parametrize("beside", ["None", "TransactionConflict"])
def test_a_write_that_can_never_be_taken_names_its_row_and_is_not_tried_again(beside: str) -> None:
    key = {"pk": {"S": "T#main"}, "sk": {"S": "red"}}
    client = Refusing(_cancelled(beside, "ValidationError"))
    with pytest.raises(WriteRefusedError, match="T#main/red") as caught:
        Transactions(client, pause=lambda _: None).write([{"Put": {"Item": {}}}, {"Update": {"Key": key}}])
    assert (client.calls, caught.value.retryable) == (1, False)


def test_a_call_that_the_table_calls_invalid_is_not_to_be_tried_again() -> None:
    error = ClientError({"Error": {"Code": "ValidationException", "Message": "m"}}, "TransactWriteItems")
    with pytest.raises(WriteRefusedError):
        Transactions(Refusing(error), pause=lambda _: None).write([])


def test_a_failed_condition_beside_an_invalid_row_is_a_lost_race() -> None:
    client = Refusing(_cancelled("ConditionalCheckFailed", "ValidationError"))
    with pytest.raises(LostRaceError):
        Transactions(client, pause=lambda _: None).write([])


def test_C13_a_failed_condition_beside_a_conflict_is_a_lost_race() -> None:
    client = Refusing(_cancelled("ConditionalCheckFailed", "TransactionConflict"))
    with pytest.raises(LostRaceError):
        Transactions(client, pause=lambda _: None).write([])
    assert client.calls == 1


def test_D12_a_disabled_key_is_unavailable_for_now() -> None:
    answer: Any = {"Error": {"Code": "KMSAccessDeniedException", "Message": "m"}}
    client = Refusing(ClientError(answer, "TransactWriteItems"))
    with pytest.raises(UnavailableError, match="KMSAccessDeniedException"):
        Transactions(client, pause=lambda _: None).write([])
