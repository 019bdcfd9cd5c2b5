"""When a job leaves spot, and whether it can."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.costs.spot_record import SpotRecord
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation, TrainingInterval
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import settlement, spot_fallback
from trainmaster.core.lifecycle.decision import End
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.governance import Fallback, Governing, Spot

from tests.builders import NOON, A, attempt, live_job, minutes, of, seen
from tests.ends import end_of

S = JobState
SPOT = Shape(vector=of(spot=True))
WAITED = {"status": "Stopped", "secondary": "MaxWaitTimeExceeded"}
FALLBACK = Reason(code=ReasonCode.SPOT_FALLBACK, message="why")


def policy(spot: Spot | None = None, *, on_demand: int = 1) -> Policy:
    pool = PoolPolicy(name="main", capacity={A: on_demand}, spot_capacity={A: 4})
    governing = Governing(spot=spot or Spot())
    return Policy(pools=(pool,), teams=(), admins=(), warnings=(), source={}, governing=governing)


def spot_job(*, state: JobState = S.RUNNING, live: dict[str, Any] | None = None, **fields: Any) -> Job:
    """Claimed at noon, trains since ten past."""
    values: dict[str, Any] = {"shape": SPOT, "training_since": NOON + minutes(10)}
    one = attempt(**values | (live or {}))
    whole: dict[str, Any] = {"shapes": (SPOT,), "max_wait": timedelta(hours=9), "live": one}
    return live_job(state=state, **whole | fields)


def news(interruptions: int = 1, *, trained: float = 100, **fields: Any) -> Observation:
    """One interval of so many minutes of Training, from ten past on."""
    since = NOON + minutes(10)
    interval = TrainingInterval(since=since, until=since + minutes(trained))
    return seen(interruptions=interruptions, training_since=since, training_intervals=(interval,), **fields)


TWO_HOURS = NOON + minutes(120)


@pytest.mark.parametrize(
    ("job", "concerned"),
    [
        pytest.param(spot_job(), False, id="never interrupted"),
        pytest.param(spot_job(live={"interruptions": 1}), True, id="interrupted in this attempt"),
        pytest.param(spot_job(interruptions=1), True, id="in one before"),
        pytest.param(
            spot_job(state=S.PREEMPTING, interruptions=9), False, id="asked to stop already: its end decides"
        ),
        pytest.param(
            spot_job(live={"interruptions": 9, "stays_on_spot": FALLBACK}),
            True,
            id="could not leave: a later policy may have room for it",
        ),
        pytest.param(
            spot_job(live={"interruptions": 9}, on_demand=True),
            False,
            id="moved before, and put on spot by its team's budget",
        ),
        pytest.param(live_job(live=attempt(interruptions=9)), False, id="not on spot"),
    ],
)
def test_whom_the_rules_concern_while_he_runs(job: Job, *, concerned: bool) -> None:
    assert spot_fallback.concern(job) is concerned


@pytest.mark.parametrize(
    ("job", "said", "why"),
    [
        pytest.param(spot_job(), news(3), None, id="three interruptions are borne"),
        pytest.param(
            spot_job(), news(4), "interrupted 4 times on spot, more than 3", id="the fourth is one too many"
        ),
        pytest.param(
            spot_job(interruptions=2),
            news(2),
            "interrupted 4 times on spot, more than 3",
            id="over all its attempts",
        ),
        pytest.param(spot_job(), news(trained=60), None, id="half of the time in training is enough"),
        pytest.param(
            spot_job(),
            news(trained=59),
            "in training for 49 % of its time on spot after an interruption, less than 50 %",
            id="less than half is not",
        ),
        pytest.param(
            spot_job(), news(0, trained=1), None, id="without an interruption it only starts slowly"
        ),
        pytest.param(
            spot_job(spot_trained=minutes(30), spot_elapsed=minutes(40)),
            news(trained=50),
            None,
            id="progress of attempts before counts",
        ),
        pytest.param(
            spot_job(interruptions=1, spot_trained=minutes(10), spot_elapsed=minutes(40)),
            news(0, trained=60),
            "in training for 43 % of its time on spot after an interruption, less than 50 %",
            id="and so does what they lost",
        ),
    ],
)
def test_when_it_has_had_enough(job: Job, said: Observation, why: str | None) -> None:
    found = spot_fallback.verdict(job, said, policy(), now=TWO_HOURS)
    assert (found.why if found else None) == why


def test_progress_is_not_judged_in_the_first_hour() -> None:
    little = news(trained=1)
    assert spot_fallback.verdict(spot_job(), little, policy(), now=NOON + minutes(59)) is None
    assert spot_fallback.verdict(spot_job(), little, policy(), now=NOON + minutes(60)) is not None


def test_the_policy_says_how_much_is_borne() -> None:
    patient = policy(Spot(max_interruptions=9, min_progress_ratio=0))
    assert spot_fallback.verdict(spot_job(), news(9, trained=0), patient, now=TWO_HOURS) is None
    strict = policy(Spot(max_interruptions=0))
    assert spot_fallback.verdict(spot_job(), news(1), strict, now=TWO_HOURS) is not None


@pytest.mark.parametrize(
    ("job", "rules", "stays"),
    [
        pytest.param(spot_job(), policy(), None, id="it leaves"),
        pytest.param(
            spot_job(), policy(Spot(fallback=Fallback.NONE)), "no-fallback", id="the policy moves nobody"
        ),
        pytest.param(
            spot_job(), policy(on_demand=0), "no-on-demand-capacity", id="the pool has none of its type"
        ),
        pytest.param(
            spot_job(shapes=(Shape(vector=of(2, spot=True)),)),
            policy(),
            "no-on-demand-capacity",
            id="or not enough",
        ),
        pytest.param(
            spot_job(shapes=(Shape(vector=of(2, spot=True)), SPOT)),
            policy(),
            None,
            id="one of its shapes is enough",
        ),
        pytest.param(spot_job(pool="-"), policy(on_demand=0), None, id="no pool, no capacity to keep to"),
    ],
)
def test_whether_it_can_leave(job: Job, rules: Policy, stays: str | None) -> None:
    found = spot_fallback.verdict(job, news(4), rules, now=TWO_HOURS)
    assert found is not None
    assert (found.stays.code if found.stays else None) == stays


def after_end(job: Job, said: Observation, rules: Policy) -> End:
    end = end_of(job, said, policy=rules, now=TWO_HOURS)
    assert end is not None
    return end


@pytest.mark.parametrize(
    ("job", "said", "becomes", "code", "moves"),
    [
        pytest.param(spot_job(), seen(**WAITED), S.PENDING, "spot-fallback", True, id="waited too long"),
        pytest.param(
            spot_job(state=S.PREEMPTING),
            seen(**WAITED),
            S.PENDING,
            "spot-fallback",
            True,
            id="waited too long while it was preempted",
        ),
        pytest.param(
            spot_job(state=S.STOPPING, reason=Reason(code=ReasonCode.STOPPED_BY_USER, message="")),
            seen(**WAITED),
            S.STOPPED,
            "stopped-by-user",
            False,
            id="a user's stop is final",
        ),
        pytest.param(
            spot_job(on_demand=True),
            seen(**WAITED),
            S.STOPPED,
            "max-wait",
            False,
            id="moved before: then MaxWait is the end",
        ),
        pytest.param(
            spot_job(state=S.PREEMPTING, reason=FALLBACK),
            seen(status="Stopped", secondary="Stopped"),
            S.PREEMPTED,
            "spot-fallback",
            True,
            id="stopped because it had enough",
        ),
        pytest.param(
            spot_job(state=S.PREEMPTING, reason=FALLBACK),
            seen(status="Failed", secondary="Failed", failure_reason="CapacityError: none"),
            S.PENDING,
            "capacity",
            True,
            id="no instances while it was stopped for that",
        ),
        pytest.param(
            spot_job(state=S.PREEMPTING),
            news(4, status="Stopped", secondary="Stopped"),
            S.PREEMPTED,
            "preemption",
            True,
            id="made room, and had enough",
        ),
        pytest.param(
            spot_job(state=S.PREEMPTING),
            news(3, status="Stopped", secondary="Stopped"),
            S.PREEMPTED,
            "preemption",
            False,
            id="made room, and gets on",
        ),
        pytest.param(
            spot_job(),
            news(4, status="Completed", secondary="Completed"),
            S.COMPLETED,
            "completed",
            False,
            id="completed anyway",
        ),
        pytest.param(
            live_job(state=S.PREEMPTING),
            seen(interruptions=9, status="Stopped", secondary="Stopped"),
            S.PREEMPTED,
            "preemption",
            False,
            id="not on spot",
        ),
    ],
)
def test_what_the_rules_make_of_an_end(
    job: Job, said: Observation, becomes: JobState, code: str, *, moves: bool
) -> None:
    end = after_end(job, said, policy())
    assert (end.becomes, end.reason.code, end.moves) == (becomes, code, moves)


@pytest.mark.parametrize("rules", [policy(Spot(fallback=Fallback.NONE)), policy(on_demand=0)])
def test_what_has_to_stay_on_spot_is_stopped_when_it_has_waited_too_long(rules: Policy) -> None:
    end = after_end(spot_job(), seen(**WAITED), rules)
    assert (end.becomes, end.reason.code, end.moves) == (S.STOPPED, "max-wait", False)


def test_an_end_that_moves_the_job_for_another_reason_says_both() -> None:
    reason = Reason(code=ReasonCode.PREEMPTION, message="made room for x")
    made_room = spot_job(state=S.PREEMPTING, reason=reason)
    end = after_end(made_room, news(4, status="Stopped", secondary="Stopped"), policy())
    assert end.reason.message == (
        "made room for x; interrupted 4 times on spot, more than 3, so it is requeued on demand"
    )


def test_who_leaves_spot_comes_back_with_the_next_attempt_at_once_and_the_preemption_is_not_counted() -> None:
    asked = spot_job(state=S.PREEMPTING, reason=FALLBACK)
    said = news(4, status="Stopped", secondary="Stopped", ended_at=TWO_HOURS)
    after = settlement.settled(asked, after_end(asked, said, policy()), said, now=TWO_HOURS).after
    assert (after.state, after.attempt, after.preemptions, after.not_before) == (S.PREEMPTED, 1, 0, None)
    assert (after.spot.left, after.shapes, after.max_wait) == (True, (Shape(vector=of()),), None)
    entry = waiting_entry(after)
    assert (entry.shapes, entry.max_wait, entry.left_spot) == ((Shape(vector=of()),), None, True)
    assert (after.spot.interruptions, after.spot.trained, after.spot.elapsed) == (
        4,
        minutes(100),
        minutes(120),
    )


def test_who_waited_too_long_is_pending_at_once() -> None:
    said = seen(**WAITED, ended_at=TWO_HOURS)
    one = spot_job(has_checkpoint=False)
    after = settlement.settled(one, after_end(one, said, policy()), said, now=TWO_HOURS).after
    assert (after.state, after.attempt, after.not_before, after.spot.left) == (S.PENDING, 1, None, True)
    assert after.spent.wasted == {"spot-fallback": 110 * 60}


def test_attempts_on_demand_say_nothing_about_spot() -> None:
    one = live_job(state=S.PREEMPTING, live=attempt(training_since=NOON))
    said = seen(status="Stopped", secondary="Stopped", training_since=NOON, ended_at=TWO_HOURS)
    after = settlement.settled(one, after_end(one, said, policy()), said, now=TWO_HOURS).after
    assert (after.spot.interruptions, after.spot.trained, after.spot.elapsed) == (0, timedelta(), timedelta())


def spoiled(interruptions: float, *, hours: float = 10) -> dict[str, SpotRecord]:
    return {A: SpotRecord(interruptions=interruptions, instance_hours=hours)}


COUNTS_TYPE = Spot(count_type=True)
LONG = timedelta(hours=20)


@pytest.mark.parametrize(
    ("job", "said", "records", "rules", "leaves"),
    [
        pytest.param(
            spot_job(max_runtime=LONG),
            news(2),
            spoiled(10),
            COUNTS_TYPE,
            True,
            id="two of its own and two expected",
        ),
        pytest.param(
            spot_job(max_runtime=LONG),
            news(2),
            spoiled(2),
            COUNTS_TYPE,
            False,
            id="a calm type foretells too few",
        ),
        pytest.param(
            spot_job(max_runtime=LONG),
            news(1),
            spoiled(900),
            COUNTS_TYPE,
            False,
            id="half of the limit at most",
        ),
        pytest.param(
            spot_job(max_runtime=LONG), news(0), spoiled(900), COUNTS_TYPE, False, id="it does well itself"
        ),
        pytest.param(
            spot_job(max_runtime=LONG), news(2), spoiled(10), Spot(), False, id="not without the policy"
        ),
        pytest.param(
            spot_job(max_runtime=LONG), news(2), {}, COUNTS_TYPE, False, id="nothing is known of the type"
        ),
        pytest.param(
            spot_job(max_runtime=LONG),
            news(2),
            spoiled(9, hours=0),
            COUNTS_TYPE,
            False,
            id="no hours, no rate",
        ),
        pytest.param(
            spot_job(interruptions=2, max_runtime=LONG),
            news(0),
            spoiled(2),
            COUNTS_TYPE,
            False,
            id="its own do not count twice",
        ),
        pytest.param(spot_job(), news(2), spoiled(900), COUNTS_TYPE, False, id="no time is left to it"),
        pytest.param(
            spot_job(max_runtime=LONG),
            news(2, trained=100),
            {"ml.other": spoiled(900)[A]},
            COUNTS_TYPE,
            False,
            id="another type",
        ),
    ],
)
def test_the_record_of_the_type_counts_up_to_a_bound(
    job: Job, said: Observation, records: dict[str, SpotRecord], rules: Spot, *, leaves: bool
) -> None:
    left = spot_fallback.verdict(job, said, policy(rules), now=TWO_HOURS, records=records)
    assert (left is not None) is leaves


def test_the_reason_says_what_the_type_foretells() -> None:
    left = spot_fallback.verdict(
        spot_job(max_runtime=LONG), news(2), policy(COUNTS_TYPE), now=TWO_HOURS, records=spoiled(10)
    )
    assert left is not None
    assert left.why == (
        "interrupted 2 times on spot, and 2.0 more are to be expected by the record of its instance type, "
        "together more than 3"
    )


def test_an_end_is_judged_by_the_record_too() -> None:
    ended = spot_fallback.Ended(seen=news(2), until=TWO_HOURS, records=spoiled(10))
    preempted = Reason(code=ReasonCode.PREEMPTION, message="made room")
    moved = spot_fallback.at_end(spot_job(max_runtime=LONG), ended, preempted, policy(COUNTS_TYPE))
    assert moved is not None
    assert "record of its instance type" in moved.message
    assert spot_fallback.at_end(spot_job(max_runtime=LONG), ended, preempted, policy()) is None
