"""What a preemption is worth, in numbers that can be worked out by hand."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.recent_stops import RecentStops
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.expected_ends import ExpectedEnds
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.preemption import Chosen, Preemptor
from trainmaster.core.planning.preemption_cost import PreemptionPrices
from trainmaster.core.planning.preemption_worth import price_refusal
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
from trainmaster.core.planning.start_records import StartLesson, StartRecords
from trainmaster.core.policy import PoolPolicy, PreemptionCost

from tests.builders import NOON, A, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, quota, shared, told

COST = PreemptionCost(enabled=True, lost_work=3, longest_wait=None)
"""An hour of lost work as three, and no bound of the wait: what is worked out below."""


def at(minute: float) -> Any:
    return NOON + minutes(minute)


def known(name: str, **fields: Any) -> RunningJob:
    """One that runs, of a kind that is expected to train four hours."""
    return running(name, **{"predicted": minutes(240)} | fields)


def stopped(*live: RunningJob, by: WaitingJob, cost: PreemptionCost = COST, **rules: Any) -> tuple[str, ...]:
    held = sum(sum(job.vector.values()) for job in live)
    steps = decided(snapshot(*live, by), held, cost=cost, **rules)
    return tuple(name for step in steps for name in step[2:])


def with_cost(rules: PoolPolicy, **cost: Any) -> PoolPolicy:
    return replace(rules, preemption=replace(rules.preemption, cost=replace(COST, **cost)))


# An equal priority doubles: 100 points of gap make an hour of the preemptor count 3 x 2 hours of the victim.
# The victim trains an hour without a checkpoint and started at once: 3 x 1 / (1 + 1/24) = 2.88 hours lost,
# 0.117 for its restart (5 minutes and 2 to stop), and the wait that the preemptor has now.


@pytest.mark.parametrize(
    ("victim", "preemptor", "expected"),
    [
        pytest.param(
            known("r", minutes_ago=60, ends_by=at(36.5)),
            waiting("w", priority=100),
            ("r",),
            id="6 x 0.61 h spared, 2.997 + 0.61 h lost",
        ),
        pytest.param(
            known("r", minutes_ago=60, ends_by=at(35)),
            waiting("w", priority=100),
            (),
            id="6 x 0.583 h spared, 2.997 + 0.583 h lost",
        ),
        pytest.param(
            known("r", minutes_ago=60, ends_by=at(35)),
            waiting("w", priority=100, minutes_ago=2),
            ("r",),
            id="the wait so far counts too",
        ),
        pytest.param(
            known("r", minutes_ago=60, ends_by=at(35)),
            waiting("w", priority=200),
            ("r",),
            id="a more urgent class",
        ),
        pytest.param(
            known("r", minutes_ago=60, last_checkpoint=at(-11), ends_by=at(10)),
            waiting("w", priority=100),
            ("r",),
            id="a job that has just saved loses little",
        ),
        pytest.param(
            known("r", minutes_ago=60, ends_by=at(35), n=2),
            waiting("w", priority=150),
            (),
            id="each of its instances loses the work",
        ),
        pytest.param(
            known("r", minutes_ago=60, ends_by=at(36), n=2),
            waiting("w", priority=100, n=2, minutes_ago=2),
            ("r",),
            id="and each of the preemptor's waits",
        ),
        pytest.param(
            known("r", minutes_ago=600, ends_by=at(35)),
            waiting("w", priority=300),
            (),
            id="ten hours of work for 24 x 0.58 h",
        ),
        pytest.param(
            known("r", minutes_ago=20, training_since=None, ends_by=at(45)),
            waiting("w", priority=1),
            ("r",),
            id="before Training there is little to lose",
        ),
    ],
)
def test_a_preemption_is_carried_out_if_it_spares_more_than_it_costs(
    victim: RunningJob, preemptor: WaitingJob, expected: tuple[str, ...]
) -> None:
    assert stopped(victim, by=preemptor) == expected


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        pytest.param({}, (), id="as they are"),
        pytest.param({"double_every": 50}, ("r",), id="a point of priority counts for more"),
        pytest.param({"lost_work": 1}, ("r",), id="lost work counts for less"),
        pytest.param({"unsaved": minutes(30)}, ("r",), id="unsaved work counts for less"),
        pytest.param({"restart": minutes(0)}, ("r",), id="a restart costs nothing"),
        pytest.param({"small_loss": minutes(59)}, (), id="no less than it loses is small"),
        pytest.param({"small_loss": minutes(60)}, ("r",), id="an hour is small"),
    ],
)
def test_each_key_of_the_price(cost: dict[str, Any], expected: tuple[str, ...]) -> None:
    victim = known("r", minutes_ago=60, ends_by=at(35.5))
    assert stopped(victim, by=waiting("w", priority=100), cost=replace(COST, **cost)) == expected


def test_without_a_price_any_outranked_job_is_stopped() -> None:
    victim, preemptor = known("r", minutes_ago=600, ends_by=at(1)), waiting("w", priority=1)
    assert stopped(victim, by=preemptor) == ()
    assert stopped(victim, by=preemptor, cost=PreemptionCost(enabled=False)) == ("r",)


def test_a_slow_start_is_paid_for_again() -> None:
    fields: dict[str, Any] = {"minutes_ago": 100, "last_checkpoint": at(-12), "ends_by": at(12)}
    quick, slow = (known("r", training_since=at(-100 + start), **fields) for start in (1, 70))
    by = waiting("w", priority=100)
    assert stopped(quick, by=by) == ("r",)
    assert stopped(slow, by=by) == ()


# ---- whom


def test_the_lowest_priority_is_stopped_first_where_it_is_worth_it() -> None:
    """12 x 2.5 h spared for 3.5 h; the other would cost 1.9 h."""
    low = known("low", minutes_ago=60, ends_by=at(30))
    normal = known("normal", priority=100, minutes_ago=60, last_checkpoint=at(-11), ends_by=at(30))
    assert stopped(low, normal, by=waiting("high", priority=200, minutes_ago=120)) == ("low",)


DEAR = known("low", minutes_ago=600, ends_by=at(20))
CHEAP = known("normal", priority=100, minutes_ago=600, last_checkpoint=at(-15), ends_by=at(20))


def test_where_it_is_not_the_cheapest_of_all_priorities_is() -> None:
    """12 x 0.33 h spared: less than the 21.6 h of the low one, more than the 2.4 h of the other."""
    by = waiting("high", priority=200)
    assert stopped(DEAR, CHEAP, by=by) == ("normal",)
    assert stopped(DEAR, CHEAP, by=by, cost=PreemptionCost(enabled=False)) == ("low",)
    assert stopped(DEAR, by=by) == ()


@pytest.mark.parametrize(
    ("waited", "expected"),
    [
        pytest.param(0, "normal", id="for little: the cheapest"),
        pytest.param(300, "low", id="for much: the lowest priority"),
    ],
)
def test_a_preemption_that_was_interrupted_goes_on_with_those_that_it_is_worth(
    waited: int, expected: str
) -> None:
    by = waiting("high", priority=200, minutes_ago=waited, n=2)
    asked = known(
        "asked",
        priority=100,
        state=JobState.PREEMPTING,
        preempted_for="high",
        stop_sent=True,
        ends_by=at(20),
        minutes_ago=600,
    )
    held = PreemptionReservation(preemptor="high", vector=of(2), missing=of(1))
    world = snapshot(asked, DEAR, CHEAP, by, holds=(held,))
    assert decided(world, with_cost(pool(3))) == [("preempt for", "high", expected)]


def test_no_job_is_stopped_for_one_that_it_outranks_however_cheap_it_is() -> None:
    assert stopped(DEAR, replace(CHEAP, priority=200), by=waiting("high", priority=200)) == ()


def test_where_none_is_worth_it_the_reason_is_that_of_the_cheapest() -> None:
    soon = (replace(one, expected=replace(one.expected, ends_by=at(3))) for one in (DEAR, CHEAP))
    code, message = told(snapshot(*soon, waiting("high", priority=200)), with_cost(pool(2)), "high")
    assert code == "capacity"
    assert "; stopping normal would lose 0.2 h of work for 0.1 h of your wait: not worth it until" in message


def test_of_equal_losses_the_lower_priority() -> None:
    low, normal = (
        known(name, priority=priority, last_checkpoint=at(-1))
        for name, priority in (("low", 0), ("normal", 100))
    )
    assert stopped(low, normal, by=waiting("high", priority=200)) == ("low",)


def test_the_bounds_hold_whatever_it_would_be_worth() -> None:
    by = waiting("w", priority=900, minutes_ago=600)
    assert stopped(known("r", priority=900), by=by) == ()
    assert stopped(known("r", preemptible=False), by=by) == ()
    assert stopped(known("r", has_checkpoint=False), by=by, needs_checkpoint=True) == ()
    assert stopped(known("r", preemptions=3), by=by, max_per_job=3) == ()
    assert stopped(known("r", minutes_ago=5), by=by, min_runtime=minutes(10)) == ()


# ---- what is never asked


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        pytest.param((5,), ("r0",), id="five minutes"),
        pytest.param((5.1,), (), id="more than that"),
        pytest.param((5, 4), ("r1", "r0"), id="five minutes of each"),
        pytest.param((5, 60), (), id="more of one of them"),
    ],
)
def test_small_losses_are_free(lost: tuple[float, ...], expected: tuple[str, ...]) -> None:
    """The preemptor would wait a minute, and is hardly more urgent."""
    live = [
        known(f"r{n}", minutes_ago=600, last_checkpoint=at(-one), ends_by=at(1)) for n, one in enumerate(lost)
    ]
    assert stopped(*live, by=waiting("w", priority=1, n=len(live))) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, (), id="a first attempt that trained for four minutes"),
        pytest.param({"training_since": None}, (), id="one that has not trained yet"),
        pytest.param({"training_since": at(-5)}, ("r",), id="one that trained for five"),
        pytest.param({"training_since": at(-5), "preemptions": 9}, ("r",), id="a restart that did"),
        pytest.param({"stops": (1, 60), "training_since": at(-14)}, (), id="stopped an hour ago"),
        pytest.param({"stops": (1, 60), "training_since": at(-15)}, ("r",), id="it trained for 15 since"),
        pytest.param({"stops": (3, 60), "training_since": at(-59)}, (), id="the third time within a day"),
        pytest.param({"stops": (3, 60), "training_since": at(-60)}, ("r",), id="it trained an hour since"),
        pytest.param({"stops": (9, 60), "training_since": at(-1439)}, (), id="nine times: it trains a day"),
        pytest.param({"stops": (9, 1441), "training_since": at(-14)}, ("r",), id="a day ago: forgotten"),
    ],
)
def test_what_a_start_loses_that_comes_to_nothing_is_never_small(
    fields: dict[str, Any], expected: tuple[str, ...]
) -> None:
    """I16: the preemptor would wait a minute, and is hardly more urgent."""
    stops = fields.pop("stops", None)
    if stops is not None:
        fields["stops"] = RecentStops(count=stops[0], at=at(-stops[1]))
    values: dict[str, Any] = {"minutes_ago": 1500, "training_since": at(-4), "last_checkpoint": at(-1)}
    assert stopped(known("r", **values | fields, ends_by=at(1)), by=waiting("w", priority=9)) == expected


PRICES = PreemptionPrices(rules=COST, ends=ExpectedEnds(running=(), now=NOON), now=NOON)


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        pytest.param({"training_since": at(-10)}, 10 + 2, id="settled: what its start took, and its stop"),
        pytest.param({"training_since": None}, 5 + 2 + 20 + 40, id="not trained: its start-up is in vain"),
        pytest.param({"training_since": at(-4)}, 16 + 2 + 16 + 40, id="trained for four minutes: likewise"),
        pytest.param({"training_since": None, "preemptions": 1}, 20 + 2 + 20 + 40, id="a restart"),
        pytest.param(
            {"training_since": at(-10), "stops": RecentStops(count=1, at=at(-60), lost=minutes(7))},
            10 + 2 + 7 + 480,
            id="stopped again: with what the last stop lost",
        ),
    ],
)
def test_a_stop_costs_what_comes_to_nothing_by_it(fields: dict[str, Any], cost: float) -> None:
    job = running("r", minutes_ago=20, last_checkpoint=NOON, priority=0, **fields)
    assert replace(PRICES).of_stop(job) == pytest.approx(cost / 60)


def test_one_that_has_begun_to_be_worth_it_is_stopped_before_one_that_only_starts() -> None:
    begins = known("begins", minutes_ago=1, training_since=None)
    settled = known("settled", minutes_ago=60, last_checkpoint=at(-5))
    assert stopped(begins, settled, by=waiting("w", priority=100)) == ("settled",)


def test_a_start_that_has_taken_longer_than_a_small_loss_has_its_price() -> None:
    begins = known("r", minutes_ago=6, training_since=None, has_checkpoint=False, ends_by=at(1))
    message = told(snapshot(begins, waiting("w", priority=1)), with_cost(pool(1)), "w")[1]
    lost = "0.0 h of work and a start that has trained for less than 5 minutes"
    assert f"; stopping r would lose {lost} for 0.0 h of your wait: not worth it until" in message


@pytest.mark.parametrize(
    ("trained", "lost"),
    [
        pytest.param(16, "0.0 h of work", id="protected no more"),
        pytest.param(14, "0.0 h of work, once more within a day,", id="protected"),
        pytest.param(
            4,
            "0.0 h of work and a start that has trained for less than 5 minutes, once more within a day,",
            id="and hardly begun",
        ),
    ],
)
def test_the_reason_says_what_else_is_lost_beside_work(trained: int, lost: str) -> None:
    stops = RecentStops(count=1, at=at(-60), lost=minutes(600))
    victim = known(
        "r", minutes_ago=20, training_since=at(-trained), last_checkpoint=at(-1), stops=stops, ends_by=at(1)
    )
    rules = with_cost(pool(1), small_loss=minutes(0), lost_work=1, restart=minutes(500))
    message = told(snapshot(victim, waiting("w", priority=1)), rules, "w")[1]
    assert f"; stopping r would lose {lost} for 0.0 h of your wait: not worth it" in message


BEGINS = known("r", minutes_ago=1, training_since=None, has_checkpoint=False, ends_by=at(1))


def test_a_first_stop_that_wastes_a_short_start_is_a_small_loss() -> None:
    """An urgent job does not wait for a price if a job began a minute before it, and was never stopped."""
    world = snapshot(BEGINS, waiting("w", priority=1))
    assert decided(world, with_cost(pool(1))) == [("preempt for", "w", "r")]


@pytest.mark.parametrize(
    ("minutes_ago", "expected"),
    [
        pytest.param(60, [], id="within the day"),
        pytest.param(1440, [], id="a day ago"),
        pytest.param(1441, [("preempt for", "w", "r")], id="forgotten"),
    ],
)
def test_it_is_none_while_a_job_runs_that_was_stopped_within_the_last_day(
    minutes_ago: int, expected: list[tuple[str, ...]]
) -> None:
    """A pool that stops jobs all day would start many of them in vain, each once."""
    stops = RecentStops(count=1, at=at(-minutes_ago))
    world = snapshot(BEGINS, known("other", priority=900, stops=stops), waiting("w", priority=1))
    assert decided(world, with_cost(pool(2))) == expected


def test_the_most_urgent_job_waits_for_one_that_has_just_begun_no_longer_than_its_bound() -> None:
    other = known("other", stops=RecentStops(count=1, at=at(-60)))
    for waited, expected in ((1.9, []), (2, [("preempt for", "w", "r")])):
        by = waiting("w", priority=1, minutes_ago=waited)
        rules = with_cost(pool(2), longest_wait=minutes(2))
        assert decided(snapshot(BEGINS, other, by), rules) == expected


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param((), ("r",), id="nothing is known of any"),
        pytest.param((known("o", priority=900),), (), id="one is known that holds the same type"),
        pytest.param(
            (known("o", priority=900, vector=of(1, B)),), ("r",), id="only one that holds another type"
        ),
    ],
)
def test_as_long_as_no_length_is_known_every_preemption_is_worth_it(
    others: tuple[RunningJob, ...], expected: tuple[str, ...]
) -> None:
    """Ten hours are lost for a wait of a minute."""
    unknown = running("r", minutes_ago=600, ends_by=at(1))
    world = snapshot(unknown, *others, waiting("w", priority=1))
    rules = with_cost(pool(1 + sum(one.vector == of(1) for one in others), b=1))
    assert [name for step in decided(world, rules) for name in step[2:]] == list(expected)


def test_job4_of_the_four_stops_job1_in_the_first_plan() -> None:
    """Of a fresh stack, with the defaults: job1 has trained for 45 minutes, and saved nothing."""
    live = (
        running("job1", priority=1, minutes_ago=45, has_checkpoint=False),
        running("job2", priority=2, minutes_ago=45, has_checkpoint=False),
    )
    world = snapshot(*live, waiting("job3", priority=1), waiting("job4", priority=3))
    assert pool(2).preemption.cost.enabled
    assert decided(world, pool(2)) == [("preempt for", "job4", "job1")]


# ---- a bound of the wait

BOUND = replace(COST, longest_wait=minutes(10))
HOURS_LOST = known("r", minutes_ago=600, ends_by=at(1))


@pytest.mark.parametrize(
    ("others", "fields", "expected"),
    [
        pytest.param((), {"minutes_ago": 9}, (), id="it has not waited so long"),
        pytest.param((), {"minutes_ago": 10}, ("r",), id="it has"),
        pytest.param((), {"minutes_ago": 30, "trained": minutes(25)}, (), id="most of that it trained"),
        pytest.param((known("o", priority=100),), {"minutes_ago": 10}, ("r",), id="an equal one runs"),
        pytest.param((known("o", priority=101),), {"minutes_ago": 10}, (), id="a more urgent one runs"),
    ],
)
def test_one_of_the_highest_priority_asks_no_price_after_its_longest_wait(
    others: tuple[RunningJob, ...], fields: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert stopped(HOURS_LOST, *others, by=waiting("w", priority=100, **fields), cost=BOUND) == expected


def test_a_more_urgent_one_that_waits_is_the_highest() -> None:
    late, urgent = waiting("late", priority=100, minutes_ago=60), waiting("urgent", priority=101, n=9)
    rules = with_cost(pool(1), longest_wait=minutes(10))
    assert decided(snapshot(HOURS_LOST, late), rules) == [("preempt for", "late", "r")]
    assert decided(snapshot(HOURS_LOST, late, urgent), rules) == []


def test_who_asks_no_price_stops_the_cheapest_whatever_its_priority() -> None:
    low = known("low", minutes_ago=600, ends_by=at(1))
    normal = known("normal", priority=100, minutes_ago=600, last_checkpoint=at(-15), ends_by=at(1))
    by = waiting("w", priority=101, minutes_ago=1)
    assert stopped(low, normal, by=by, cost=replace(COST, longest_wait=minutes(0))) == ("normal",)


def test_the_other_bounds_hold_for_one_that_asks_no_price() -> None:
    by, cost = waiting("w", priority=900, minutes_ago=600), replace(COST, longest_wait=minutes(0))
    assert stopped(known("r", preemptible=False), by=by, cost=cost) == ()
    assert stopped(known("r", preemptions=3), by=by, cost=cost, max_per_job=3) == ()


def test_the_reason_names_the_end_of_the_longest_wait_if_that_is_sooner() -> None:
    victim = known("b", minutes_ago=126, ends_by=at(24))
    world = snapshot(victim, waiting("w", priority=100, minutes_ago=0.5))
    for bound, said in ((30, "12:30"), (600, "13:38")):
        message = told(world, with_cost(pool(1), longest_wait=minutes(bound)), "w")[1]
        assert message.endswith(f"not worth it until 2026-11-02 {said} UTC")


# ---- expected waits


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param({"ends_by": at(10)}, (), id="the other is certain to end soon"),
        pytest.param({"predicted": minutes(70)}, (), id="the other is expected to end soon"),
        pytest.param({"predicted": minutes(300)}, ("r",), id="the other is expected to train for long"),
        pytest.param({"predicted": minutes(50)}, ("r",), id="it outlived that: as long again is expected"),
        pytest.param({}, ("r",), id="nothing is known of it"),
    ],
)
def test_what_frees_itself_soon_is_waited_for(other: dict[str, Any], expected: tuple[str, ...]) -> None:
    live = (
        known("r", minutes_ago=60, last_checkpoint=at(-20)),
        known("other", priority=999, minutes_ago=60, **other),
    )
    assert stopped(*live, by=waiting("w", priority=100)) == expected


def test_what_those_ahead_take_of_what_comes_free_is_not_there_for_those_behind() -> None:
    live = (
        known("r", minutes_ago=90, ends_by=at(300)),
        known("soon", priority=999, ends_by=at(10), n=2),
        known("late", priority=999, ends_by=at(200), n=2),
    )
    behind = waiting("behind", priority=100)
    assert decided(snapshot(*live, behind), with_cost(pool(5))) == []
    ahead = waiting("ahead", priority=150, n=3)
    assert decided(snapshot(*live, ahead, behind), with_cost(pool(5))) == [("preempt for", "behind", "r")]


# ---- reasons


def test_the_reason_says_what_it_would_cost_and_when_it_is_worth_it() -> None:
    victim = known("b", minutes_ago=126, ends_by=at(24))
    world = snapshot(victim, waiting("w", priority=100))
    code, message = told(world, with_cost(pool(1)), "w")
    assert code == "capacity"
    assert message == (
        "needs ml.a.xlarge=1, free ml.a.xlarge=0; stopping b would lose 2.1 h of work for 0.4 h of your wait:"
        " not worth it until 2026-11-02 13:39 UTC"
    )


def test_the_reason_names_no_job_of_another_team_and_counts_the_others() -> None:
    live = (
        known("a", minutes_ago=120, team="vision", ends_by=at(3)),
        known("b", minutes_ago=120, ends_by=at(3)),
    )
    world = snapshot(*live, waiting("w", priority=10, n=2))
    _, message = told(world, with_cost(pool(2)), "w")
    assert "; stopping a job of team vision and 1 more would lose 4.0 h of work for 0.1 h" in message


def test_it_is_worth_it_at_the_minute_that_was_said_and_not_before() -> None:
    victim = known("b", minutes_ago=126, ends_by=at(24))
    world, rules = snapshot(victim, waiting("w", priority=100)), with_cost(pool(1))
    said = at(99)

    def stops(when: Any) -> bool:
        return any(isinstance(one, Preempt) for one in plan(world, rules, now=when).actions)

    assert not stops(said - minutes(2))
    assert stops(said)


def test_those_behind_with_the_same_wish_do_not_overtake_the_one_that_was_refused() -> None:
    victim = known("r", minutes_ago=600, ends_by=at(1))
    world = snapshot(victim, *(waiting(f"w{n}", priority=100, minutes_ago=5 - n) for n in range(3)))
    assert decided(world, with_cost(pool(1))) == []
    assert "not worth it" in told(world, with_cost(pool(1)), "w0")[1]
    assert told(world, with_cost(pool(1)), "w1")[0] == "ahead"


# ---- quotas


def test_who_takes_back_its_quota_weighs_no_less_than_the_borrower() -> None:
    """Three times as much, whatever its priority: in time it is always worth it."""
    borrower = known("v", team="vision", priority=900, minutes_ago=60, ends_by=at(600))
    rules = with_cost(shared(1, {"speech": quota(1)}))
    asks = waiting("s", team="speech", minutes_ago=0)
    assert decided(snapshot(borrower, asks), rules) == [("preempt for", "s", "v")]
    soon = known("v", team="vision", priority=900, minutes_ago=60, ends_by=at(30))
    assert decided(snapshot(soon, asks), rules) == []
    patient = waiting("s", team="speech", minutes_ago=60)
    assert decided(snapshot(soon, patient), rules) == [("preempt for", "s", "v")]


def test_a_second_preemptor_does_not_count_on_what_the_first_is_given() -> None:
    live = (
        known("soon", minutes_ago=60, last_checkpoint=at(-11), ends_by=at(12)),
        known("late", minutes_ago=60, last_checkpoint=at(-16), ends_by=at(600)),
    )
    both: Snapshot = snapshot(*live, waiting("x", priority=200, minutes_ago=9), waiting("y", priority=200))
    steps = decided(both, with_cost(pool(2)))
    assert steps == [("preempt for", "x", "soon"), ("preempt for", "y", "late")]


def test_a_wait_is_the_time_that_a_job_did_not_train() -> None:
    victim = known("r", minutes_ago=60, ends_by=at(30))
    fresh = waiting("w", priority=100, minutes_ago=600, trained=timedelta(minutes=599))
    assert stopped(victim, by=fresh) == ()
    assert stopped(victim, by=waiting("w", priority=100, minutes_ago=600)) == ("r",)


def short_of(*, bad: int, instance_type: str = A) -> StartRecords:
    records = StartRecords()
    for _ in range(bad):
        vector = of(1, instance_type=instance_type)
        records = records.after(StartLesson(vector=vector, trained=False, at=NOON.replace(hour=0)))
    return records


@pytest.mark.parametrize(
    ("bad", "minutes_lost"),
    [
        pytest.param(0, 0, id="none known"),
        pytest.param(1, 15, id="chance 1/3: half a failed start before one that trains"),
        pytest.param(6, 90, id="chance 3/4: three of them"),
    ],
)
def test_a_stop_costs_the_starts_that_are_expected_to_find_no_instances(bad: int, minutes_lost: int) -> None:
    job = running("r", minutes_ago=20, training_since=at(-10), last_checkpoint=NOON, priority=0)
    prices = replace(PRICES, start_records=short_of(bad=bad))
    assert prices.of_stop(job) == pytest.approx((10 + 2 + minutes_lost) / 60, rel=1e-3)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param(short_of(bad=0), ("r",), id="none known: a small loss"),
        pytest.param(short_of(bad=6, instance_type=B), ("r",), id="another type is scarce"),
        pytest.param(short_of(bad=6), (), id="the type is scarce: it may not get its place back"),
    ],
)
def test_no_loss_is_small_where_the_place_may_be_lost(
    records: StartRecords, expected: tuple[str, ...]
) -> None:
    """The preemptor would wait a minute."""
    victim = known("r", minutes_ago=60, last_checkpoint=at(-1), ends_by=at(1))
    world = replace(snapshot(victim, waiting("w", priority=9)), start_records=records)
    steps = decided(world, with_cost(pool(1)))
    assert tuple(name for step in steps for name in step[2:]) == expected


def test_what_the_preemptor_may_not_get_spares_less() -> None:
    """1/3 of its starts would find no instances: 6 x 0.61 h spared are 2.44, less than is lost."""
    victim = known("r", minutes_ago=60, ends_by=at(36.5))
    preemptor = Preemptor(job=waiting("w", priority=100), shape=waiting("w").shapes[0], tier=0)
    chosen = Chosen(victims=(victim,), short=of(1))
    known_ends = replace(PRICES, ends=ExpectedEnds(running=(victim,), now=NOON))
    scarce = replace(known_ends, start_records=short_of(bad=1))
    sure, unsure = (
        price_refusal(prices, preemptor, chosen, reclaims=False) for prices in (known_ends, scarce)
    )
    assert sure is None
    assert unsure is not None
    assert unsure.quote.is_served == pytest.approx(2 / 3, rel=1e-3)
