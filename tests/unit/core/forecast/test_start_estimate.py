"""Start estimates: a pool whose future is nearly certain gives a narrow answer, and the right one."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.durations.histogram import bucket
from trainmaster.core.forecast import forecast, queue_estimate
from trainmaster.core.forecast.queue_estimate import WholeQueue, estimate_queue
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.forecast.start_estimate import StartEstimate, band
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Plan
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob, WarmPool
from trainmaster.core.policy import Order, PoolPolicy, Preemption, Quota

from tests.builders import NOON, A, minutes, of, pool, running, snapshot, waiting

DAY = bucket(timedelta(days=1))
NO_PREEMPTION = Preemption(enabled=False)


def history(
    *lengths: float, team: str = "default", n: int = 1, **fields: Any
) -> dict[tuple[str, str], RunTimes]:
    """Run times in minutes, of one lane and jobs with a limit of a day."""
    counts = Counter(bucket(minutes(length)) for length in lengths)
    last = minutes(lengths[-1])
    values: dict[str, Any] = {"since": NOON - timedelta(days=10), "counts": {DAY: counts}}
    return {(team, f"{A}={n}"): RunTimes(last=last, previous=last, **values | fields)}


def warm_pool(left: timedelta) -> WarmPool:
    return WarmPool(
        training_job_name="gone",
        team="default",
        vector=of(),
        warm_key="key",
        since=NOON - minutes(5),
        expires_at=NOON + left,
    )


def question(*jobs: WaitingJob | RunningJob, asks: WaitingJob, **fields: Any) -> WholeQueue:
    """The queue with the job that asks at its end; something ended just now, so all is as of noon."""
    ahead = (job for job in jobs if isinstance(job, WaitingJob))
    values: dict[str, Any] = {
        "snapshot": snapshot(*jobs),
        "waiting": (*ahead, asks),
        "pool": pool(1),
        "run_times": history(*[60.0] * 50),
        "now": NOON,
    }
    values |= fields
    return WholeQueue(**values | {"snapshot": replace(values["snapshot"], last_end={A: NOON})})


def estimate(asked: WholeQueue) -> StartEstimate | None:
    return estimate_queue(asked).by_job.get(asked.waiting[-1].name)


def in_minutes(at: datetime) -> float:
    return (at - NOON) / timedelta(minutes=1)


def middle(asked: WholeQueue) -> float:
    found = estimate(asked)
    assert found is not None
    return in_minutes(found.p50)


def test_a_job_that_fits_starts_at_once_or_a_pass_later() -> None:
    found = estimate(question(asks=waiting("mine")))
    assert found is not None
    assert in_minutes(found.p50) == pytest.approx(1)
    assert in_minutes(found.p90) == pytest.approx(2.6, abs=0.1)


def test_a_job_waits_for_what_is_left_of_the_one_that_runs() -> None:
    # Jobs of the lane train 53 to 75 minutes (one bucket); 30 of them are over.
    asked = question(running("first", minutes_ago=30), asks=waiting("mine"))
    assert 24 <= middle(asked) <= 45


def test_a_job_waits_for_those_ahead_too() -> None:
    alone = question(running("first", minutes_ago=30), asks=waiting("mine"))
    behind = question(
        running("first", minutes_ago=30), waiting("second", minutes_ago=5), asks=waiting("mine")
    )
    assert middle(behind) - middle(alone) == pytest.approx(66, abs=15)


def test_a_job_that_preempts_waits_for_its_victim_to_stop() -> None:
    asked = question(running("low", minutes_ago=30), asks=waiting("high", priority=9))
    assert 2 <= middle(asked) <= 3


@pytest.mark.parametrize(
    ("until", "least"),
    [pytest.param(60, 60, id="its wait is ahead"), pytest.param(0, 2, id="its wait is over")],
)
def test_a_job_whose_preemptions_did_not_help_waits_to_preempt_again(until: float, least: float) -> None:
    """What runs trains for a day: it would not end before."""
    futile = FutilePreemptions(count=2, vector=of(), since=NOON - minutes(1), until=NOON + minutes(until))
    asked = question(
        running("low", minutes_ago=30),
        asks=waiting("high", priority=9, futile=futile),
        run_times=history(*[1440.0] * 50),
    )
    assert least <= middle(asked) <= least + 4


def test_jobs_yet_to_come_that_go_first_put_the_start_off() -> None:
    """Two hours of work of a higher priority arrive every two hours and a half."""
    coming: dict[str, Any] = {"by_month": {"2026-10": {5: 90}, "2026-11": {5: 6}}}
    rules = replace(pool(1), preemption=NO_PREEMPTION, order=Order(aging=None))
    quiet = question(
        running("first", minutes_ago=30), waiting("second"), asks=waiting("~", priority=0), pool=rules
    )
    asks = waiting("mine", score=quiet.waiting[-1].score)
    calm = question(
        running("first"),
        waiting("second", minutes_ago=1),
        asks=asks,
        pool=rules,
        run_times=history(*[120.0] * 50),
    )
    busy = replace(calm, run_times=history(*[120.0] * 50, **coming))
    assert middle(busy) > 1.2 * middle(calm)


def test_who_comes_later_with_less_or_equal_priority_changes_nothing() -> None:
    coming: dict[str, Any] = {"by_month": {"2026-11": {0: 5000}}}
    calm = question(running("first", minutes_ago=30), asks=waiting("mine"))
    busy = replace(calm, run_times=history(*[60.0] * 50, **coming))
    assert estimate(busy) == estimate(calm)


def test_where_more_come_than_can_start_as_many_come_as_can() -> None:
    """Four hours of work of a higher priority come every hour."""
    coming: dict[str, Any] = {"by_month": {"2026-11": {5: 200}}}
    rules = replace(pool(1), preemption=NO_PREEMPTION, order=Order(aging=None))
    asked = question(running("first"), asks=waiting("mine", minutes_ago=5), pool=rules)
    busy = replace(asked, run_times=history(*[60.0] * 50, since=NOON - timedelta(days=2), **coming))
    ahead = tuple(waiting(f"ahead-{number}", priority=5, minutes_ago=60) for number in range(3))
    behind = replace(busy, waiting=(*ahead, *busy.waiting))
    assert 4 * 66 < middle(behind) < 7 * 24 * 60  # after what waits now, and before the horizon


def test_a_job_that_has_outlived_all_others_is_taken_to_go_on() -> None:
    asked = question(running("old", minutes_ago=600), asks=waiting("mine"))
    assert middle(asked) > 60


def test_a_warm_pool_is_as_good_as_free() -> None:
    asked = question(asks=waiting("mine"), snapshot=snapshot(warm=of(), warm_pools=(warm_pool(minutes(9)),)))
    assert estimate(asked) == estimate(question(asks=waiting("mine")))


def test_a_warm_pool_that_is_about_to_end_is_gone_within_a_minute_more() -> None:
    asked = question(
        asks=waiting("mine"), snapshot=snapshot(warm=of(), warm_pools=(warm_pool(minutes(0.5)),))
    )
    assert 1.5 < middle(asked) < 2.5


def test_what_is_stopping_already_is_gone_within_two_minutes() -> None:
    asked = question(running("first", state=JobState.STOPPING, minutes_ago=1), asks=waiting("mine"))
    assert 2 <= middle(asked) <= 3


def test_a_job_that_is_preempted_on_the_way_goes_on_from_its_checkpoint() -> None:
    """It has trained for 50 minutes of about an hour and is stopped for another; both go first."""
    high = waiting("high", priority=9)
    saves = running("low", minutes_ago=50, has_checkpoint=True)
    resumed = question(saves, high, asks=waiting("mine"))
    again = question(replace(saves, has_checkpoint=False), high, asks=waiting("mine"))
    assert middle(again) - middle(resumed) == pytest.approx(35, abs=8)


def test_who_asks_for_more_time_is_taken_to_train_longer() -> None:
    week = bucket(timedelta(days=7))
    known = history(10, counts={DAY: {bucket(minutes(10)): 50}, week: {bucket(timedelta(days=3)): 5}})
    ahead = waiting("ahead", minutes_ago=5, runs_at_most=timedelta(days=7))
    asked = question(running("first", minutes_ago=5), ahead, asks=waiting("mine"), run_times=known)
    assert middle(asked) > 2 * 24 * 60


def test_without_any_history_the_limits_decide() -> None:
    job = running("first", minutes_ago=0, ends_by=NOON + minutes(100) + minutes(10))
    found = estimate(question(job, asks=waiting("mine"), run_times={}))
    assert found is not None
    assert 20 <= in_minutes(found.p50) <= 80


def test_a_paused_pool_gives_no_estimate() -> None:
    asked = question(asks=waiting("mine"), snapshot=Snapshot(paused=True))
    assert estimate(asked) is None


def test_a_job_that_can_never_start_gets_no_estimate() -> None:
    assert estimate(question(running("first"), asks=waiting("mine", n=2))) is None


def test_quotas_are_minded() -> None:
    """The team may not borrow: its second job waits for its first, though an instance is free."""
    rules = PoolPolicy(
        name="main",
        capacity={A: 2},
        quotas={"default": Quota(nominal={A: 1}, borrowing_limit={A: 0})},
    )
    asked = question(running("first", minutes_ago=30), asks=waiting("mine"), pool=rules)
    assert 24 <= middle(asked) <= 45


def test_a_backfilled_job_starts_before_the_one_ahead() -> None:
    job = running("wide", n=3, minutes_ago=10, ends_by=NOON + timedelta(hours=20))
    ahead = waiting("ahead", n=4, minutes_ago=5)
    asked = question(job, ahead, asks=waiting("mine", runs_at_most=minutes(30)), pool=pool(4))
    assert estimate(asked) == estimate(question(asks=waiting("mine")))


def test_a_stopped_job_goes_on_from_its_checkpoint() -> None:
    """It has trained 50 minutes of about an hour: what waits behind it waits for the rest alone."""
    stopped = waiting(
        "stopped", minutes_ago=90, state=JobState.PREEMPTED, trained=minutes(50), has_checkpoint=True
    )
    lost = replace(stopped, has_checkpoint=False)
    job = running("first", minutes_ago=30)
    resumed = question(job, stopped, asks=waiting("mine"))
    again = question(job, lost, asks=waiting("mine"))
    assert middle(again) - middle(resumed) == pytest.approx(50, abs=12)


def test_the_band_is_as_wide_as_waits_and_ignorance_make_it() -> None:
    found = band([minutes(50), minutes(100), minutes(200)], now=NOON)
    assert found is not None
    assert in_minutes(found.p50) == pytest.approx(101)  # a minute more
    # Spread of the logarithms: sqrt(2/3) * ln 2 = 0.566; the model's: 0.676; exp(1.2816 * 0.878) = 3.08
    assert in_minutes(found.p90) == pytest.approx(311, rel=0.01)


@pytest.mark.parametrize(
    ("minutes_long", "expected"),
    [
        pytest.param(10, 11 * 2.615, id="up to an hour: exp(1.2816 * 0.75)"),
        pytest.param(60, 61 * 2.615, id="an hour"),
        pytest.param(1440, 1441 * 1.469, id="a day: exp(1.2816 * 0.3)"),
        pytest.param(9000, 9001 * 1.469, id="longer than a day"),
    ],
)
def test_the_longer_the_wait_the_less_the_model_may_be_out(minutes_long: float, expected: float) -> None:
    found = band([minutes(minutes_long)] * 3, now=NOON)
    assert found is not None
    assert in_minutes(found.p90) == pytest.approx(expected, rel=0.01)


def test_where_not_one_future_can_be_played_to_its_end_the_pace_so_far_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One instance, 200 jobs of about an hour: about a week and a half."""
    monkeypatch.setattr(queue_estimate, "MOST_LOOKS", 300)
    ahead = [waiting(f"ahead-{number}", minutes_ago=9) for number in range(200)]
    asked = question(running("first"), *ahead, asks=waiting("mine"))
    assert middle(asked) == pytest.approx(200 * 66, rel=0.2)


def test_time_is_looked_at_before_every_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many jobs start in one step of a future, one plan at most is made past the deadline."""
    ahead = [waiting(f"ahead-{number}", minutes_ago=9) for number in range(60)]
    asked = question(running("first"), *ahead, asks=waiting("mine"), pool=pool(40))
    plans: list[int] = []

    def planned(*args: Any, **rest: Any) -> Plan:
        plans.append(1)
        return plan(*args, **rest)

    def in_time() -> bool:
        assert len(plans) <= 1
        plans.clear()
        return True

    monkeypatch.setattr(forecast, "plan", planned)
    assert estimate_queue(asked, in_time=in_time).by_job


@pytest.mark.parametrize("score", [1, 2, 3])
def test_the_median_never_lies_behind_the_ninetieth(score: int) -> None:
    run_times: Mapping[tuple[str, str], RunTimes] = history(1, 5, 30, 60, 300, 1000, 3000)
    ahead = [waiting(f"ahead-{number}", minutes_ago=9, n=number % 3 + 1) for number in range(20)]
    asked = question(
        running("first", vector=of(3), score=score),
        *ahead,
        asks=waiting("mine"),
        pool=pool(4),
        run_times=run_times,
    )
    found = estimate(asked)
    assert found is not None
    assert NOON < found.p50 <= found.p90
