"""When a queue is empty, with and without a training plan."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trainmaster_client.advice.queue_forecast import Forecast, LiveJob, PlanWindow, forecast
from trainmaster_client.simulate.engine.assumptions import COLD_START

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def job(name: str, hours: float, *, instances: int = 1, saves: bool = True, runs: bool = False) -> LiveJob:
    return LiveJob(name=name, instances=instances, needs=hours * HOUR, saves=saves, is_running=runs)


def window(begin: float, end: float) -> PlanWindow:
    """Hours from now; it is drained 40 minutes before its end."""
    return PlanWindow(begin=NOW + begin * HOUR, end=NOW + end * HOUR)


def of(*jobs: LiveJob, capacity: int = 1, windows: tuple[PlanWindow, ...] = (), plan: int = 1) -> Forecast:
    return forecast(jobs, capacity=capacity, now=NOW, windows=windows, plan_instances=plan if windows else 0)


def test_an_empty_queue_is_empty_now():
    assert of() == Forecast(empty_at=NOW, plan_hours=0.0, stranded=())


def test_jobs_follow_each_other_on_demand_each_with_its_start_up():
    found = of(job("runs", 2, runs=True), job("a", 3), job("b", 4))

    assert found.empty_at == NOW + 9 * HOUR + 2 * COLD_START


def test_a_plan_takes_what_waits_and_its_hours_count_the_start_up():
    alone, helped = of(job("a", 3), job("b", 4)), of(job("a", 3), job("b", 4), windows=(window(0, 24),))

    assert alone.empty_at == NOW + 7 * HOUR + 2 * COLD_START
    assert helped.empty_at == NOW + 4 * HOUR + COLD_START
    assert helped.plan_hours == pytest.approx(3 + COLD_START / HOUR)


def test_a_job_that_saves_goes_on_in_the_next_window_with_what_it_has():
    found = of(job("a", 10), capacity=0, windows=(window(0, 4), window(10, 24)))

    trained = 4 - 40 / 60 - COLD_START / HOUR
    assert found.empty_at == NOW + 10 * HOUR + COLD_START + (10 - trained) * HOUR
    assert found.stranded == ()


def test_a_job_that_saves_nothing_starts_only_in_a_window_that_it_ends_in():
    long_job = job("a", 10, saves=False)

    assert of(long_job, capacity=0, windows=(window(0, 4),)).stranded == ("a",)
    assert of(long_job, capacity=0, windows=(window(0, 4),)).plan_hours == 0
    found = of(long_job, capacity=0, windows=(window(0, 4), window(10, 24)))
    assert found.empty_at == NOW + 20 * HOUR + COLD_START


def test_what_fits_nowhere_is_stranded_and_the_rest_goes_on():
    found = of(job("wide", 1, instances=8), job("a", 1), capacity=4, windows=(window(0, 4),), plan=2)

    assert (found.stranded, found.empty_at) == (("wide",), NOW + HOUR + COLD_START)


def test_what_the_plan_stops_goes_on_on_demand():
    found = of(job("a", 10), job("b", 20), windows=(window(0, 4),))

    on_plan = (4 - 40 / 60) * HOUR
    assert found.plan_hours == pytest.approx(on_plan / HOUR)
    assert found.empty_at == NOW + 20 * HOUR + COLD_START + COLD_START + 10 * HOUR - (on_plan - COLD_START)


JOBS = st.lists(
    st.builds(
        job,
        name=st.just("j"),
        hours=st.integers(1, 60),
        instances=st.integers(1, 4),
        saves=st.booleans(),
        runs=st.just(False),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(
    jobs=JOBS,
    capacity=st.integers(0, 6),
    plan=st.integers(1, 6),
    cuts=st.lists(st.integers(1, 200), min_size=2, max_size=6, unique=True),
)
def test_no_more_is_used_than_was_bought_and_nothing_is_lost(jobs, capacity, plan, cuts):
    jobs = [replace(one, name=f"j{number}") for number, one in enumerate(jobs)]
    edges = sorted(cuts)
    windows = tuple(
        window(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=False) if end > begin
    )
    found = forecast(jobs, capacity=capacity, now=NOW, windows=windows, plan_instances=plan)

    bought = sum((one.drained - one.begin) / HOUR for one in windows) * plan
    assert 0 <= found.plan_hours <= bought + 1e-6
    assert set(found.stranded) <= {one.name for one in jobs if one.instances > capacity}
    least = max((one.needs for one in jobs if one.name not in found.stranded), default=timedelta())
    assert found.empty_at >= NOW + least
    if capacity >= 4:
        alone = forecast(jobs, capacity=capacity, now=NOW)
        assert alone.stranded == found.stranded == ()
