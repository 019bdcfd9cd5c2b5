"""Training jobs that bypassed the queue: records, adoption, and the messages of what belongs to no pool."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.costs.ledger import MonthAccount
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.outbox.messages import MessageKind, Notice, NoticeKind, OutboxMessage
from trainmaster.core.planning.queue_entries import running_entry
from trainmaster.core.policy import UNMANAGED, UNMANAGED_POOL, parse_policy
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.records import Adoption, HistoryLine, TeamState
from trainmaster.core.rules.violation import Outcome, Violation, ViolationRecord

from tests.builders import NOON, attempt, claimed, live_job, minutes, of
from tests.integration.ports.plane import Plane, ended
from tests.memory.store import MemoryJobStore

S = JobState
NOTE = Reason(code=ReasonCode.ADOPTED, message="found running")
TELL = OutboxMessage(
    id="a#told",
    kind=MessageKind.TELL,
    at=NOON,
    notice=Notice(kind=NoticeKind.UNMANAGED_JOB, team="vision", what="it went round", detail={"n": 1}),
)


def record(name: str = "stray", **fields: Any) -> ViolationRecord:
    values: dict[str, Any] = {
        "at": NOON,
        "training_job_name": name,
        "training_job_arn": f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{name}",
        "team": "vision",
        "role_arn": "arn:aws:iam::111122223333:role/training",
        "unmanaged": True,
        "outcome": Outcome.AUDITED,
        "violations": (Violation(rule="max_instances", field="f", message="m", hint="h", mode=Mode.AUDIT),),
        "revision": 3,
    }
    return ViolationRecord(**values | fields)


def found_running(name: str = "stray", *, pool: str = "main", **fields: Any) -> Job:
    live = attempt(name, month="2026-11", reserved_cents=250)
    return live_job(name, live=live, pool=pool, entry_id=f"01{name}", preemptible=False, **fields)


def adoption(job: Job, **fields: Any) -> Adoption:
    values: dict[str, Any] = {
        "body": b'{"TrainingJobName": "stray"}',
        "note": NOTE,
        "record": record(job.name, outcome=Outcome.ADOPTED),
        "policy_version": 1,
    }
    return Adoption(job=job, **values | fields)


def test_an_adopted_job_runs_counts_and_is_found_by_its_name(plane: Plane) -> None:
    job = found_running()
    plane.store.adopt(adoption(job, messages=(TELL,)), at=NOON)
    alias = plane.reader.alias("stray")
    assert (plane.job("stray"), plane.reader.request("stray")) == (job, {"TrainingJobName": "stray"})
    assert alias is not None
    assert (alias.job, alias.entry_id, alias.attempt) == ("stray", "01stray", 0)
    assert plane.snapshot().running == (running_entry(job),)
    assert plane.snapshot().used == of(1)
    assert plane.reader.pool_state("main").teams == {"default": TeamState(used=of(1), waiting=0)}
    assert plane.reader.month("default", "2026-11") == MonthAccount(spent=0, reserved=250)
    line = HistoryLine(at=NOON, attempt=0, from_state=None, to_state=S.RUNNING, reason=NOTE)
    assert plane.reader.story(job) == ((job.live,), (line,))
    assert plane.reader.violation("stray", at=NOON) == record(outcome=Outcome.ADOPTED)
    assert plane.store.messages(UNMANAGED, limit=9) == (TELL,)


def test_an_adopted_job_ends_as_any_other_and_gives_everything_back(plane: Plane) -> None:
    plane.store.adopt(adoption(found_running()), at=NOON)
    plane.store.commit([ended(plane.job("stray"))], at=NOON)
    assert plane.job("stray").state is S.COMPLETED
    assert (plane.snapshot().used, plane.snapshot().running) == ({}, ())
    assert plane.reader.month("default", "2026-11").reserved == 0


def test_a_job_is_adopted_once(plane: Plane) -> None:
    plane.store.adopt(adoption(found_running()), at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.adopt(adoption(found_running()), at=NOON)
    assert plane.snapshot().used == of(1)


def test_a_name_that_a_job_of_the_queue_has_cannot_be_adopted(plane: Plane) -> None:
    queued = plane.submitted("stray")
    with pytest.raises(LostRaceError):
        plane.store.adopt(adoption(found_running(), messages=(TELL,)), at=NOON)
    assert plane.job("stray") == queued
    assert plane.reader.violation("stray", at=NOON) is None
    assert plane.store.messages(UNMANAGED, limit=9) == ()


def test_a_name_that_a_later_attempt_has_cannot_be_adopted(plane: Plane) -> None:
    waits = plane.submitted("a", attempt=1)
    plane.change(waits, claimed(waits, "a-r1-abcdef"))
    with pytest.raises(LostRaceError):
        plane.store.adopt(adoption(found_running("a-r1-abcdef")), at=NOON)
    assert plane.reader.job("a-r1-abcdef") is None


def test_a_job_whose_name_has_lapsed_sooner_than_itself_is_not_overwritten(plane: Plane) -> None:
    """Rows of a final job expire each by itself."""
    old = plane.submitted("stray")
    if isinstance(plane.store, MemoryJobStore):
        del plane.store._tables.aliases["stray"]
    else:
        key = {"pk": {"S": "N#stray"}, "sk": {"S": "alias"}}
        plane.store._rows.change("delete_item", Key=key)
    with pytest.raises(LostRaceError):
        plane.store.adopt(adoption(found_running()), at=NOON)
    assert plane.job("stray") == old


def test_an_adoption_that_was_decided_on_another_record_is_void(plane: Plane) -> None:
    plane.store.record_violation(record())
    with pytest.raises(LostRaceError):
        plane.store.adopt(adoption(found_running()), at=NOON)
    assert plane.reader.job("stray") is None
    plane.store.adopt(adoption(found_running(), replaces=record()), at=NOON)
    assert plane.job("stray").state is S.RUNNING


def test_more_may_be_adopted_than_there_is_room_for(plane: Plane) -> None:
    for number in range(6):
        plane.store.adopt(adoption(found_running(f"stray{number}")), at=NOON)
    assert plane.snapshot().used == of(6)


def test_the_pool_of_unmanaged_takes_claims_from_the_first_adoption_on(plane: Plane) -> None:
    """A policy that is put in force tells it of its version, and one adoption before that does."""
    job = found_running(pool=UNMANAGED)
    plane.store.adopt(adoption(job, policy_version=plane.policy.version), at=NOON)
    (waits,) = plane.store.commit([ended(job, "Failed", failure_reason="CapacityError: none")], at=NOON)
    waits = plane.change(waits, steps.unparked(waits))
    plane.change(waits, claimed(waits, "stray-r1-abcdef"), most_used=of(9))
    assert plane.job("stray").state is S.STARTING


def test_a_later_policy_voids_claims_of_unmanaged_decided_before(plane: Plane) -> None:
    waits = plane.submitted("a", pool=UNMANAGED)
    second = plane.policies.put({"version": 1}, pools=[], replaces=plane.policy)
    plane.store.adopt(adoption(found_running(pool=UNMANAGED)), at=NOON)  # decided on the first policy
    with pytest.raises(LostRaceError):
        plane.change(waits, claimed(waits), most_used=of(9))
    plane.change(waits, claimed(waits), most_used=of(9), policy_version=second.version)


def test_the_pool_of_unmanaged_is_read_like_any_other(plane: Plane) -> None:
    job = found_running(pool=UNMANAGED)
    plane.store.adopt(adoption(job), at=NOON)
    policy = parse_policy(plane.policy.document)
    unmanaged = plane.reader.snapshot(UNMANAGED_POOL, policy=policy, paused=False, now=NOON)
    assert (unmanaged.running, unmanaged.used) == ((running_entry(job),), of(1))
    assert plane.snapshot().used == {}


def test_what_was_found_is_kept_once(plane: Plane) -> None:
    assert plane.store.record_violation(record(), messages=[TELL]) is True
    assert plane.store.record_violation(record(team="other"), messages=[replace(TELL, id="b")]) is False
    assert plane.reader.violation("stray", at=NOON) == record()
    assert plane.store.messages(UNMANAGED, limit=9) == (TELL,)


def test_a_record_is_replaced_only_as_it_was_seen(plane: Plane) -> None:
    plane.store.record_violation(record())
    stopped = record(outcome=Outcome.STOPPED, revision=4)
    assert plane.store.record_violation(stopped, replaces=record(revision=2)) is False
    assert plane.store.record_violation(stopped, replaces=record(outcome=Outcome.ADOPTED)) is False
    assert plane.store.record_violation(stopped, replaces=record()) is True
    assert plane.reader.violation("stray", at=NOON) == stopped


def test_a_training_job_made_again_under_its_name_has_a_record_of_its_own(plane: Plane) -> None:
    plane.store.record_violation(record())
    assert plane.store.record_violation(record(at=NOON + minutes(9))) is True
    assert plane.reader.violation("stray", at=NOON + minutes(9)) == record(at=NOON + minutes(9))


def test_records_of_a_month_are_read_in_order_and_in_pages(plane: Plane) -> None:
    made = [
        record("b"),
        record("a", at=NOON + minutes(1)),
        record("c", at=NOON + minutes(1)),
        record("d", at=NOON + timedelta(days=28)),
    ]
    for one in (*made, record("e", at=NOON + timedelta(days=30))):
        plane.store.record_violation(one)
    assert plane.reader.violations("2026-11", after=None, limit=99) == tuple(made)
    assert plane.reader.violations("2026-11", after=None, limit=2) == (made[0], made[1])
    behind = ("2026-11-02T12:01:00.000+00:00", "a")
    assert plane.reader.violations("2026-11", after=behind, limit=99) == (made[2], made[3])
    assert plane.reader.violations("2026-10", after=None, limit=99) == ()


def test_a_message_that_is_there_stays_as_it_is(plane: Plane) -> None:
    stop = OutboxMessage(
        id="stop#a", kind=MessageKind.STOP_UNMANAGED, at=NOON, training_job_name="a", found=record("a")
    )
    plane.store.leave(UNMANAGED, [stop, TELL])
    plane.store.leave(UNMANAGED, [replace(stop, at=NOON + minutes(1))])
    assert plane.store.messages(UNMANAGED, limit=9) == (TELL, stop)
    assert plane.store.messages(UNMANAGED, limit=1) == (TELL,)
    assert plane.store.messages("main", limit=9) == ()


def test_a_message_is_done_by_one_pass_and_by_another_if_that_dies(plane: Plane) -> None:
    plane.store.leave(UNMANAGED, [TELL])
    later = NOON + minutes(3)
    assert plane.store.take(UNMANAGED, TELL, until=later, now=NOON) is True
    assert plane.store.take(UNMANAGED, TELL, until=later, now=NOON + minutes(2)) is False
    assert plane.store.take(UNMANAGED, TELL, until=NOON + minutes(6), now=later) is True
    plane.store.done(UNMANAGED, TELL)
    plane.store.done(UNMANAGED, TELL)
    assert plane.store.take(UNMANAGED, TELL, until=NOON + minutes(9), now=NOON + minutes(7)) is False
    assert plane.store.messages(UNMANAGED, limit=9) == ()


def test_a_record_is_counted_where_it_was_kept_and_says_something_new(plane: Plane) -> None:
    first, stopped = record(), record(outcome=Outcome.STOPPED, revision=4)
    for one, replaces in (
        (first, None),
        (first, None),
        (replace(first, revision=4), first),
        (stopped, first),
        (stopped, replace(first, revision=4)),
    ):
        plane.store.record_violation(one, replaces=replaces)
    assert plane.counts() == [("Violations", "audited"), ("Violations", "stopped")]


def test_an_adoption_is_counted_once(plane: Plane) -> None:
    plane.store.adopt(adoption(found_running()), at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.adopt(adoption(found_running()), at=NOON)
    assert plane.counts() == [("Violations", "adopted")]
