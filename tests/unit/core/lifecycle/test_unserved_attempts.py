"""What a job notes of attempts that others were stopped for, and of its own stops."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Preemptor, Reason, StopsInARow
from trainmaster.core.jobs.instances import Capacity, Choice, Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.recent_stops import RecentStops
from trainmaster.core.jobs.run_time import least_length
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.lifecycle import settlement, steps
from trainmaster.core.lifecycle.backoff import BACKOFF_MAX, backoff
from trainmaster.core.lifecycle.decision import End
from trainmaster.core.lifecycle.retries import Retry
from trainmaster.core.lifecycle.unserved_attempts import after_hold_ran_out, after_put_off, start_lesson
from trainmaster.core.planning.queue_entries import waiting_entry

from tests.builders import ENTRY, NOON, A, B, attempt, changed, job, live_job, minutes, of, seen, waiting
from tests.ends import observed

S, C = JobState, ReasonCode
WHY = Reason(code=C.UNAVAILABLE, message="not now")
NO_CAPACITY = seen(status="Failed", secondary="Failed", failure_reason="CapacityError: none", ended_at=NOON)


def starts(*, after_stops: bool = True, **fields: Any) -> Job:
    """Claimed, with others stopped for it."""
    one = job(**fields)
    live = attempt(number=one.attempt, training_job_arn=None, shape=one.spec.shapes[0])
    return steps.claim(one, live, after_stops=after_stops)


def over(before: Job, end: Observation = NO_CAPACITY) -> Job:
    change = observed(before, end, now=NOON + minutes(1))
    assert change is not None
    return change.after


def ended_as(before: Job, code: ReasonCode, becomes: JobState = S.PENDING, **fields: Any) -> Job:
    end = End(becomes=becomes, reason=Reason(code=code, message="it ended"), **fields)
    return settlement.settled(before, end, None, now=NOON).after


def test_an_attempt_that_others_were_stopped_for_and_that_aws_has_no_instances_for_counts() -> None:
    after = over(starts(vector=of(4)))
    assert after.futile is not None
    assert (after.futile.count, after.futile.vector, after.futile.since) == (1, of(4), NOON)
    assert after.futile.until == NOON + minutes(16)
    assert waiting_entry(after).futile == after.futile, "the planner reads it in the queue"
    assert after.made_room_for is None


def test_the_next_one_waits_twice_as_long() -> None:
    first = over(starts())
    again = steps.claim(steps.unparked(first), attempt(number=1, training_job_arn=None), after_stops=True)
    second = over(again)
    assert second.futile is not None
    assert (second.futile.count, second.futile.until) == (2, NOON + minutes(31))


def test_one_that_started_into_free_instances_does_not() -> None:
    assert over(starts(after_stops=False)).futile is None
    first = over(starts())
    again = steps.claim(steps.unparked(first), attempt(number=1, training_job_arn=None))
    assert over(again).futile == first.futile


RETRY = Retry(wait=minutes(1), waiting=Reason(code=C.BACKOFF, message="service"))


@pytest.mark.parametrize(
    ("code", "becomes", "fields", "counts"),
    [
        pytest.param(C.CAPACITY, S.PENDING, {}, 1, id="no capacity, or its pending time ran out"),
        pytest.param(C.SERVICE, S.PENDING, {"retry": RETRY}, 1, id="SageMaker failed"),
        pytest.param(C.IMAGE, S.PENDING, {"retry": RETRY}, 1, id="it failed by itself"),
        pytest.param(C.SPOT_FALLBACK, S.PENDING, {"moves": True}, 1, id="no spot in its whole MaxWait"),
        pytest.param(C.RESTORED, S.PENDING, {}, None, id="a restored table: nobody knows what happened"),
        pytest.param(C.PREEMPTION, S.PREEMPTED, {}, None, id="it made room itself"),
        pytest.param(C.SPOT_FALLBACK, S.PREEMPTED, {"moves": True}, None, id="we moved it"),
        pytest.param(C.USER_CODE, S.FAILED, {}, None, id="it does not come back"),
    ],
)
def test_how_the_attempt_ended(
    code: ReasonCode, becomes: JobState, fields: dict[str, Any], counts: int | None
) -> None:
    state = S.PREEMPTING if becomes is S.PREEMPTED else S.STARTING
    before = replace(starts(), state=state)
    futile = ended_as(before, code, becomes, **fields).futile
    assert (futile.count if futile else None) == counts


def test_an_attempt_that_trained_ends_the_chain_however_it_ends() -> None:
    known = replace(starts(), futile=over(starts()).futile, state=S.RUNNING)
    trained = seen(
        status="Failed",
        secondary="Failed",
        failure_reason="CapacityError: gone",
        training_since=NOON - minutes(1),
        ended_at=NOON,
    )
    after = over(known, trained)
    assert (after.futile, after.made_room_for, after.starts.no_capacity) == (None, None, None)


def test_training_that_is_seen_ends_the_chain() -> None:
    known = replace(starts(), futile=over(starts()).futile)
    begins = steps.progressed(known, seen(secondary="Starting"), now=NOON)
    assert begins.futile == known.futile, "that SageMaker took it says nothing about instances"
    trains = steps.progressed(begins, seen(training_since=NOON), now=NOON)
    assert (trains.futile, trains.made_room_for) == (None, None)


@pytest.mark.parametrize(
    ("step", "count", "kept"),
    [
        pytest.param(lambda one: steps.put_back(one, reason=WHY, now=NOON), 1, None, id="put off"),
        pytest.param(lambda one: steps.puzzled(one, message="new", now=NOON), 1, None, id="unknown"),
        pytest.param(
            lambda one: steps.refused_by_account(
                one, AccountRefusals(count=1, again_at=NOON + minutes(1)), "limit"
            ),
            1,
            None,
            id="a limit of the account",
        ),
        pytest.param(lambda one: steps.back_in_turn(one, WHY), None, 0, id="throttled: it goes on at once"),
        pytest.param(steps.unclaimed, None, 0, id="a lease that ran out: so it does"),
    ],
)
def test_a_start_that_aws_did_not_take(step: Any, count: int | None, kept: int | None) -> None:
    claimed = starts(vector=of(4))
    after = after_put_off(claimed, step(claimed), now=NOON)
    assert (after.futile.count if after.futile else None) == count
    assert after.made_room_for == kept
    assert after_put_off(claimed, after, now=NOON).made_room_for == kept


def test_a_start_that_is_put_off_counts_once() -> None:
    """The same attempt comes again into free instances, and ends for want of capacity then."""
    claimed = starts()
    put_off = after_put_off(claimed, steps.put_back(claimed, reason=WHY, now=NOON), now=NOON)
    again = steps.claim(steps.unparked(put_off), attempt(training_job_arn=None))
    assert over(again).futile == put_off.futile


def test_the_note_outlives_a_throttled_start() -> None:
    again = steps.claim(steps.back_in_turn(starts(), WHY), attempt(training_job_arn=None))
    futile = over(again).futile
    assert futile is not None
    assert futile.count == 1


def test_a_preemptor_that_never_started() -> None:
    futile = after_hold_ran_out(job(), of(4), now=NOON).futile
    assert futile is not None
    assert (futile.count, futile.vector, futile.until) == (1, of(4), NOON + minutes(15))


def test_where_sagemaker_chooses_one_type_was_enough() -> None:
    shapes = (Shape(vector=of(2)), Shape(vector=of(2, B)))
    both = Shape(vector={Capacity(A): 2, Capacity(B): 2})
    before = live_job(
        state=S.STARTING,
        shapes=shapes,
        choice=Choice.SAGEMAKER,
        made_room_for=0,
        live=attempt(shape=both),
    )
    futile = over(before).futile
    assert futile is not None
    assert (futile.vector, futile.choice) == (both.vector, Choice.SAGEMAKER)


def test_the_back_off_of_missing_capacity_doubles_until_an_attempt_has_trained() -> None:
    """Each Create is accepted in between."""
    one, waits = job(), []
    for number in range(12):
        claimed = steps.claim(one, attempt(number=number, training_job_arn=None))
        taken = steps.recorded(claimed, training_job_arn="arn", now=NOON)
        after = over(taken)
        assert after.not_before is not None
        waits.append(after.not_before - (NOON + minutes(1)))
        one = steps.unparked(after)
    assert waits == [backoff(ENTRY, number) for number in range(12)]
    assert minutes(5) < max(waits) <= BACKOFF_MAX
    live = steps.claim(one, attempt(number=12, training_job_arn=None))
    trains = steps.progressed(live, seen(training_since=NOON), now=NOON)
    assert trains.starts.no_capacity is None


# ---- what stops cost the others


def victim(**fields: Any) -> Job:
    values: dict[str, Any] = {"claimed_at": NOON - minutes(4), "training_since": None}
    return steps.preempted_for(live_job(live=attempt(**values | fields), preemptions=1), waiting("urgent"))


STOPPED = seen(status="Stopped", secondary="Stopped", ended_at=NOON)


def test_a_start_up_that_a_stop_made_worthless_is_wasted() -> None:
    after = over(victim(), STOPPED)
    assert after.spent.all_wasted() == {"preemption": 240}
    assert after.spent.wasted == {}, "training alone"
    assert least_length(after) == minutes(0), "a start-up is no training"
    again = replace(victim(), spent=after.spent)
    assert over(again, STOPPED).spent.all_wasted() == {"preemption": 480}


def test_a_start_up_that_led_to_training_is_not() -> None:
    trained = victim(training_since=NOON - minutes(1))
    after = over(trained, replace(STOPPED, training_since=NOON - minutes(1)))
    assert after.spent.all_wasted() == {}


def test_nor_one_that_nobody_of_ours_stopped() -> None:
    assert over(starts()).spent.all_wasted() == {}


def test_stops_in_a_row_for_the_same_job_are_counted() -> None:
    after = over(victim(), STOPPED)
    urgent = Preemptor(name="urgent", team="default")
    once, twice = (RecentStops(count=count, at=NOON, lost=minutes(4)) for count in (1, 2))
    assert after.stopped_for == StopsInARow(preemptor=urgent, count=1, recent=once)
    again = over(replace(victim(), stopped_for=after.stopped_for), STOPPED)
    assert again.stopped_for == StopsInARow(preemptor=urgent, count=2, recent=twice)
    other = StopsInARow(preemptor=Preemptor(name="other", team="default"), count=5)
    assert over(replace(victim(), stopped_for=other), STOPPED).stopped_for == after.stopped_for
    assert over(changed(starts(), stopped_for=other)).stopped_for == other


TRAINS = seen(status="InProgress", secondary="Training", training_since=NOON)


def lesson(before: Job, end: Observation) -> bool | None:
    """Tell whether the attempt counts as one that trained; None: it does not count."""
    change = observed(before, end, now=NOON + minutes(1))
    assert change is not None
    start = start_lesson(change, at=NOON + minutes(1))
    assert start is None or (start.vector == before.vector and start.at == NOON + minutes(1))
    return None if start is None else start.trained


def trained_since(at: datetime) -> Job:
    change = observed(starts(), seen(status="InProgress", secondary="Training", training_since=at), now=NOON)
    assert change is not None
    return change.after


def on_warm_pool(before: Job) -> Job:
    assert before.live is not None
    return replace(before, live=replace(before.live, claim=replace(before.live.claim, reuses="left-warm")))


@pytest.mark.parametrize(
    ("before", "end", "expected"),
    [
        pytest.param(starts(), TRAINS, True, id="it trains"),
        pytest.param(starts(), NO_CAPACITY, False, id="AWS had no instances"),
        pytest.param(
            trained_since(NOON - minutes(9)),
            seen(training_since=NOON - minutes(9), status="Completed", ended_at=NOON),
            None,
            id="it was seen to train before",
        ),
        pytest.param(
            starts(),
            seen(status="Failed", secondary="Failed", failure_reason="AlgorithmError: no", ended_at=NOON),
            None,
            id="it failed for another reason",
        ),
        pytest.param(on_warm_pool(starts()), NO_CAPACITY, None, id="it had the instances of a warm pool"),
    ],
)
def test_a_start_teaches_once_whether_aws_had_its_instances(
    before: Job, end: Observation, *, expected: bool | None
) -> None:
    assert lesson(before, end) is expected
