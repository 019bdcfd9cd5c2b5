"""Replays of elastic jobs: a width has its speed, a change its price, and no training is lost or doubled."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.durations.work_speeds import MeasuredWidths
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.policy import Policy
from trainmaster_client.simulate.comparison.audits import wrong_training
from trainmaster_client.simulate.comparison.outcomes import outcomes_of
from trainmaster_client.simulate.engine.assumptions import COLD_START, RESTORE, STOP
from trainmaster_client.simulate.engine.past_jobs import PastJob, PastWidths, shown_speeds, usual_speeds
from trainmaster_client.simulate.engine.replayed_plans import BoughtPlan, with_bought
from trainmaster_client.simulate.engine.replays import RESIZED, ReplayedAttempt
from trainmaster_client.simulate.io.replaying import plain_queue, replay

from tests.unit.client.simulate.replayed import G5, HIGH, attempts, history, instant, job, policy

COLD_S, RESTORE_S, STOP_S = COLD_START.seconds, RESTORE.seconds, STOP.seconds
ONE_TO_FOUR = Widths(counts=(1, 2, 4))
SPEEDS = {1: 0.3, 2: 0.6, 4: 1.0}
HOURS = 3600


def elastic(name: str = "wide", *, trains: float = 10 * HOURS, **fields: Any) -> PastJob:
    """On one, two or four instances; it trains so many seconds on four."""
    return job(
        name,
        trains=trains,
        n=4,
        saves=600,
        saves_when_stopped=True,
        elastic=PastWidths(widths=ONE_TO_FOUR, speeds=SPEEDS),
        **fields,
    )


def rows_of(*jobs: PastJob, rules: Policy | None = None) -> dict[str, list[ReplayedAttempt]]:
    """The attempts by job, after all that must hold of each replay was checked."""
    past = history(*jobs)
    found = replay(past, rules or policy(4), label="mine")
    outcomes = outcomes_of(past, found)
    assert wrong_training(outcomes) == []
    assert all(outcome.fate.is_end for outcome in outcomes.values())
    by_job: dict[str, list[ReplayedAttempt]] = {}
    for (name, _), row in sorted(attempts(found).items()):
        by_job.setdefault(name, []).append(row)
    return by_job


def test_it_starts_at_the_largest_width_that_fits_and_trains_at_its_speed() -> None:
    two = policy(2)
    (alone,) = rows_of(elastic())["wide"]
    (narrow,) = rows_of(elastic(), rules=two)["wide"]
    assert (alone.instances, alone.end_s - alone.train_s) == (4, 10 * HOURS)
    assert (narrow.instances, narrow.end_s - narrow.train_s) == (2, round(10 * HOURS / 0.6))


def test_it_is_refused_only_where_its_least_width_never_fits() -> None:
    found = replay(history(elastic()), policy(0), label="mine")
    assert found.refused == {"wide": "asks for 1, but pool g1 has 0 on-demand ml.g5.xlarge in all"}


@pytest.mark.parametrize(("planned", "refused"), [(2, False), (1, False), (0, True)])
def test_it_is_admitted_where_a_plan_has_one_of_its_widths(planned: int, *, refused: bool) -> None:
    whole_day = ((instant(0), instant(48 * HOURS)),)
    plan = BoughtPlan(instance_type=G5, instances=planned, windows=whole_day, fee_usd=None)
    rules = with_bought(policy(0), [plan] if planned else [])
    found = replay(history(elastic()), rules, label="mine")
    assert ("wide" in found.refused) is refused
    assert {row.instances for row in found.attempts} == (set() if refused else {planned})


def test_it_gives_up_instances_for_an_urgent_job_and_loses_nothing() -> None:
    rows = rows_of(elastic(), job("urgent", at=2 * HOURS, trains=4 * HOURS, priority=HIGH, n=2))
    first, second, *_ = rows["wide"]
    assert (first.instances, first.end, first.lost_s) == (4, RESIZED, 0)
    assert (second.instances, second.start_s) == (2, first.end_s)
    assert first.stopping_s == STOP_S
    assert second.train_s - second.start_s == COLD_S + RESTORE_S
    assert rows["urgent"][0].start_s == first.end_s


def test_it_grows_again_where_that_pays() -> None:
    rows = rows_of(elastic(), job("urgent", at=2 * HOURS, trains=4 * HOURS, priority=HIGH, n=2))["wide"]
    assert [row.instances for row in rows] == [4, 2, 4]
    assert [row.end for row in rows] == [RESIZED, RESIZED, "completed"]


def test_it_stays_narrow_where_little_is_left() -> None:
    urgent = job("urgent", at=2 * HOURS, trains=2 * HOURS, priority=HIGH, n=2)
    rows = rows_of(elastic(trains=3.3 * HOURS), urgent)["wide"]
    assert [row.instances for row in rows] == [4, 2]


@pytest.mark.parametrize(
    ("at_four", "widths"),
    [
        pytest.param(None, [2, 4], id="nothing is known of earlier runs"),
        pytest.param(18_000, [2, 4], id="they were much faster on four"),
        pytest.param(10_100, [2], id="they were hardly faster on four"),
    ],
)
def test_a_first_growth_is_decided_by_what_earlier_runs_showed(
    at_four: int | None, widths: list[int]
) -> None:
    measured = at_four and MeasuredWidths(counts=(2, 4), per_1000_s=(10_000, at_four), runs=2)
    known = PastWidths(widths=replace(ONE_TO_FOUR, measured=measured or None), speeds=SPEEDS)
    other = job("other", trains=HOURS, n=2)
    rows = rows_of(other, replace(elastic(at=60), elastic=known))["wide"]
    assert [row.instances for row in rows] == widths


def test_a_failure_in_between_comes_after_as_much_work_at_any_width() -> None:
    breaks = ((5 * HOURS, "hardware"),)
    for capacity, speed in ((4, 1.0), (2, 0.6)):
        first, second, *_ = rows_of(elastic(breaks=breaks), rules=policy(capacity))["wide"]
        assert (first.end, first.end_s - first.train_s) == ("failed", round(5 * HOURS / speed))
        assert second.instances < first.instances


def test_the_plain_queue_runs_it_at_its_largest_width() -> None:
    (row,) = plain_queue(history(elastic()), policy(4)).attempts
    assert (row.instances, row.end_s - row.train_s) == (4, 10 * HOURS)


@pytest.mark.parametrize("saves", [True, False])
def test_a_stop_loses_nothing_of_a_job_that_saves_when_it_is_stopped(*, saves: bool) -> None:
    rigid = job("rigid", trains=10 * HOURS, n=4, saves=600, saves_when_stopped=saves)
    first, *_ = rows_of(rigid, job("urgent", at=7505, trains=900, priority=HIGH, n=2))["rigid"]
    assert first.end == "preempted"
    assert (first.lost_s == 0) is saves


def test_speeds_that_nobody_told_are_those_that_the_planner_assumes() -> None:
    assert usual_speeds(Widths(counts=(2, 4, 8))) == pytest.approx({2: 1 / 1.8**2, 4: 1 / 1.8, 8: 1})


def test_a_width_that_was_never_seen_is_compared_with_the_nearest_that_was() -> None:
    widths = Widths(counts=(2, 4, 8))
    assert shown_speeds(widths, {}) == usual_speeds(widths)
    assert shown_speeds(widths, {2: 50, 8: 100}) == pytest.approx({2: 0.5, 4: 0.9, 8: 1})
    assert shown_speeds(widths, {2: 50}) == pytest.approx(usual_speeds(widths))


def test_a_job_that_avoids_plans_waits_for_instances_on_demand() -> None:
    plan = BoughtPlan(
        instance_type=G5, instances=4, windows=((instant(0), instant(99 * HOURS)),), fee_usd=None
    )
    rules = with_bought(policy(4), [plan])
    (on_plan,) = replay(history(elastic()), rules, label="mine").attempts
    (beside,) = replay(history(elastic(avoids_plans=True)), rules, label="mine").attempts
    assert (on_plan.is_on_plan, beside.is_on_plan) == (True, False)
    alone = replay(history(elastic(avoids_plans=True)), with_bought(policy(0), [plan]), label="mine")
    assert set(alone.refused) == {"wide"}


def test_a_run_time_that_is_over_at_a_narrow_width_is_no_end() -> None:
    """Its quota of run time is instances times seconds, and it scales worse than that."""
    slow_when_narrow = PastWidths(widths=ONE_TO_FOUR, speeds={1: 0.2, 2: 0.4, 4: 1.0})
    past = replace(elastic(trains=4 * HOURS, max_runtime=timedelta(hours=4.5)), elastic=slow_when_narrow)
    *before, last = rows_of(past, rules=policy(2))["wide"]
    assert last.end == "completed"
    assert {row.end for row in before} == {RESIZED}
