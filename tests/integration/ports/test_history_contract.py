"""What is remembered, by the transaction of the change, and how it is read."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.errors import LostRaceError
from trainmaster.core.history.journal import capacity_changes
from trainmaster.core.history.past_records import (
    CapacityChange,
    Ending,
    FinalJob,
    PastAttempt,
    PastWarmPool,
    PolicyPut,
    WaitCount,
    Window,
)
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox import platform_notice, to_tell
from trainmaster.core.outbox.texts.wording import Words
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.policy import UNMANAGED, parse_policy

from tests.builders import NOON, A, claimed, minutes, of
from tests.integration.ports.plane import DOCUMENT, Plane, ended, warm

TODAY = Window(since=NOON - timedelta(hours=12), until=NOON + timedelta(hours=12))
AN_HOUR = timedelta(hours=1)


def endings(plane: Plane, window: Window = TODAY) -> list[Ending]:
    found, position = plane.reader.endings("main", window, after=None, limit=1000)
    assert position is None
    return list(found)


def waits(plane: Plane) -> list[WaitCount]:
    return list(plane.reader.wait_counts("main", TODAY.since, TODAY.until))


def counted(minute: datetime, count: int, *, team: str = "default", capacity: str = A) -> WaitCount:
    return WaitCount(minute=minute, team=team, capacity=Capacity(capacity), count=count)


def test_an_attempt_that_ends_is_remembered_with_the_job_that_it_ended(plane: Plane) -> None:
    one = plane.running("a", vector=of(2))
    plane.store.commit([ended(one)], at=NOON)
    final = FinalJob(
        entry_id="01a",
        submitted_by="arn:aws:iam::111122223333:user/ada",
        submitted_at=NOON,
        vector=of(2),
        priority=0,
        max_runtime=AN_HOUR,
        saves_checkpoints=True,
        state=JobState.COMPLETED,
        end=ReasonCode.COMPLETED,
    )
    attempt = PastAttempt(
        number=0,
        vector=of(2),
        claimed_at=NOON,
        training_since=NOON - minutes(30),
        end=ReasonCode.COMPLETED,
        trained=minutes(30),
    )
    assert endings(plane) == [Ending(job="a", team="default", ended_at=NOON, attempt=attempt, final=final)]


def test_a_preempted_attempt_says_for_whom_and_what_was_lost(plane: Plane) -> None:
    victim = plane.running("a", has_checkpoint=False)
    urgent = plane.submitted("b", team="speech")
    stopping = plane.change(victim, steps.preempted_for(victim, waiting_entry(urgent)))
    plane.store.commit([ended(stopping, "Stopped")], at=NOON)
    (found,) = endings(plane)
    assert found.attempt is not None
    assert (found.attempt.end, found.attempt.preempted_by, found.attempt.preempted_by_team) == (
        ReasonCode.PREEMPTION,
        "b",
        "speech",
    )
    assert (found.attempt.lost, found.final) == (minutes(30), None)


def test_an_attempt_that_its_owner_stops_has_lost_what_no_checkpoint_has(plane: Plane) -> None:
    one = plane.running("a", has_checkpoint=False)
    why = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped by ada")
    stopping = plane.change(one, steps.cancelled(one, reason=why, now=NOON))
    plane.store.commit([ended(stopping, "Stopped")], at=NOON)
    (found,) = endings(plane)
    assert found.attempt is not None
    assert found.attempt.lost == minutes(30)


def test_a_job_that_is_withdrawn_is_remembered_without_an_attempt(plane: Plane) -> None:
    one = plane.submitted("a")
    why = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped by ada")
    plane.change(one, steps.cancelled(one, reason=why, now=NOON))
    (found,) = endings(plane)
    assert (found.job, found.attempt, found.final and found.final.end) == (
        "a",
        None,
        ReasonCode.STOPPED_BY_USER,
    )


def test_the_loser_of_a_race_leaves_nothing_behind(plane: Plane) -> None:
    one = plane.running("a")
    plane.store.commit([ended(one)], at=NOON)
    before = (endings(plane), waits(plane))
    with pytest.raises(LostRaceError):
        plane.store.commit([ended(one, "Failed")], at=NOON + minutes(1))
    assert (endings(plane), waits(plane)) == before


@pytest.mark.parametrize("hours", [1, 23, 25, 24 * 20])
def test_an_attempt_is_found_at_every_instant_that_it_was_live(plane: Plane, hours: int) -> None:
    one = plane.running("a")
    end = NOON + timedelta(hours=hours)
    news: dict[str, Any] = {"training_since": NOON, "ended_at": end}
    plane.store.commit([ended(one, **news)], at=end)
    for at in (NOON, NOON + (end - NOON) / 2, end - timedelta(seconds=1)):
        window = Window(since=at, until=at + timedelta(seconds=1))
        assert [one.job for one in endings(plane, window) if _was_live(one, window)] == ["a"]
    after = Window(since=end + timedelta(seconds=1), until=end + AN_HOUR)
    assert endings(plane, after) == []


def _was_live(one: Ending, window: Window) -> bool:
    return one.attempt is not None and window.overlaps(one.attempt.claimed_at, one.ended_at)


def test_lists_go_on_behind_a_position_and_come_to_their_end(plane: Plane) -> None:
    for number in range(5):
        one = plane.running(f"a{number}")
        plane.store.commit([ended(one, ended_at=NOON + minutes(number))], at=NOON)
    names: list[str] = []
    position = None
    for _ in range(3):
        found, position = plane.reader.endings("main", TODAY, after=position, limit=2)
        names += [one.job for one in found]
    assert (names, position) == ([f"a{number}" for number in range(5)], None)


def test_waits_are_submissions_less_claims_and_withdrawals_with_requeues(plane: Plane) -> None:
    first, second = plane.submitted("a"), plane.submitted("b", team="speech")
    plane.change(second, steps.cancelled(second, reason=WHY_NOT, now=NOON))
    one = plane.change(first, claimed(first))
    assert [count for count in waits(plane) if count.count] == []
    plane.submitted("c", submitted_at=NOON + minutes(2))
    one = plane.change(one, steps.recorded(one, training_job_arn="arn:x", now=NOON))
    stopping = plane.change(one, steps.preempted_for(one, waiting_entry(plane.submitted("d"))))
    plane.store.commit([ended(stopping, "Stopped")], at=NOON + minutes(2.5))
    assert [count for count in waits(plane) if count.count] == [
        counted(NOON, 1),
        counted(NOON + minutes(2), 2),
    ]


WHY_NOT = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped by ada")


def test_a_job_waits_for_every_type_that_it_asks_for(plane: Plane) -> None:
    plane.submitted("a", vector={**of(1), **of(2, "ml.c.xlarge", spot=True)})
    spot = WaitCount(minute=NOON, team="default", capacity=Capacity.parse("ml.c.xlarge:spot"), count=1)
    assert sorted(waits(plane), key=lambda one: one.capacity) == [counted(NOON, 1), spot]


def test_a_hold_changes_nothing_about_who_waits(plane: Plane) -> None:
    one = plane.submitted("a")
    plane.change(one, steps.held(one, WHY_NOT))
    assert waits(plane) == [counted(NOON, 1)]


def test_a_warm_pool_that_was_kept_for_days_is_found_on_each_of_them(plane: Plane) -> None:
    plane.store.change_warm("main", None, warm("kept"), at=NOON)
    plane.store.change_warm(
        "main", warm("kept"), None, at=NOON + timedelta(days=5), retained=timedelta(days=5)
    )
    between = Window(since=NOON + timedelta(days=1), until=NOON + timedelta(days=2))
    assert [one.training_job_name for one in plane.reader.past_warm_pools("main", between, limit=9)] == [
        "kept"
    ]
    after = Window(since=NOON + timedelta(days=6), until=NOON + timedelta(days=7))
    assert plane.reader.past_warm_pools("main", after, limit=9) == ()


def test_a_warm_pool_is_remembered_when_it_expires_or_is_reused(plane: Plane) -> None:
    plane.store.change_warm("main", None, warm("x"), at=NOON)
    plane.store.change_warm("main", None, warm("y"), at=NOON)
    plane.store.change_warm("main", warm("x"), None, at=NOON + minutes(20))
    job = plane.submitted("b", team="speech")
    plane.change(job, claimed(job), reuses=warm("y"), warm=of(1))
    over = {one.training_job_name: one for one in plane.reader.past_warm_pools("main", TODAY, limit=9)}
    assert over == {
        "x": PastWarmPool(
            training_job_name="x", team="default", vector=of(1), since=NOON, until=NOON + minutes(9)
        ),
        "y": PastWarmPool(
            training_job_name="y",
            team="default",
            vector=of(1),
            since=NOON,
            until=NOON,
            reused_by="b",
            reused_by_team="speech",
        ),
    }


def test_notices_are_events_as_well(plane: Plane) -> None:
    one = plane.running("a")
    plane.store.commit([ended(one)], at=NOON)
    notice = platform_notice("subject", Words(what="AWS does not.", todo="Ask it."))
    told = to_tell(notice, cause="main#subject", at=NOON + minutes(1))
    assert plane.store.leave_once("main", told, subject="subject")
    assert not plane.store.leave_once("main", replace(told, at=NOON + minutes(2)), subject="subject")
    plane.store.leave(UNMANAGED, [replace(told, id="main#another#platform-warning")])
    plane.store.leave(UNMANAGED, [replace(told, id="main#another#platform-warning")])
    events, position = plane.reader.past_events(TODAY, after=None, limit=9)
    assert position is None
    assert [(event.kind, event.team, event.job, event.at) for event in events] == [
        ("Job Completed", "default", "a", NOON),
        ("Platform Warning", "operators", None, NOON + minutes(1)),
        ("Platform Warning", "operators", None, NOON + minutes(1)),
    ]
    assert events[0].detail["state"] == "completed"
    assert events[0].detail["what"].startswith("Job a completed")


def test_a_policy_says_what_capacity_was_in_force(plane: Plane) -> None:
    old = parse_policy(DOCUMENT)
    stored = plane.policy
    for hour, count in ((1, 6), (2, 8), (3, 8)):
        document = DOCUMENT | {"pools": [{"name": "main", "capacity": {A: count}}]}
        at = NOON + timedelta(hours=hour)
        put = PolicyPut(at=at, changes=tuple(capacity_changes(old, parse_policy(document), at=at)))
        stored = plane.policies.put(document, pools=["main"], replaces=stored, history=put)
        old = parse_policy(document)
    first, second = (
        CapacityChange(
            pool="main", at=NOON + AN_HOUR, capacity=of(6), before={**of(4), **of(4, "ml.b.xlarge")}
        ),
        CapacityChange(pool="main", at=NOON + 2 * AN_HOUR, capacity=of(8), before=of(6)),
    )

    def changes(since: float, until: float) -> list[CapacityChange]:
        window = Window(since=NOON + since * AN_HOUR, until=NOON + until * AN_HOUR)
        return list(plane.reader.capacity_changes("main", window, limit=9))

    assert changes(0, 1) == [first]
    assert changes(0, 5) == [first, second]
    assert changes(1, 5) == [first, second]
    assert changes(1.5, 1.6) == [first]
    assert changes(4, 5) == [second]
    assert plane.reader.history_since("main") == NOON + AN_HOUR
    assert plane.reader.capacity_changes("other", TODAY, limit=9) == ()


def test_history_begins_with_the_first_claim_where_no_policy_began_it(plane: Plane) -> None:
    assert plane.reader.history_since("main") is None
    plane.running("a")
    assert plane.reader.history_since("main") == NOON


def test_a_change_that_says_nothing_new_writes_no_history(plane: Plane) -> None:
    one = plane.running("a")
    before = waits(plane)
    plane.store.commit([Change(before=one, after=steps.stop_told(one))], at=NOON + minutes(5))
    assert (waits(plane), endings(plane)) == (before, [])
