"""Steps of a job's life."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs import run_time
from trainmaster.core.jobs.attempts import Preemptor, Reason
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.instances import Shape, Vector
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation, TrainingInterval
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.jobs.states import IllegalTransitionError
from trainmaster.core.lifecycle import settlement, steps
from trainmaster.core.lifecycle.backoff import BACKOFF_MAX, backoff
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.decision import End
from trainmaster.core.lifecycle.retries import Retry
from trainmaster.core.planning.snapshot import WarmPool

from tests.builders import NOON, B, attempt, claimed, job, live_job, minutes, of, seen, waiting
from tests.ends import observed, stopped_for_idle

S = JobState
WHY = Reason(code=ReasonCode.UNAVAILABLE, message="y")
STOPPED = seen(status="Stopped", secondary="Stopped", ended_at=NOON + minutes(40))


def test_a_preempted_job_waits_with_its_next_attempt_and_keeps_its_turn() -> None:
    victim = steps.preempted_for(live_job(score=77), waiting("urgent"))
    change = observed(victim, STOPPED, now=NOON + minutes(41))
    assert change is not None
    after = change.after
    assert (after.state, after.attempt, after.preemptions, after.live, after.score) == (
        S.PREEMPTED,
        1,
        1,
        None,
        77,
    )
    assert change.ended is not None
    assert change.ended.reason == Reason(code=ReasonCode.PREEMPTION, message="made room for urgent")


def test_training_without_checkpoints_is_counted_as_wasted_by_the_preemption() -> None:
    live = attempt(training_since=NOON)
    victim = live_job(state=S.PREEMPTING, live=live, has_checkpoint=False)
    change = observed(victim, replace(STOPPED, training_since=NOON), now=NOON + minutes(41))
    assert change is not None
    assert change.after.spent.wasted == {"preemption": 40 * 60}


def test_no_instances_means_a_new_attempt_after_a_back_off_that_is_not_charged() -> None:
    lost = seen(status="Failed", secondary="Failed", failure_reason="CapacityError: none")
    change = observed(live_job(state=S.STARTING), lost, now=NOON)
    assert change is not None
    after = change.after
    assert (after.state, after.attempt, after.preemptions) == (S.PENDING, 1, 0)
    assert after.not_before is not None
    assert NOON < after.not_before <= NOON + BACKOFF_MAX


def test_a_start_put_off_keeps_its_attempt_number() -> None:
    reason = Reason(code=ReasonCode.UNAVAILABLE, message="ThrottlingException")
    after = steps.put_back(live_job(state=S.STARTING, attempt=3), reason=reason, now=NOON)
    assert (after.state, after.attempt, after.live, after.is_parked) == (S.PENDING, 3, None, True)


def test_the_third_error_that_nobody_knows_ends_the_job() -> None:
    puzzled = live_job(state=S.STARTING)
    for expected in (S.PENDING, S.PENDING, S.FAILED):
        after = steps.puzzled(replace(puzzled, state=S.STARTING), message="Odd", now=NOON)
        assert after.state is expected
        puzzled = replace(after, live=attempt())
    assert puzzled.reason == Reason(code=ReasonCode.FAILED_TO_START, message="Odd")


@pytest.mark.parametrize(
    ("before", "state"),
    [
        pytest.param(job(), S.STOPPED, id="waiting: over at once"),
        pytest.param(job(state=S.PREEMPTED, attempt=1), S.STOPPED, id="preempted: over at once"),
        pytest.param(live_job(state=S.STARTING), S.STOPPING, id="starting: asked to stop"),
        pytest.param(live_job(), S.STOPPING, id="running: asked to stop"),
        pytest.param(live_job(state=S.PREEMPTING), S.STOPPING, id="preempting: does not come back"),
    ],
)
def test_a_cancel(before: Job, state: JobState) -> None:
    after = steps.cancelled(before, reason=Reason(code=ReasonCode.STOPPED_BY_USER, message="ada"), now=NOON)
    assert after.state is state
    assert (after.ended_at is not None) == (state is S.STOPPED)


def test_news_of_a_claimed_job_makes_it_running_once() -> None:
    claimed = live_job(state=S.STARTING, live=attempt(training_job_arn=None), started_at=None)
    change = observed(claimed, seen(training_since=NOON), now=NOON)
    assert change is not None
    assert change.after.state is S.RUNNING
    assert observed(change.after, seen(training_since=NOON), now=NOON + minutes(1)) is None


def test_on_demand_instances_are_certain_to_be_free_once_training_began() -> None:
    assert run_time.ends_by(live_job()) is None
    training = live_job(live=attempt(training_since=NOON, max_runtime=timedelta(hours=2)))
    assert run_time.ends_by(training) == NOON + timedelta(hours=2, minutes=10)


def test_spot_instances_are_certain_to_be_free_a_max_wait_after_creation() -> None:
    assert run_time.ends_by(live_job(live=attempt(max_wait=timedelta(hours=5)))) == NOON + timedelta(
        hours=5, minutes=10
    )


@given(st.text(min_size=1, max_size=26), st.integers(0, 100))
def test_a_back_off_is_bounded_and_repeatable(entry_id: str, refused: int) -> None:
    wait = backoff(entry_id, refused)
    assert timedelta(seconds=1) <= wait <= BACKOFF_MAX
    assert wait == backoff(entry_id, refused)


# ---- run time


def survived(minutes_of_training: float, *, extensions: int = 0, **fields: Any) -> Job:
    return job(checkpointed=minutes(minutes_of_training), extensions=extensions, **fields)


@pytest.mark.parametrize(
    ("before", "left", "extended"),
    [
        pytest.param(job(), 60, False, id="the first attempt: what was asked for"),
        pytest.param(survived(20), 40, False, id="what survived in checkpoints is used up"),
        pytest.param(survived(30), 30, False, id="half an hour is enough"),
        pytest.param(survived(31), 30, True, id="at least half an hour, to get anywhere"),
        pytest.param(survived(31, extensions=2), 30, True, id="three times"),
        pytest.param(survived(31, extensions=3), 29, False, id="then what is left"),
        pytest.param(survived(60, extensions=3), 1, False, id="and a minute if nothing is"),
        pytest.param(survived(3, max_runtime=minutes(10)), 10, True, id="never more than was asked for"),
    ],
)
def test_run_time_is_the_job_s(before: Job, left: float, *, extended: bool) -> None:
    assert run_time.runtime_left(before) == (minutes(left), extended)


def test_only_an_attempt_that_came_to_be_uses_an_extension_up() -> None:
    short = survived(50, max_runtime=minutes(60))
    again = steps.put_back(claimed(short), reason=WHY, now=NOON)
    for undone in (
        again,
        steps.unclaimed(claimed(short)),
        steps.refused_by_account(claimed(short), AccountRefusals(count=1), "no more"),
    ):
        assert undone.extensions == 0
    live = claimed(short, training_job_arn="arn:x")
    change = observed(replace(live, state=S.PREEMPTING), STOPPED, now=NOON + minutes(41))
    assert change is not None
    assert change.after.extensions == 1


# ---- what an end leaves behind


def training(state: JobState = S.RUNNING, *, spec: dict[str, Any] | None = None, **fields: Any) -> Job:
    """Claimed at noon, trains since ten past; $6 an hour."""
    values: dict[str, Any] = {"training_since": NOON + minutes(10), "usd_per_hour": Decimal(6)}
    return live_job(state=state, live=attempt(**values | fields), **spec or {})


def over(before: Job, status: str = "Stopped", **fields: Any) -> Change:
    """Its training job ended at one."""
    values: dict[str, Any] = {"ended_at": NOON + minutes(60), "secondary": status}
    change = observed(before, seen(status=status, **values | fields), now=NOON + minutes(61))
    assert change is not None
    return change


AT_HALF_PAST: dict[str, Any] = {"last_checkpoint": NOON + minutes(30)}
BARE: dict[str, Any] = {"has_checkpoint": False}


@pytest.mark.parametrize(
    ("change", "safe", "wasted"),
    [
        pytest.param(
            over(training(S.PREEMPTING, **AT_HALF_PAST)), 20, 30, id="since the checkpoint all is lost"
        ),
        pytest.param(over(training(S.PREEMPTING, spec=BARE)), 0, 50, id="without checkpoints everything is"),
        pytest.param(over(training(S.PREEMPTING)), 0, 0, id="not guessed where no checkpoint was seen"),
        pytest.param(
            over(training(S.PREEMPTING, last_checkpoint=NOON)),
            0,
            50,
            id="an earlier attempt's checkpoint saves nothing",
        ),
        pytest.param(
            over(training(S.PREEMPTING, last_checkpoint=NOON + minutes(70))),
            50,
            0,
            id="written while it stopped: all is safe",
        ),
        pytest.param(
            over(training(S.PREEMPTING, training_since=None, spec=BARE)),
            0,
            0,
            id="before Training nothing is lost",
        ),
        pytest.param(over(training(**AT_HALF_PAST), "Completed"), 20, 0, id="completed: nothing is wasted"),
        pytest.param(
            over(training(S.STOPPING, **AT_HALF_PAST)), 20, 0, id="stopped by its user: nothing is wasted"
        ),
        pytest.param(
            over(training(spec=BARE), "Failed"), 0, 0, id="failed for good: nothing has to be done again"
        ),
    ],
)
def test_what_survives_an_end_and_what_is_wasted(change: Change, safe: float, wasted: float) -> None:
    assert change.after.checkpointed == minutes(safe)
    assert sum(change.after.spent.wasted.values()) == wasted * 60


def test_waste_and_survival_add_up_over_attempts() -> None:
    before = training(
        S.PREEMPTING,
        spec={"wasted": {"preemption": 100, "capacity": 7}, "checkpointed": minutes(5), "cents": 50},
        max_runtime=minutes(55),
        **AT_HALF_PAST,
    )
    after = over(before).after
    assert after.spent.wasted == {"preemption": 1900, "capacity": 7}
    assert (after.checkpointed, after.spent.cents) == (minutes(25), 650)


@pytest.mark.parametrize(
    ("change", "bill"),
    [
        pytest.param(
            over(training(), "Completed"), {"startup": 100, "productive": 500}, id="start-up, then training"
        ),
        pytest.param(
            over(training(S.PREEMPTING, **AT_HALF_PAST)),
            {"startup": 100, "productive": 200, "preemption": 300},
            id="what a preemption threw away",
        ),
        pytest.param(
            over(training(spec=BARE), "Failed"),
            {"startup": 100, "failures": 500},
            id="what a failure threw away",
        ),
        pytest.param(
            over(training(), "Failed"),
            {"startup": 100, "failures": 500},
            id="all of it where nobody saw a checkpoint: there is no later attempt that could have one",
        ),
        pytest.param(
            over(training(), "Completed", billable=minutes(55)),
            {"startup": 50, "productive": 500},
            id="no more than SageMaker bills",
        ),
        pytest.param(over(training(usd_per_hour=None), "Completed"), None, id="without a price nobody knows"),
    ],
)
def test_the_bill_of_an_attempt_by_cause(change: Change, bill: dict[str, int] | None) -> None:
    assert change.ended is not None
    assert change.ended.bill.by == (bill or {})
    assert change.ended.bill.cents == (None if bill is None else sum(bill.values()))
    assert change.after.spent.cents == sum((bill or {}).values())
    assert change.after.spent.unpriced is (bill is None)


def test_instance_seconds_count_every_instance() -> None:
    wide = training(shape=Shape(vector=of(3)))
    ended = over(wide, "Completed").ended
    assert ended is not None
    assert ended.bill.instance_seconds == 3 * 3600


# ---- warm pools

KEYED = Shape(vector=of(2), warm_key="k")


@pytest.mark.parametrize(
    ("status", "shape", "kept"),
    [
        pytest.param("Available", KEYED, True, id="SageMaker says that it keeps it"),
        pytest.param("InUse", KEYED, False, id="somebody has taken it"),
        pytest.param("Terminated", KEYED, False, id="it is gone"),
        pytest.param(None, KEYED, False, id="SageMaker says nothing of one"),
        pytest.param("Available", Shape(vector=of(2)), False, id="of a shape that SageMaker keeps none of"),
    ],
)
def test_what_an_end_leaves_warm(status: str | None, shape: Shape, *, kept: bool) -> None:
    change = over(training(shape=shape, keep_alive=minutes(10)), "Completed", warm_status=status)
    expected = WarmPool(
        training_job_name="train-1",
        team="default",
        vector=of(2),
        warm_key="k",
        since=NOON + minutes(60),
        expires_at=NOON + minutes(70),
        job="train-1",
        month=change.before.live.claim.month if change.before.live else None,
        usd_per_hour=change.before.live.claim.usd_per_hour if change.before.live else None,
    )
    assert change.leaves_warm == (expected if kept else None)


@pytest.mark.parametrize(
    ("status", "news", "missed"),
    [
        pytest.param("Completed", {}, True, id="no word of a warm pool"),
        pytest.param("Stopped", {}, True, id="nor after a stop"),
        pytest.param(
            "Completed",
            {"warm_status": "Terminated", "retained": timedelta()},
            True,
            id="over at once",
        ),
        pytest.param("Completed", {"warm_status": "Terminated"}, True, id="over before its time"),
        pytest.param("Completed", {"warm_status": "Available"}, False, id="kept"),
        pytest.param("Completed", {"warm_status": "Reused"}, False, id="another job has it by now"),
        pytest.param(
            "Completed",
            {"warm_status": "Terminated", "retained": minutes(3)},
            False,
            id="was kept for a while",
        ),
        pytest.param(
            "Completed",
            {"warm_status": "Terminated", "ended_at": NOON + minutes(45)},
            False,
            id="heard of when its time was over",
        ),
        pytest.param("Failed", {}, False, id="after a failure SageMaker may keep none"),
    ],
)
def test_an_end_says_when_warm_instances_were_asked_for_and_not_kept(
    status: str, news: dict[str, Any], *, missed: bool
) -> None:
    change = over(training(shape=KEYED, keep_alive=minutes(10)), status, **news)
    assert change.keeps_nothing is missed


@pytest.mark.parametrize(
    "live",
    [
        pytest.param({"shape": KEYED}, id="nobody asked"),
        pytest.param({"shape": Shape(vector=of(2)), "keep_alive": minutes(10)}, id="of a shape without any"),
    ],
)
def test_where_no_warm_instances_were_to_be_kept_none_are_missed(live: dict[str, Any]) -> None:
    assert not over(training(**live), "Completed").keeps_nothing


def test_a_job_that_never_got_its_instances_misses_none() -> None:
    never = live_job(live=attempt(shape=KEYED, keep_alive=minutes(10)))
    change = observed(never, seen(status="Stopped", secondary="Stopped", ended_at=NOON), now=NOON)
    assert change is not None
    assert not change.keeps_nothing


LEFT = seen(
    "earlier", status="Completed", secondary="Completed", ended_at=NOON - minutes(5), warm_status="Available"
)
STILL = WarmPool(
    training_job_name="earlier",
    team="default",
    vector=of(2),
    warm_key="k",
    since=NOON - minutes(5),
    expires_at=NOON + minutes(5),
    job="train-1",
    billed_from=NOON,
)


@pytest.mark.parametrize(
    ("left", "still"),
    [
        pytest.param(LEFT, STILL, id="SageMaker keeps it still: it counts again"),
        pytest.param(replace(LEFT, warm_status="Reused"), None, id="it was taken"),
        pytest.param(None, None, id="nobody knows its training job any more"),
    ],
)
def test_what_became_of_the_warm_pool_an_attempt_was_to_take(
    left: Observation | None, still: WarmPool | None
) -> None:
    live = live_job(live=attempt(shape=KEYED, keep_alive=minutes(10), reuses="earlier"))
    settled = steps.reuse_settled(live, left)
    assert settled.after.live is not None
    assert (settled.after.live.claim.reuses, settled.leaves_warm) == (None, still)
    never = replace(live, state=S.STARTING)
    undone = steps.claim_undone(never, steps.unclaimed(never), left)
    assert (undone.after.live, undone.ended, undone.leaves_warm) == (None, None, still)


def test_a_claim_that_ends_the_job_is_remembered_as_an_attempt_that_cost_nothing() -> None:
    never = live_job(state=S.STARTING, live=attempt(usd_per_hour=Decimal(6)))
    undone = steps.claim_undone(never, steps.failed(never, reason=WHY, now=NOON), None)
    assert undone.ended is not None
    assert (undone.ended.bill.cents, undone.ended.reason, undone.ended.ended_at) == (0, WHY, NOON)


# ---- InstancePreferences

BOTH = Shape(vector={**of(2), **of(1, B)})


@pytest.mark.parametrize(
    ("selected", "held"),
    [
        pytest.param(None, {**of(2), **of(1, B)}, id="not yet known: all are held"),
        pytest.param(B, of(1, B), id="SageMaker took one: the others are free"),
        pytest.param("ml.c.xlarge", {**of(2), **of(1, B)}, id="one that was not held: nothing is given back"),
    ],
)
def test_what_sagemaker_took_shrinks_what_is_held(selected: str | None, held: Vector) -> None:
    before = live_job(live=attempt(shape=BOTH))
    change = observed(before, seen(selected_type=selected), now=NOON)
    assert change is not None
    assert change.after.vector == held
    ended = over(before, "Completed", selected_type=selected).ended
    assert ended is not None
    assert ended.vector == held


# ---- preemption, holding, checkpoints


def test_the_victim_is_told_and_the_ledger_knows_who_took_its_room() -> None:
    taken = steps.preempted_for(live_job(), waiting("urgent", team="speech"))
    assert taken.live is not None
    assert taken.live.preempted_for == Preemptor(name="urgent", team="speech")
    assert taken.reason == Reason(code=ReasonCode.PREEMPTION, message="made room for a job of team speech")


@pytest.mark.parametrize(
    ("before", "back"),
    [
        pytest.param(job(), S.PENDING, id="never preempted: pending"),
        pytest.param(
            job(state=S.PREEMPTED, preemptions=1, attempt=1), S.PREEMPTED, id="preempted before: preempted"
        ),
        pytest.param(job(not_before=NOON + minutes(9)), S.PENDING, id="backing off: no longer"),
    ],
)
def test_a_held_job_waits_for_a_person_and_comes_back_as_it_was(before: Job, back: JobState) -> None:
    held = steps.held(before, WHY)
    assert (held.state, held.is_parked, held.waiting) == (S.HELD, True, WHY)
    released = steps.released(held)
    assert (released.state, released.is_parked, released.waiting) == (back, False, None)
    assert (released.score, released.attempt) == (before.score, before.attempt)


@pytest.mark.parametrize(
    ("known", "found", "expected"),
    [
        pytest.param(None, NOON, NOON, id="the first one seen"),
        pytest.param(NOON, NOON + minutes(5), NOON + minutes(5), id="a newer one"),
        pytest.param(NOON, NOON - minutes(5), NOON, id="an older one says nothing"),
        pytest.param(NOON, None, NOON, id="none found says nothing"),
        pytest.param(None, None, None, id="none at all"),
    ],
)
def test_the_newest_checkpoint_seen_is_kept(
    known: datetime | None, found: datetime | None, expected: datetime | None
) -> None:
    after = steps.checkpoint_seen(live_job(live=attempt(last_checkpoint=known)), found)
    assert after.live is not None
    assert after.live.checkpoint.last == expected


def test_a_job_the_account_refused_waits_out_its_own_back_off_with_the_same_attempt() -> None:
    refusals = AccountRefusals(count=2, held=of(4), again_at=NOON + minutes(1.5))
    after = steps.refused_by_account(live_job(state=S.STARTING, attempt=2), refusals, "no more")
    assert (after.state, after.attempt, after.live, after.not_before) == (
        S.PENDING,
        2,
        None,
        NOON + minutes(1.5),
    )
    assert after.waiting == Reason(
        code=ReasonCode.ACCOUNT_LIMIT, message="AWS refused to start it 2 times in a row: no more"
    )
    back = steps.unparked(after)
    assert (back.is_parked, back.waiting, back.starts.by_account) == (False, after.waiting, refusals)


def test_a_start_that_is_taken_ends_the_row_of_refusals() -> None:
    refused = live_job(state=S.STARTING, refused_by_account=AccountRefusals(count=4))
    after = steps.recorded(refused, training_job_arn="arn:x", now=NOON)
    assert after.starts.by_account is None


# ---- failures that a job comes back from


def retried(before: Job, *, rewritten: dict[str, str] | None = None) -> Change:
    """Failed at one, after 50 minutes of Training."""
    diagnosis = Diagnosis(failure_class=FailureClass.NETWORK, advice="wait")
    retry = Retry(wait=minutes(3), waiting=WHY, rewritten=rewritten or {})
    reason = Reason(code=ReasonCode.NETWORK, message="NCCL")
    end = End(becomes=S.PENDING, reason=reason, diagnosis=diagnosis, retry=retry)
    news = seen(status="Failed", secondary="Failed", ended_at=NOON + minutes(60))
    return settlement.settled(before, end, news, now=NOON + minutes(61))


@pytest.mark.parametrize("state", [S.STARTING, S.RUNNING, S.PREEMPTING])
def test_a_retry_is_the_next_attempt_after_its_back_off_and_is_charged(state: JobState) -> None:
    change = retried(training(state, spec={"productive": minutes(80), "retries": 1}))
    after = change.after
    assert (after.state, after.attempt, after.comebacks.retries, after.preemptions) == (S.PENDING, 1, 2, 0)
    assert (after.not_before, after.waiting, after.is_parked) == (NOON + minutes(64), WHY, True)
    assert after.comebacks.productive == timedelta(), "the next failure has to earn its own"
    assert (after.reason, after.live, after.starts.refused) == (None, None, 0)


def test_the_attempt_that_failed_keeps_what_was_found_and_the_loss_has_its_class() -> None:
    change = retried(training(spec=BARE))
    assert change.ended is not None
    assert change.ended.diagnosis == Diagnosis(failure_class=FailureClass.NETWORK, advice="wait")
    assert change.ended.reason == Reason(code=ReasonCode.NETWORK, message="NCCL")
    assert change.after.spent.wasted == {"network": 50 * 60}
    assert change.ended.bill.by == {"startup": 100, "failures": 500}


def test_a_halved_batch_stays_halved_in_later_attempts() -> None:
    once = retried(training(), rewritten={"bs": "4", "steps": "2"}).after
    assert (once.comebacks.halvings, once.comebacks.rewritten) == (1, {"bs": "4", "steps": "2"})
    again = training(spec={"halvings": 1, "rewritten": once.comebacks.rewritten})
    twice = retried(again, rewritten={"bs": "2"}).after
    assert (twice.comebacks.halvings, twice.comebacks.rewritten) == (2, {"bs": "2", "steps": "2"})
    assert retried(training()).after.comebacks.halvings == 0


@pytest.mark.parametrize(
    ("change", "productive"),
    [
        pytest.param(over(training(S.PREEMPTING)), 50, id="a preemption: what it trained counts"),
        pytest.param(
            over(training(spec={"productive": minutes(7)}), "Failed", failure_reason="CapacityError: none"),
            57,
            id="no instances: not charged, so it goes on counting",
        ),
        pytest.param(over(training(S.PREEMPTING, training_since=None)), 0, id="never in Training"),
        pytest.param(
            over(
                stopped_for_idle(training(idle_since=NOON + minutes(40)), NOON + minutes(50), requeues=True)
            ),
            30,
            id="while its GPUs did nothing it was not productive",
        ),
    ],
)
def test_productive_time_adds_up_until_a_failure_is_charged(change: Change, productive: float) -> None:
    assert change.after.comebacks.productive == minutes(productive)


# ---- idle


IDLE: dict[str, Any] = {"idle_since": NOON + minutes(40)}


def test_an_idle_job_is_stopped_for_good() -> None:
    asked = stopped_for_idle(training(**IDLE), NOON + minutes(50))
    assert asked.state is S.STOPPING
    assert asked.reason == Reason(
        code=ReasonCode.IDLE, message="its GPUs did nothing: 10 minutes since its alarm went off"
    )
    change = over(asked)
    assert (change.after.state, change.after.reason, change.after.attempt) == (S.STOPPED, asked.reason, 0)
    assert change.ended is not None
    assert change.ended.bill.by == {"startup": 100, "unknown": 300, "idle": 200}  # no checkpoint was seen


def test_an_idle_job_may_come_back_and_that_is_no_preemption_and_not_charged() -> None:
    asked = stopped_for_idle(training(**IDLE, **AT_HALF_PAST), NOON + minutes(50), requeues=True)
    assert asked.state is S.PREEMPTING
    change = over(asked)
    after = change.after
    assert (after.state, after.attempt, after.preemptions, after.comebacks.retries) == (S.PREEMPTED, 1, 0, 0)
    assert (after.comebacks.idle_requeues, after.spent.wasted) == (1, {"idle-requeue": 30 * 60})
    assert change.ended is not None
    assert change.ended.reason is not None
    assert change.ended.reason.code == "idle-requeue"
    assert change.ended.bill.by == {"startup": 100, "productive": 200, "idle": 300}


def test_an_idle_job_that_completes_first_was_not_idle() -> None:
    asked = stopped_for_idle(training(**IDLE), NOON + minutes(50))
    ended = over(asked, "Completed").ended
    assert ended is not None
    assert ended.bill.by == {"startup": 100, "productive": 500}


@pytest.mark.parametrize("state", [S.STARTING, S.PREEMPTING, S.STOPPING])
def test_only_a_running_job_is_stopped_because_it_is_idle(state: JobState) -> None:
    for requeues in (False, True):
        with pytest.raises((AssertionError, IllegalTransitionError)):
            stopped_for_idle(training(state, **IDLE), NOON, requeues=requeues)


def test_the_warning_has_the_instant_of_the_stop_and_both_are_taken_back_together() -> None:
    warned = steps.idle(live_job(), since=NOON, stop_due=NOON + minutes(10))
    assert warned.live is not None
    assert (warned.live.watch.idle_since, warned.live.watch.stop_due) == (NOON, NOON + minutes(10))
    assert steps.idle(warned, since=None) == live_job()


def test_an_underused_job_may_come_back_and_that_is_not_charged() -> None:
    reason = Reason(code=ReasonCode.UNDERUSED_REQUEUE, message="its GPUs were used less")
    change = over(steps.stopped_by_rule(training(**AT_HALF_PAST), reason, requeues=True))
    after = change.after
    assert (after.state, after.preemptions, after.comebacks.retries) == (S.PREEMPTED, 0, 0)
    assert (after.comebacks.idle_requeues, after.spent.wasted) == (1, {"underused-requeue": 30 * 60})
    assert change.ended is not None
    assert change.ended.bill.by == {"startup": 100, "productive": 200, "idle": 300}, (
        "lost since the checkpoint"
    )


def test_an_underused_job_that_is_stopped_for_good_has_not_wasted_all_of_its_training() -> None:
    reason = Reason(code=ReasonCode.UNDERUSED, message="its GPUs were used less")
    change = over(steps.stopped_by_rule(training(), reason, requeues=False))
    assert (change.after.state, change.after.reason) == (S.STOPPED, reason)
    assert change.ended is not None
    assert "idle" not in change.ended.bill.by


# ---- interruptions


def test_an_interruption_is_written_to_the_attempt_with_what_it_trained_until_then() -> None:
    interval = TrainingInterval(since=NOON + minutes(10), until=NOON + minutes(30))
    news = seen(
        secondary="Interrupted",
        training_since=interval.since,
        interruptions=1,
        training_intervals=(interval,),
    )
    change = observed(training(), news, now=NOON + minutes(31))
    assert change is not None
    assert change.after.state is S.RUNNING, "the slot is kept"
    assert change.after.live is not None
    assert (change.after.live.spot.interruptions, change.after.live.trained) == (1, minutes(20))


def test_time_in_training_alone_is_no_news() -> None:
    news = seen(training_since=NOON, training_intervals=(TrainingInterval(since=NOON, until=None),))
    first = observed(live_job(), news, now=NOON + minutes(1))
    assert first is not None
    assert observed(first.after, news, now=NOON + minutes(9)) is None


def test_interruptions_are_neither_trained_nor_safe_in_a_checkpoint() -> None:
    training_intervals = (
        TrainingInterval(since=NOON + minutes(10), until=NOON + minutes(20)),
        TrainingInterval(since=NOON + minutes(40), until=None),
    )
    change = over(
        training(S.PREEMPTING, last_checkpoint=NOON + minutes(45)),
        training_since=NOON + minutes(10),
        training_intervals=training_intervals,
        interruptions=1,
    )
    assert change.ended is not None
    assert (change.ended.trained, change.ended.spot.interruptions) == (minutes(30), 1)
    assert (change.after.checkpointed, change.after.spent.wasted) == (minutes(15), {"preemption": 15 * 60})


def test_what_spot_saved_is_what_it_was_billed_less_for_the_time_its_instances_were_there() -> None:
    spot = training(S.PREEMPTING, shape=Shape(vector=of(spot=True)))
    change = over(spot, up=minutes(55), billable=minutes(15))
    assert change.ended is not None
    assert (change.ended.bill.cents, change.ended.bill.saved_cents) == (150, 400)
    on_demand = over(training(S.PREEMPTING), up=minutes(55), billable=minutes(15)).ended
    assert on_demand is not None
    assert on_demand.bill.saved_cents == 0
