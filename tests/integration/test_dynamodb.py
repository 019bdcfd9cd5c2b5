"""The table: what a commit writes, what a pass reads, and who loses a race."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from trainmaster import lifecycle
from trainmaster.adapters.dynamodb import DynamoJobStore, DynamoPolicyStore, DynamoReader
from trainmaster.adapters.dynamodb.transactions import Transactions
from trainmaster.errors import LostRaceError, UnavailableError
from trainmaster.jobs import Job, JobState, Reason
from trainmaster.policy import parse_policy
from trainmaster.ports import Change, Guard
from trainmaster.scheduling.entries import waiting_entry
from trainmaster.scheduling.snapshot import Hold

from tests.builders import NOON, A, B, attempt, claimed, job, minutes, of, seen, waiting
from tests.integration.conftest import TABLE

S = JobState
DOCUMENT = {"pools": [{"name": "main", "capacity": {A: 2, B: 1}}]}


class Table:
    """Store, reader and policy over one table, with one pool."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.store = DynamoJobStore(client, table=TABLE, retention_days=90)
        self.reader = DynamoReader(client, table=TABLE)
        policies = DynamoPolicyStore(client, table=TABLE)
        self.policy = policies.put(DOCUMENT, pools=["main"], replaces=policies.current())

    def submitted(self, name: str, **fields: Any) -> Job:
        one = job(name, **{"entry_id": f"01{name}"} | fields)
        self.store.submit(one, b'{"TrainingJobName": "x"}')
        return one

    def change(self, before: Job, after: Job, **guard: Any) -> Job:
        limits = Guard(policy_version=self.policy.version, **guard) if guard else None
        (written,) = self.store.commit([Change(before=before, after=after)], at=NOON, guard=limits)
        return written

    def claimed(self, one: Job, *, room: int = 1) -> Job:
        after = claimed(one, one.name, now=NOON)
        return self.change(one, after, room=dict.fromkeys(one.vector, room))

    def running(self, name: str, **fields: Any) -> Job:
        one = self.claimed(self.submitted(name, **fields), room=9)
        return self.change(one, lifecycle.recorded(one, training_job_arn="arn:x", now=NOON))

    def snapshot(self, *, now: datetime = NOON) -> Any:
        policy = parse_policy({"pools": [{"name": "main", "capacity": {A: 4, B: 4}}]})
        return self.reader.snapshot(policy.pools[0], policy=policy, paused=False, now=now)

    def used(self) -> int:
        return sum(self.snapshot().used.values())


@pytest.fixture
def table(dynamodb: Any) -> Table:
    return Table(dynamodb)


def test_a_job_is_read_back_as_it_was_written(table: Table) -> None:
    one = table.submitted(
        "a", vector={**of(1), **of(2, B, spot=True)}, max_wait=minutes(90), preemptible=False
    )
    assert table.reader.job("a") == one
    live = table.claimed(replace(one, wasted={"preemption": 7}))
    assert table.reader.job("a") == live


def test_a_name_is_taken_once(table: Table) -> None:
    table.submitted("a")
    with pytest.raises(LostRaceError):
        table.submitted("a", team="other", entry_id="02")
    assert [entry.name for entry in table.snapshot().waiting] == ["a"]


def test_the_second_of_two_writers_loses_and_changes_nothing(table: Table) -> None:
    one = table.submitted("a")
    table.claimed(one)
    with pytest.raises(LostRaceError):
        table.change(one, lifecycle.cancelled(one, reason=Reason(code="x", message="x"), now=NOON))
    current = table.reader.job("a")
    assert current is not None
    assert current.state is S.STARTING
    assert table.used() == 1


def test_a_claim_beyond_the_room_fails_whole(table: Table) -> None:
    table.running("a", vector=of(2))
    late = table.submitted("b")
    with pytest.raises(LostRaceError):
        table.claimed(late, room=1)
    assert table.reader.job("b") == late
    assert [entry.name for entry in table.snapshot().waiting] == ["b"]
    assert table.used() == 2


def test_a_claim_decided_on_an_old_policy_fails(table: Table) -> None:
    one = table.submitted("a")
    policies = DynamoPolicyStore(table.client, table=TABLE)
    policies.set_paused(True, pools=["main"], replaces=table.policy)
    with pytest.raises(LostRaceError):
        table.claimed(one)


def test_an_end_gives_the_slot_back_once(table: Table) -> None:
    one = table.running("a")
    over = lifecycle.observed(one, seen("a", status="Completed", secondary="Completed"), now=NOON)
    assert over is not None
    table.store.commit([over], at=NOON)
    with pytest.raises(LostRaceError):
        table.store.commit([over], at=NOON)
    assert (table.used(), table.snapshot().running) == (0, ())


def test_a_preempted_job_goes_back_to_its_old_place_in_the_queue(table: Table) -> None:
    early = table.running("early", score=100)
    table.submitted("late", score=200)
    victim = table.change(early, lifecycle.preempted_for(early, waiting("urgent")))
    over = lifecycle.observed(victim, seen("early", status="Stopped", secondary="Stopped"), now=NOON)
    assert over is not None
    table.store.commit([over], at=NOON)
    assert [(one.name, one.state) for one in table.reader.waiting("main", after=None, limit=9)] == [
        ("early", S.PREEMPTED),
        ("late", S.PENDING),
    ]


def test_an_attempt_after_the_first_can_be_looked_up_by_its_own_name(table: Table) -> None:
    one = table.submitted("a", attempt=1)
    started = claimed(one, "a-r1-abcdef", now=NOON)
    table.change(one, replace(started, live=attempt("a-r1-abcdef", number=1)), room=of(1))
    alias = table.reader.alias("a-r1-abcdef")
    assert alias is not None
    assert (alias.job, alias.attempt) == ("a", 1)


def test_a_preemption_is_void_when_use_has_changed(table: Table) -> None:
    victim, preemptor = table.running("v"), table.submitted("p")
    hold = Hold(preemptor="p", vector=of(1), victims=("v",))
    after = lifecycle.preempted_for(victim, waiting("p"))
    with pytest.raises(LostRaceError):
        table.change(victim, after, used=of(2), places_hold=hold, still_waiting=waiting_entry(preemptor))
    table.change(victim, after, used=of(1), places_hold=hold, still_waiting=waiting_entry(preemptor))
    assert table.snapshot().holds == (hold,)


def test_one_preemptor_gets_one_hold(table: Table) -> None:
    first, second, preemptor = table.running("v1"), table.running("v2"), table.submitted("p")
    hold = Hold(preemptor="p", vector=of(1), victims=("v1",))
    wanted = {"places_hold": hold, "still_waiting": waiting_entry(preemptor)}
    table.change(first, lifecycle.preempted_for(first, waiting("p")), **wanted)
    with pytest.raises(LostRaceError):
        table.change(second, lifecycle.preempted_for(second, waiting("p")), **wanted)


def test_a_start_uses_its_hold_up(table: Table) -> None:
    victim, preemptor = table.running("v"), table.submitted("p")
    hold = Hold(preemptor="p", vector=of(1), victims=("v",))
    table.change(
        victim,
        lifecycle.preempted_for(victim, waiting("p")),
        places_hold=hold,
        still_waiting=waiting_entry(preemptor),
    )
    claim = claimed(preemptor, "p", now=NOON)
    table.change(preemptor, claim, room=of(1), ends_hold_of="p")
    assert table.snapshot().holds == ()


def test_a_hold_is_limited_and_dropped_only_as_it_was_seen(table: Table) -> None:
    victim, preemptor = table.running("v"), table.submitted("p")
    hold = Hold(preemptor="p", vector=of(1), victims=("v",))
    table.change(
        victim,
        lifecycle.preempted_for(victim, waiting("p")),
        places_hold=hold,
        still_waiting=waiting_entry(preemptor),
    )
    table.store.limit_hold("main", hold, NOON + minutes(15))
    table.store.drop_hold("main", hold)
    (kept,) = table.snapshot().holds
    assert kept.until == NOON + minutes(15)
    table.store.drop_hold("main", kept)
    assert table.snapshot().holds == ()


def test_the_owner_of_a_hold_who_left_the_queue_is_named(table: Table) -> None:
    victim, preemptor = table.running("v"), table.submitted("p")
    hold = Hold(preemptor="p", vector=of(1), victims=("v",))
    table.change(
        victim,
        lifecycle.preempted_for(victim, waiting("p")),
        places_hold=hold,
        still_waiting=waiting_entry(preemptor),
    )
    assert table.snapshot().gone_preemptors == frozenset()
    table.change(preemptor, lifecycle.cancelled(preemptor, reason=Reason(code="x", message="x"), now=NOON))
    assert table.snapshot().gone_preemptors == {"p"}


def test_a_back_off_parks_a_job_until_it_is_due(table: Table) -> None:
    one = table.claimed(table.submitted("a"))
    parked = table.change(one, lifecycle.put_back(one, reason=Reason(code="x", message="x"), now=NOON))
    assert (table.snapshot().waiting, table.snapshot().due) == ((), ())
    later = table.snapshot(now=NOON + minutes(20))
    assert [entry.name for entry in later.due] == ["a"]
    table.change(parked, lifecycle.unparked(parked))
    assert [entry.name for entry in table.snapshot().waiting] == ["a"]


def test_a_pass_reads_the_heads_of_each_lane_and_no_more(table: Table) -> None:
    for number in range(12):
        table.submitted(f"a{number:02d}", score=number)
    table.submitted("b", vector=of(1, B), score=99)
    table.submitted("c", team="other", score=100)
    names = [entry.name for entry in sorted(table.snapshot().waiting, key=lambda one: one.rank)]
    assert names == [*(f"a{number:02d}" for number in range(8)), "b", "c"]


def test_the_queue_is_paged_in_turn_across_lanes(table: Table) -> None:
    for number in range(7):
        table.submitted(f"a{number}", score=number, vector=of(1, A if number % 2 else B))
    first = table.reader.waiting("main", after=None, limit=4)
    rest = table.reader.waiting("main", after=first[-1].rank, limit=4)
    assert [one.name for one in (*first, *rest)] == [f"a{number}" for number in range(7)]


def test_finished_jobs_are_listed_newest_first_and_expire(table: Table) -> None:
    for number in range(3):
        one = table.submitted(f"a{number}")
        table.change(
            one, lifecycle.cancelled(one, reason=Reason(code="x", message="x"), now=NOON + minutes(number))
        )
    found = table.reader.finished("default", state=S.STOPPED, after=None, limit=2)
    rest = table.reader.finished("default", state=S.STOPPED, after=found[-1], limit=2)
    assert [name for _, name in (*found, *rest)] == ["a2", "a1", "a0"]
    for pk, sk in (("J#a0", "job"), ("J#a0", "request"), ("N#a0", "alias")):
        item = table.client.get_item(TableName=TABLE, Key={"pk": {"S": pk}, "sk": {"S": sk}})["Item"]
        assert int(item["ttl"]["N"]) == int((NOON + minutes(90 * 24 * 60)).timestamp()), sk


def test_the_story_tells_every_step_and_attempt(table: Table) -> None:
    one = table.running("a")
    over = lifecycle.observed(one, seen("a", status="Completed", secondary="Completed"), now=NOON)
    assert over is not None
    (final,) = table.store.commit([over], at=NOON)
    attempts, lines = table.reader.story(final)
    assert [(one.number, one.status) for one in attempts] == [(0, "Completed")]
    assert [line.to_state for line in lines] == [S.PENDING, S.STARTING, S.RUNNING, S.COMPLETED]


def test_counts_of_the_pool_follow_its_jobs(table: Table) -> None:
    table.running("a", vector=of(2))
    table.submitted("b", team="other")
    state = table.reader.pool_state("main")
    assert state.used == of(2)
    assert {name: (team.used, team.waiting) for name, team in state.teams.items()} == {
        "default": (of(2), 0),
        "other": ({}, 1),
    }


def test_each_policy_is_kept_and_the_slower_of_two_admins_loses(table: Table) -> None:
    policies = DynamoPolicyStore(table.client, table=TABLE)
    second = policies.put({"version": 1}, pools=["main"], replaces=table.policy)
    with pytest.raises(LostRaceError):
        policies.put({}, pools=["main"], replaces=table.policy)
    assert policies.current() == second
    assert (second.revision, second.version, second.document) == (2, 2, {"version": 1})


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
