"""Jobs, their requests, names and stories; their place in the queue and in lists."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.adapters.dynamodb import queue_reads
from trainmaster.core.costs.ledger import MonthAccount
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.attempts import CheckpointState, GpuWatch, Reason
from trainmaster.core.jobs.instances import Choice, Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.candidates import MANY_TEAMS
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.planning.start_records import StartLesson, StartRecords
from trainmaster.core.policy import parse_policy
from trainmaster.core.policy.governance import Idle, Utilization, Watch
from trainmaster.core.records import TeamStanding, TeamState

from tests.builders import NOON, A, B, attempt, changed, claimed, job, minutes, of
from tests.integration.ports.plane import DOCUMENT, WHY, Plane, ended
from tests.memory import reader

S = JobState


def test_a_job_its_request_and_its_alias_are_read_back_as_written(plane: Plane) -> None:
    two = (Shape(vector=of(2), subnet="subnet-1", warm_key="k"), Shape(vector=of(1, B, spot=True)))
    fields: dict[str, Any] = {"shapes": two, "choice": Choice.SAGEMAKER, "predicted": minutes(7)}
    one = plane.submitted("a", max_wait=minutes(90), preemptible=False, keep_alive=minutes(5), **fields)
    assert plane.reader.job("a") == one
    assert plane.reader.request("a") == {"TrainingJobName": "a"}
    alias = plane.reader.alias("a")
    assert alias is not None
    assert (alias.job, alias.entry_id, alias.attempt) == ("a", "01a", 0)
    live = changed(one, checkpointed=minutes(3), wasted={"preemption": 7}, cents=12)
    money: dict[str, Any] = {"usd_per_hour": Decimal("1.10"), "reserved_cents": 5, "month": "2026-11"}
    after = replace(live, state=S.STARTING, live=attempt("a", **money, last_checkpoint=NOON))
    assert plane.change(one, after) == replace(after, ver=1)
    assert plane.reader.job("a") == replace(after, ver=1)
    assert plane.reader.jobs(["a", "nobody"]) == {"a": replace(after, ver=1)}


def test_what_nobody_wrote_is_not_there(plane: Plane) -> None:
    assert (plane.reader.job("a"), plane.reader.alias("a")) == (None, None)
    assert plane.reader.month("vision", "2026-11") == MonthAccount()
    assert plane.reader.usage("vision", "2026-11") == ((), ())
    assert plane.reader.entrance("main", "default", f"{A}=1", learned=(), now=NOON).predicted is None
    assert plane.snapshot() == Snapshot(
        prices=plane.snapshot().prices, watch=parse_policy({}).governing.watch, policy_version=1
    )


def test_a_name_is_taken_once_even_by_another_job_s_attempt(plane: Plane) -> None:
    first = plane.submitted("a", attempt=1)
    with pytest.raises(LostRaceError):
        plane.submitted("a", entry_id="02")
    assert plane.job("a") == first
    plane.change(first, claimed(first, "a-r1-abcdef"))
    with pytest.raises(LostRaceError):
        plane.submitted("a-r1-abcdef")
    alias = plane.reader.alias("a-r1-abcdef")
    assert alias is not None
    assert (alias.job, alias.attempt) == ("a", 1)


def test_an_attempt_cannot_take_the_name_of_another_job(plane: Plane) -> None:
    plane.submitted("a-r1-abcdef")
    one = plane.submitted("a", attempt=1)
    with pytest.raises(LostRaceError):
        plane.change(one, claimed(one, "a-r1-abcdef"))
    assert plane.job("a") == one


def test_the_second_of_two_writers_loses_and_changes_nothing(plane: Plane) -> None:
    one, other = plane.submitted("a"), plane.submitted("b")
    plane.change(one, claimed(one))
    stale = Change(before=one, after=steps.cancelled(one, reason=WHY, now=NOON))
    fresh = Change(before=other, after=steps.cancelled(other, reason=WHY, now=NOON))
    with pytest.raises(LostRaceError):
        plane.store.commit([fresh, stale], at=NOON)
    assert (plane.job("a").state, plane.job("b")) == (S.STARTING, other)
    assert plane.snapshot().used == of(1)


def test_a_job_that_nobody_submitted_cannot_be_changed(plane: Plane) -> None:
    one = job("ghost")
    with pytest.raises(LostRaceError):
        plane.change(one, steps.cancelled(one, reason=WHY, now=NOON))
    assert plane.reader.job("ghost") is None


def test_a_note_is_a_line_of_the_story_even_where_the_state_stays(plane: Plane) -> None:
    one = plane.submitted("a")
    note = Reason(code=ReasonCode.PRIORITY, message="priority 0 became 3 by ada")
    after = steps.reranked(one, priority=3, score=7, ranked_by="age-1")
    plane.change(one, after, {"note": note})
    _, lines = plane.reader.story(plane.job("a"))
    assert [(line.from_state, line.to_state, line.reason) for line in lines] == [
        (None, S.PENDING, None),
        (S.PENDING, S.PENDING, note),
    ]


def test_the_story_tells_every_step_and_attempt(plane: Plane) -> None:
    one = plane.running("a")
    (waits,) = plane.store.commit([ended(one, "Failed", failure_reason="CapacityError: none")], at=NOON)
    waits = plane.change(waits, steps.unparked(waits))
    again = plane.change(waits, claimed(waits, "a-r1-abcdef"))
    attempts, lines = plane.reader.story(again)
    assert [
        (one.number, one.training_job_name, one.progress and one.progress.status) for one in attempts
    ] == [
        (0, "a", "Failed"),
        (1, "a-r1-abcdef", None),
    ]
    assert [(line.attempt, line.to_state) for line in lines] == [
        (0, S.PENDING),
        (0, S.STARTING),
        (0, S.RUNNING),
        (0, S.PENDING),
        (1, S.STARTING),
    ]
    assert lines[3].reason == Reason(code=ReasonCode.CAPACITY, message="CapacityError: none")


def test_starts_are_recorded_by_how_they_ended(plane: Plane) -> None:
    plane.store.commit([ended(plane.running("trains"))], at=NOON)
    one = plane.submitted("a")
    starting = plane.change(one, claimed(one))
    unserved = ended(starting, "Failed", failure_reason="CapacityError: none", training_since=None)
    plane.store.commit([unserved], at=NOON)
    records, (capacity,) = plane.snapshot().start_records, of(1)
    assert records.last_no_capacity_end(capacity, now=NOON + minutes(1)) == NOON
    lessons = [StartLesson(vector=of(1), trained=trained, at=NOON) for trained in (True, False)]
    expected = StartRecords().after(lessons[0]).after(lessons[1])
    assert records == expected
    assert records.no_capacity_chance(capacity, now=NOON) == expected.no_capacity_chance(capacity, now=NOON)


def test_what_somebody_wanted_is_told_even_where_the_state_stays(plane: Plane) -> None:
    one = plane.submitted("a")
    higher = steps.reranked(one, priority=9, score=1, ranked_by="age-1")
    changed = plane.change(one, higher, {"note": Reason(code=ReasonCode.PRIORITY, message="0 to 9 by ada")})
    again = plane.change(changed, steps.explained(changed, Reason(code=ReasonCode.CAPACITY, message="x")))
    plane.change(again, steps.held(again, WHY), {"note": Reason(code=ReasonCode.HELD, message="held by ada")})
    lines = plane.reader.story(again)[1]
    assert [(line.from_state, line.to_state, line.reason and line.reason.message) for line in lines] == [
        (None, S.PENDING, None),
        (S.PENDING, S.PENDING, "0 to 9 by ada"),
        (S.PENDING, S.HELD, "held by ada"),
    ]


def test_what_a_submission_asks_is_the_policy_the_standing_and_how_long_such_jobs_train(plane: Plane) -> None:
    plane.submitted("a")
    lane = f"{A}=1"
    before = plane.reader.entrance("main", "default", lane, learned=(), now=NOON)
    assert (before.policy_version, before.predicted) == (plane.policy.version, None)
    assert before.standing is not TeamStanding.LOST
    later = plane.policies.put(DOCUMENT, pools=["main"], replaces=plane.policy)
    plane.store.commit([ended(plane.running("b"), trained=minutes(10))], at=NOON)
    after = plane.reader.entrance("main", "default", lane, learned=(), now=NOON)
    assert (after.policy_version, after.predicted) == (later.version, minutes(10))


def test_entries_before_a_rank_are_counted_up_to_a_bound(plane: Plane) -> None:
    for number in range(5):
        plane.submitted(f"a{number}", score=number)
    one = plane.submitted("held", score=0)
    plane.change(one, steps.held(one, WHY))

    def before(score: int, most: int) -> int:
        return plane.reader.entries_before("main", (score, f"a{score}"), most=most)

    assert [before(score, 9) for score in (0, 3, 7)] == [0, 3, 5]
    assert before(4, 2) == 2


def test_a_back_off_parks_a_job_until_it_is_due_and_a_hold_for_ever(plane: Plane) -> None:
    one = plane.submitted("a")
    live = plane.change(one, claimed(one))
    parked = plane.change(live, steps.put_back(live, reason=WHY, now=NOON))
    two = plane.submitted("b")
    held = plane.change(two, steps.held(two, WHY))
    assert (plane.snapshot().waiting, plane.snapshot().due) == ((), ())
    assert plane.reader.queue_length("main") == 0
    assert [entry.name for entry in plane.snapshot(at=minutes(20)).due] == ["a"]
    first, second = plane.reader.parked("main", after=None, limit=9)
    assert (first.name, second.name) == ("a", "b")
    assert plane.reader.parked("main", after=(first.parked_until_ms, "a"), limit=9) == (second,)
    plane.change(parked, steps.unparked(parked))
    plane.change(held, steps.released(held))
    assert [entry.name for entry in plane.reader.waiting("main", after=None, limit=9)] == ["a", "b"]
    assert plane.reader.queue_length("main") == 2


@pytest.mark.thorough
def test_a_pass_reads_the_first_64_then_eight_of_each_other_team_and_lane(plane: Plane) -> None:
    for number in reversed(range(66)):
        plane.submitted(f"a{number:02d}", score=number)
    for number in range(10):
        plane.submitted(f"b{number}", vector=of(1, B), score=100 + number)
        plane.submitted(f"c{number}", team="other", score=200 + number)
    spot = (Shape(vector=of(1)), Shape(vector=of(1, spot=True)))
    plane.submitted("d", shapes=spot, score=301)
    plane.submitted("e", shapes=spot, choice=Choice.SAGEMAKER, score=302)
    first = [f"a{number:02d}" for number in range(64)]
    of_other, of_lane = ([f"{letter}{number}" for number in range(8)] for letter in "cb")
    assert in_turn(plane.snapshot()) == [*first, *of_lane, *of_other, "d", "e"]
    assert in_turn(plane.snapshot(at=minutes(9))) == in_turn(plane.snapshot())
    assert in_turn(plane.overview()) == [*first, *of_other]


def test_many_teams_with_a_few_jobs_are_looked_at_as_a_whole(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (queue_reads, reader):
        monkeypatch.setattr(module, "FIRST", 2)
    names = [f"a{number:02d}" for number in range(MANY_TEAMS + 10)]
    for number, name in enumerate(names):
        plane.submitted(name, team=f"team-{max(number - 8, 0):02d}", score=number)
    assert in_turn(plane.overview()) == names, "nine of one team among them"


def in_turn(snapshot: Snapshot) -> list[str]:
    return [entry.name for entry in sorted(snapshot.waiting, key=lambda one: one.rank)]


@pytest.mark.thorough
def test_a_lane_of_which_few_are_among_the_first_is_read_on(plane: Plane) -> None:
    for number in range(62):
        plane.submitted(f"a{number:02d}", score=number)
    for number in range(12):
        plane.submitted(f"b{number:02d}", vector=of(1, B), score=100 + number)
    assert in_turn(plane.snapshot())[62:] == [f"b{number:02d}" for number in range(8)]
    assert in_turn(plane.overview())[62:] == ["b00", "b01"]


def test_entries_say_the_version_that_they_were_put_with(plane: Plane) -> None:
    """So that a reason that is written to a job moves no row of the queue."""
    one = plane.submitted("a")
    noted = plane.change(one, replace(one, comebacks=replace(one.comebacks, halvings=1)))
    (entry,) = plane.snapshot().waiting
    assert (plane.job("a").ver, noted.ver) == (1, 1)
    assert entry == replace(waiting_entry(noted), ver=entry.ver)


def test_an_entry_follows_its_job_to_another_rank(plane: Plane) -> None:
    one = plane.submitted("a", score=300)
    plane.submitted("b", score=200)
    plane.change(one, steps.reranked(one, priority=9, score=-100, ranked_by="age-1"))
    found = plane.reader.waiting("main", after=None, limit=9)
    assert [(entry.name, entry.score, entry.priority) for entry in found] == [("a", -100, 9), ("b", 200, 0)]


def test_the_queue_is_paged_in_turn_across_lanes_and_equal_scores(plane: Plane) -> None:
    for number in range(7):
        plane.submitted(f"a{number}", score=number // 2, vector=of(1, A if number % 2 else B))
    first = plane.reader.waiting("main", after=None, limit=4)
    rest = plane.reader.waiting("main", after=first[-1].rank, limit=4)
    assert [one.name for one in (*first, *rest)] == [f"a{number}" for number in range(7)]


def test_running_jobs_are_listed_by_priority_then_start(plane: Plane) -> None:
    for name, priority in (("b", 1), ("a", 1), ("c", 5)):
        plane.running(name, priority=priority)
    assert [one.name for one in plane.reader.running("main")] == ["c", "a", "b"]


def test_finished_jobs_of_a_team_and_state_are_listed_newest_first(plane: Plane) -> None:
    for number, at in enumerate((0, 5, 5, 9)):
        one = plane.submitted(f"a{number}")
        plane.change(one, steps.cancelled(one, reason=WHY, now=NOON + minutes(at)))
    plane.submitted("waits")
    plane.store.commit([ended(plane.running("done"))], at=NOON)
    found = plane.reader.finished("default", state=S.STOPPED, after=None, limit=2)
    rest = plane.reader.finished("default", state=S.STOPPED, after=found[-1], limit=9)
    assert [name for _, name in (*found, *rest)] == ["a3", "a1", "a2", "a0"]
    assert found[0][0] == "2026-11-02T12:09:00.000+00:00"
    assert plane.reader.finished("other", state=S.STOPPED, after=None, limit=9) == ()


def test_counts_of_the_teams_follow_their_jobs(plane: Plane) -> None:
    plane.running("a", vector=of(2))
    one = plane.submitted("b", team="other")
    plane.change(one, steps.held(one, WHY))
    gone = plane.submitted("c", team="third")
    plane.change(gone, steps.cancelled(gone, reason=WHY, now=NOON))
    assert plane.reader.pool_state("main").teams == {
        "default": TeamState(used=of(2), waiting=0),
        "other": TeamState(used={}, waiting=1),
        "third": TeamState(used={}, waiting=0),
    }


def test_pools_do_not_see_each_other(plane: Plane) -> None:
    one = plane.submitted("a", pool="elsewhere")
    plane.change(one, claimed(one))
    plane.submitted("b", pool="elsewhere")
    assert plane.snapshot() == Snapshot(
        prices=plane.snapshot().prices, watch=parse_policy({}).governing.watch, policy_version=1
    )
    assert plane.reader.waiting("main", after=None, limit=9) == ()
    assert [entry.name for entry in plane.reader.running("elsewhere")] == ["a"]


def test_a_pool_tells_how_gpus_are_to_be_watched(plane: Plane) -> None:
    document = DOCUMENT | {"idle": {"for": "20m"}, "utilization": {}}
    plane.policies.put(document, pools=["main"], replaces=plane.policies.current())
    policy = parse_policy(plane.policies.current().document)
    found = plane.reader.snapshot(policy.pools[0], policy=policy, paused=False, now=NOON)
    assert found.watch == Watch(idle=Idle(for_=minutes(20)), utilization=Utilization())


def test_a_running_job_shows_what_is_known_of_its_gpus(plane: Plane) -> None:
    one = plane.running("a")
    assert one.live is not None
    watch = GpuWatch(
        monitored="1 1x1",
        monitor_again_at=NOON,
        idle_since=NOON,
        stop_due=NOON + minutes(10),
        underused_since=NOON,
    )
    checkpoint = CheckpointState(last=NOON, overdue=True)
    why = Reason(code=ReasonCode.ALARM_QUOTA, message="no more")
    live = replace(one.live, watch=watch, unmonitored=why, checkpoint=checkpoint)
    plane.change(one, replace(one, live=live))
    (row,) = plane.reader.running("main")
    assert (row.watch, row.unmonitored, row.checkpoint) == (watch, "alarm-quota", checkpoint)
