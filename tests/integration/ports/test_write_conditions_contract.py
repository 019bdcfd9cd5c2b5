"""What a claim depends on, and what an end gives back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.durations.histogram import bucket
from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.durations.learned_rows import LATEST
from trainmaster.core.errors import LostRaceError
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.futile_preemptions import ServedStart
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Shape, lane_text
from trainmaster.core.jobs.model import JobState, SpotRecord
from trainmaster.core.jobs.run_time import attempt_run_time
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.unserved_attempts import after_hold_ran_out
from trainmaster.core.planning.queue_entries import running_entry, waiting_entry
from trainmaster.core.planning.snapshot import PreemptionReservation

from tests.builders import NOON, A, B, claimed, minutes, of, seen, waiting
from tests.ends import observed
from tests.integration.ports.plane import WHY, Plane, ended, warm

S = JobState


def test_a_claim_within_its_guard_moves_the_job_to_the_running(plane: Plane) -> None:
    one = plane.submitted("a")
    live = plane.change(one, claimed(one), most_used=of(0), warm=of(0))
    snapshot = plane.snapshot()
    assert (snapshot.waiting, snapshot.running, snapshot.used) == ((), (running_entry(live),), of(1))


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param({"policy_version": 0}, id="decided on an older policy"),
        pytest.param({"policy_version": 2}, id="decided on a policy that is not told to the pool yet"),
        pytest.param({"most_used": of(0)}, id="more is in use than leaves room"),
        pytest.param({"most_used": of(-1, B)}, id="no room even while nothing is in use"),
        pytest.param({"used": of(2)}, id="less is in use than it was decided on"),
        pytest.param({"used": of(0)}, id="more is in use than it was decided on"),
        pytest.param({"used": of(1, B)}, id="another type is not in use"),
        pytest.param({"warm": of(1, B)}, id="less is warm than it was decided on"),
        pytest.param({"warm": of(1)}, id="more is warm than it was decided on"),
        pytest.param({"still_waiting": waiting("rival", ver=7)}, id="the preemptor has changed"),
        pytest.param({"still_waiting": waiting("ghost", ver=0)}, id="the preemptor is unknown"),
    ],
)
def test_a_write_whose_guard_does_not_hold_changes_nothing(plane: Plane, condition: dict[str, Any]) -> None:
    plane.running("busy")
    plane.submitted("rival")
    plane.store.change_warm("main", None, replace(warm("gone"), vector=of(2)), at=NOON)
    one = plane.submitted("a")
    before = plane.snapshot()
    with pytest.raises(LostRaceError):
        plane.change(one, claimed(one), **condition)
    assert (plane.job("a"), plane.snapshot()) == (one, before)


def test_a_write_that_counts_nothing_is_guarded_too(plane: Plane) -> None:
    one = plane.submitted("a")
    gone = steps.failed(one, reason=WHY, now=NOON)
    with pytest.raises(LostRaceError):
        plane.change(one, gone, policy_version=0)
    assert plane.job("a") == one
    assert plane.change(one, gone, policy_version=plane.policy.version).state is S.FAILED


def test_a_write_whose_guard_holds_exactly_is_made(plane: Plane) -> None:
    plane.running("busy")
    rival = plane.submitted("rival")
    plane.store.change_warm("main", None, warm("kept"), at=NOON)
    one = plane.submitted("a")
    condition: dict[str, Any] = {
        "most_used": {**of(1), **of(0, B)},
        "used": {**of(1), **of(0, B)},
        "warm": of(1),
    }
    plane.change(one, claimed(one), **condition, still_waiting=waiting_entry(rival))
    assert plane.snapshot().used == of(2)


def test_a_pause_voids_every_claim_decided_before(plane: Plane) -> None:
    one = plane.submitted("a")
    paused = plane.policies.set_paused(True, pools=["main"], replaces=plane.policy)
    with pytest.raises(LostRaceError):
        plane.change(one, claimed(one), most_used=of(3))
    plane.change(one, claimed(one), most_used=of(3), policy_version=paused.version)
    assert plane.job("a").state is S.STARTING


def test_an_end_gives_the_instances_back_once(plane: Plane) -> None:
    over = ended(plane.running("a", vector={**of(2), **of(1, B)}))
    plane.store.commit([over], at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.commit([over], at=NOON)
    state = plane.reader.pool_state("main")
    assert (state.used, plane.snapshot().running) == ({}, ())
    assert state.last_end == {Capacity(A): NOON, Capacity(B): NOON}


def test_what_sagemaker_took_of_a_choice_is_all_that_stays_in_use(plane: Plane) -> None:
    both = (Shape(vector=of(2)), Shape(vector=of(1, B)))
    one = plane.submitted("a", shapes=both, choice=Choice.SAGEMAKER)
    live = plane.change(one, claimed(one, shape=Shape(vector={**of(2), **of(1, B)})))
    assert plane.snapshot().used == {**of(2), **of(1, B)}
    news = observed(live, seen("a", selected_type=B), now=NOON)
    assert news is not None
    plane.store.commit([news], at=NOON)
    assert plane.snapshot().used == of(1, B)


def test_run_times_are_kept_of_completed_jobs_alone(plane: Plane) -> None:
    plane.store.commit([ended(plane.running("a"), trained=minutes(10))], at=NOON)
    plane.store.commit([ended(plane.running("b"), trained=minutes(20))], at=NOON)
    plane.store.commit([ended(plane.running("c"), "Failed", trained=minutes(50))], at=NOON)
    plane.store.commit([ended(plane.running("d", team="vision"), trained=minutes(40))], at=NOON)
    limit = bucket(minutes(60))
    own = RunTimes(
        last=minutes(20),
        previous=minutes(10),
        since=NOON,
        counts={limit: {bucket(minutes(10)): 1, bucket(minutes(20)): 1}},
        by_month={"2026-11": {0: 2}},
    )
    other = RunTimes(
        last=minutes(40),
        previous=minutes(40),
        since=NOON,
        counts={limit: {bucket(minutes(40)): 1}},
        by_month={"2026-11": {0: 1}},
    )
    assert plane.reader.run_times("main", ()) == {("default", f"{A}=1"): own, ("vision", f"{A}=1"): other}
    assert plane.reader.entrance("main", "default", f"{A}=1", learned=(), now=NOON).predicted == minutes(15)


@pytest.mark.parametrize(("width", "teaches"), [(4, minutes(40)), (2, minutes(20)), (1, minutes(10))])
def test_a_narrow_attempt_teaches_no_longer_run_of_an_elastic_job(
    plane: Plane, width: int, teaches: timedelta
) -> None:
    shapes = tuple(Shape(vector=of(count)) for count in (4, 2, 1))
    submitted = plane.submitted("a", shapes=shapes, widths=Widths(counts=(1, 2, 4)))
    shape = Shape(vector=of(width))
    run_time = attempt_run_time(submitted, shape)
    claim = plane.change(submitted, claimed(submitted, shape=shape, max_runtime=run_time))
    live = plane.change(claim, steps.recorded(claim, training_job_arn="arn:x", now=NOON))
    plane.store.commit([ended(live, trained=minutes(40))], at=NOON)
    lane = lane_text(shapes, Choice.FIRST_FIT)
    assert {key: times.last for key, times in plane.reader.run_times("main", ()).items()} == {
        ("default", lane): teaches
    }


def test_a_run_of_a_spot_job_on_demand_is_filed_where_spot_jobs_look(plane: Plane) -> None:
    spot = Shape(vector={Capacity(A, CapacityType.SPOT): 1})
    fallen = plane.submitted("a", shapes=(spot,), spot=SpotRecord(left=True))
    claim = plane.change(fallen, claimed(fallen, shape=Shape(vector=of(1))))
    live = plane.change(claim, steps.recorded(claim, training_job_arn="arn:x", now=NOON))
    plane.store.commit([ended(live, trained=minutes(40))], at=NOON)
    lane = lane_text((spot,), Choice.FIRST_FIT)
    assert plane.reader.entrance("main", "default", lane, learned=(), now=NOON).predicted == minutes(40)


KINDS = ("n00a", "t00b", "e00c")


def learned(plane: Plane, team: str, *, now: datetime = NOON) -> list[float]:
    """How many jobs the histogram of each of the kinds has learned from, by now."""
    found = plane.reader.entrance("main", team, f"{A}=1", learned=KINDS, now=now).learned
    return [0.0 if row is None else round(replace(row, latest=()).jobs.total, 3) for row in found]


def test_a_completed_job_counts_once_in_each_histogram_of_its_kinds(plane: Plane) -> None:
    assert learned(plane, "default") == [0, 0, 0]
    over = ended(plane.running("a", learned_in=KINDS), trained=minutes(10))
    plane.store.commit([over], at=NOON)
    with pytest.raises(LostRaceError):  # the same event once more
        plane.store.commit([over], at=NOON)
    plane.store.commit([ended(plane.running("b", learned_in=KINDS[1:]), trained=minutes(20))], at=NOON)
    plane.store.commit([ended(plane.running("c", learned_in=KINDS), "Failed", trained=minutes(50))], at=NOON)
    plane.store.commit([ended(plane.running("old"), trained=minutes(1))], at=NOON)
    assert learned(plane, "default") == [1, 2, 2]
    assert learned(plane, "vision") == [0, 0, 2]
    (row, *_) = plane.reader.entrance("main", "default", f"{A}=1", learned=KINDS, now=NOON).learned
    assert row is not None
    assert row.jobs.weights == {bucket(minutes(10)): 1.0}


def test_a_kind_lists_its_last_runs_and_the_shape_notes_how_well_they_were_predicted(plane: Plane) -> None:
    kinds = ("s00a", "a00b")
    likely = LikelyLengths(lengths=tuple(minutes(length) for length in range(1, 11)))
    for number in range(LATEST + 2):
        job = plane.running(f"job{number}", learned_in=kinds, likely=likely if number else None)
        over = ended(job, trained=minutes(number + 1))
        plane.store.commit([over], at=NOON)
    own, shape = plane.reader.entrance("main", "default", f"{A}=1", learned=kinds, now=NOON).learned
    assert own is not None
    assert shape is not None
    assert own.latest == tuple(minutes(number) for number in range(LATEST + 2, 2, -1))
    assert (own.placed, shape.latest) == ({}, ())
    assert shape.places.weights == pytest.approx(dict.fromkeys(range(1, 10), 1.0) | {10: LATEST - 8.0})


def test_what_was_learned_last_year_counts_until_it_is_forgotten(plane: Plane) -> None:
    new_year = datetime(2027, 1, 1, tzinfo=UTC)
    for name, at in (("a", new_year - timedelta(days=7)), ("b", new_year)):
        plane.store.commit([ended(plane.running(name, learned_in=KINDS), trained=minutes(10))], at=at)
    assert learned(plane, "default", now=new_year) == pytest.approx([1.5, 1.5, 1.5], rel=0.01)
    assert learned(plane, "default", now=new_year + timedelta(days=91)) == [1, 1, 1]


def test_completed_jobs_are_counted_by_month_and_priority_for_two_months(plane: Plane) -> None:
    for name, at in (("a", NOON), ("b", NOON + timedelta(days=31)), ("c", NOON + timedelta(days=62))):
        plane.store.commit([ended(plane.running(name, priority=7), trained=minutes(10))], at=at)
    (times,) = plane.reader.run_times("main", ()).values()
    assert times.by_month == {"2026-12": {7: 1}, "2027-01": {7: 1}}
    assert times.since == NOON


def test_the_run_time_of_a_job_is_that_of_all_its_attempts_and_no_minute_counts_twice(plane: Plane) -> None:
    one = plane.running("a", checkpointed=minutes(20), max_runtime=minutes(90))
    seen_late = plane.change(one, steps.checkpoint_seen(one, NOON - minutes(1)))
    plane.store.commit([ended(seen_late, trained=minutes(10))], at=NOON)
    assert plane.reader.entrance("main", "default", f"{A}=1", learned=(), now=NOON).predicted == minutes(30)


def test_a_preempted_job_goes_back_to_its_old_place_in_the_queue(plane: Plane) -> None:
    early = plane.running("early", score=100)
    plane.submitted("late", score=200)
    victim = plane.change(early, steps.preempted_for(early, waiting("urgent")))
    plane.store.commit([ended(victim, "Stopped")], at=NOON)
    assert [(one.name, one.state) for one in plane.reader.waiting("main", after=None, limit=9)] == [
        ("early", S.PREEMPTED),
        ("late", S.PENDING),
    ]


def test_one_preemptor_gets_one_hold_and_its_start_uses_it_up(plane: Plane) -> None:
    first, second, preemptor = plane.running("v1"), plane.running("v2"), plane.submitted("p")
    hold = PreemptionReservation(preemptor="p", vector=of(1), victims=("v1",))
    plane.preempts(hold, first, preemptor)
    with pytest.raises(LostRaceError):
        plane.preempts(hold, second, preemptor)
    assert plane.snapshot().holds == (hold,)
    plane.change(preemptor, claimed(preemptor), most_used=of(2), ends_hold_of="p")
    assert plane.snapshot().holds == ()


def test_a_hold_is_gone_on_with_only_as_it_was_left(plane: Plane) -> None:
    first, second, third = (plane.running(name) for name in ("v1", "v2", "v3"))
    preemptor = plane.submitted("p")
    begun = PreemptionReservation(preemptor="p", vector=of(2), missing=of(1))
    plane.preempts(begun, first, preemptor)
    whole = replace(begun, missing=None)
    for other in (None, replace(begun, missing=of(2))):
        with pytest.raises(LostRaceError):
            plane.preempts(whole, second, preemptor, replaces=other)
    plane.preempts(whole, second, preemptor, replaces=begun)
    assert plane.snapshot().holds == (whole,)
    assert {one.name: one.preempted_for for one in plane.snapshot().running} == {
        "v1": "p",
        "v2": "p",
        "v3": None,
    }
    with pytest.raises(LostRaceError):
        plane.preempts(whole, third, preemptor, replaces=begun)


def test_a_hold_is_limited_and_dropped_only_as_it_was_seen(plane: Plane) -> None:
    hold = PreemptionReservation(preemptor="p", vector=of(1), victims=("v",))
    plane.preempts(hold, plane.running("v"), plane.submitted("p"))
    plane.store.limit_hold("main", hold, NOON + minutes(15))
    plane.store.limit_hold("main", hold, NOON + minutes(99))
    plane.store.drop_hold("main", hold)
    (kept,) = plane.snapshot().holds
    assert kept == replace(hold, until=NOON + minutes(15))
    plane.store.drop_hold("main", kept)
    plane.store.drop_hold("main", kept)
    assert plane.snapshot().holds == ()


def test_a_hold_is_dropped_with_its_preemptor_only_as_it_was_seen(plane: Plane) -> None:
    preemptor = plane.submitted("p")
    hold = PreemptionReservation(preemptor="p", vector=of(1))
    plane.preempts(hold, plane.running("v"), preemptor)
    after = after_hold_ran_out(preemptor, of(1), now=NOON)
    for other in (replace(hold, vector=of(2)), PreemptionReservation(preemptor="q", vector=of(1))):
        with pytest.raises(LostRaceError):
            plane.change(preemptor, after, drops_hold=other)
    late = plane.change(preemptor, after, drops_hold=hold)
    assert (plane.snapshot().holds, plane.snapshot().waiting[0].futile) == ((), after.futile)
    with pytest.raises(LostRaceError):
        plane.change(late, after_hold_ran_out(late, of(1), now=NOON), drops_hold=hold)
    assert plane.job("p").futile == after.futile, "it counts once"


def test_what_an_attempt_was_served_is_known_after_its_end(plane: Plane) -> None:
    plane.store.commit([ended(plane.running("small"))], at=NOON)
    plane.store.commit([ended(plane.running("large", vector=of(5)))], at=NOON)
    plane.store.commit([ended(plane.running("larger", vector=of(7)), trained=minutes(20))], at=NOON)
    plane.store.commit([ended(plane.running("old", vector=of(9)), trained=minutes(300))], at=NOON)
    assert plane.snapshot().served == {
        (Capacity(A), 0): ServedStart(instances=1, at=NOON - minutes(30)),
        (Capacity(A), 2): ServedStart(instances=7, at=NOON - minutes(20)),
    }


def test_the_owner_of_a_hold_who_left_the_queue_is_named(plane: Plane) -> None:
    preemptor = plane.submitted("p")
    plane.preempts(
        PreemptionReservation(preemptor="p", vector=of(1), victims=("v",)), plane.running("v"), preemptor
    )
    assert plane.snapshot().gone_preemptors == frozenset()
    plane.change(preemptor, steps.cancelled(preemptor, reason=WHY, now=NOON))
    assert plane.snapshot().gone_preemptors == {"p"}
