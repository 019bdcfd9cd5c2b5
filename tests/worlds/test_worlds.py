"""Rows of the fault list that need hours of load."""

import pytest

from local.worlds import HARSH, World
from tests.worlds.denials import denied
from tests.worlds.many_pools import Load as Pools
from tests.worlds.many_pools import many_pools
from tests.worlds.plans import Load as Plans
from tests.worlds.plans import plans
from tests.worlds.played import Played
from tests.worlds.scenarios import SLOW_LOOKS, Load, deepracer, live_jobs, slow_calls, starts

SMALL = Load(
    running=5, left_seconds=900.0, submitted=18, within_seconds=5.0, quota=6, capacity=9, run_seconds=600.0
)
harsh_or_slow = pytest.mark.parametrize(
    "world", [pytest.param(HARSH, id="throttled"), pytest.param(SLOW_LOOKS, id="a second each")]
)


def holds(played: Played) -> None:
    assert [one for one in played.checks if not one["ok"]] == []


def test_N14_a_quota_below_the_pool_and_late_events_leave_no_slot_idle_while_jobs_wait() -> None:
    holds(deepracer(SMALL, seed=1))


@pytest.mark.long
def test_N14_hundreds_submitted_at_once_run_at_the_pace_of_the_quota() -> None:
    holds(deepracer(Load(), seed=1))


def test_N15_starts_go_at_the_accounts_rate() -> None:
    holds(starts(60, seed=1, minutes=3))


def test_O4_starts_that_are_denied_for_three_minutes_cost_no_job() -> None:
    holds(denied(24, seed=1))


@pytest.mark.thorough
def test_O4_starts_of_96_jobs_that_are_denied_for_three_minutes_cost_no_job() -> None:
    holds(denied(seed=1))


@pytest.mark.thorough
def test_N15_320_starts_at_the_accounts_rate() -> None:
    holds(starts(320, seed=1, minutes=8))


def test_N16_slow_calls_and_many_ends_at_once_meet_no_time_out() -> None:
    holds(slow_calls(30, 12, seed=1))


@pytest.mark.thorough
def test_N16_160_starts_and_60_ends_at_once() -> None:
    holds(slow_calls(160, 60, seed=1))


def test_slow_passes_over_some_of_many_pools_keep_no_other_waiting_for_a_minute() -> None:
    holds(many_pools(Pools(pools=60, starts_each=15, minutes=2, slow=6), seed=1))


@pytest.mark.thorough
@pytest.mark.parametrize("slow", [1, 3, 8])
def test_each_of_500_pools_is_looked_at_within_a_minute_of_its_ring(slow: int) -> None:
    holds(many_pools(Pools(slow=slow), seed=1))


def test_J14_reconcile_rings_every_pool_each_minute_and_sees_every_job_in_time() -> None:
    holds(live_jobs(100, SLOW_LOOKS, seed=1, minutes=3))


@pytest.mark.thorough
@harsh_or_slow
@pytest.mark.parametrize("jobs", [40, 100, 400])
def test_J14_with_as_many_live_jobs(jobs: int, world: World) -> None:
    holds(live_jobs(jobs, world, seed=1))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "load",
    [
        pytest.param(Plans(), id="late"),
        pytest.param(Plans(late_seconds=-300.0), id="early"),
        pytest.param(Plans(late_seconds=120.0, drain="5m"), id="late with a short drain"),
    ],
)
def test_Q3_windows_of_a_plan_are_kept_by_a_clock_that_is_off(load: Plans) -> None:
    holds(plans(load, seed=1))
