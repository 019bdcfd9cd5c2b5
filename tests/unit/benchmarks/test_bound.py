"""Nobody is better than the bound, and the bound is not far from what can be reached."""

import random
from itertools import combinations

import pytest
from trainmaster_client.simulate.histories.trace_draws import Klass

from benchmarks.replay.bound import START_S, bound_of, least_delay_s, most_goodput, none_over
from benchmarks.replay.cells import World, run_of
from benchmarks.replay.cheapest_run import Prices, cheapest_run
from benchmarks.replay.deciders import DECIDERS
from benchmarks.replay.figures import capacities
from benchmarks.replay.jobs import TraceJob
from benchmarks.replay.oracle import Demand, oracle
from benchmarks.replay.standings import heat_figures
from tests.unit.benchmarks.traces import job


def crowd(seed: int, count: int = 60) -> list[TraceJob]:
    """Bursts of jobs in two pools, more than fit."""
    chance = random.Random(seed)
    return sorted(
        (
            job(
                f"j{number:02d}",
                submit_s=chance.choice((0, 4000, 9000)) + chance.randrange(600),
                duration_s=int(chance.lognormvariate(7, 1.2)) + 30,
                klass=chance.choice(list(Klass)),
                checkpoint_every_s=chance.choice((None, 600)),
                pool=chance.choice(("g1", "g1", "g8")),
                instances=chance.choice((1, 1, 2)),
                team=chance.choice(("vision", "language")),
            )
            for number in range(count)
        ),
        key=lambda one: (one.submit_s, one.job_id),
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_decider_beats_the_bound(seed: int) -> None:
    jobs = crowd(seed)
    capacity = capacities(jobs, load=1.2)
    bound = bound_of(jobs, capacity)
    for decider in DECIDERS:
        found = heat_figures(run_of(decider, World(jobs=jobs, capacity=capacity), seed=seed))
        assert list(none_over(found, bound)) == [], decider.label
    assert bound.figures["weighted_delay_h"] <= bound.oracle_h


def test_what_is_better_than_the_bound_is_named() -> None:
    jobs = crowd(1)
    bound = bound_of(jobs, capacities(jobs, load=1.2))
    found = {"weighted_delay_h": bound.figures["weighted_delay_h"] - 0.01, "goodput": 1.5, "waste_gpu_h": 0.0}
    assert [line.split(":")[0] for line in none_over(found, bound)] == ["weighted_delay_h", "goodput"]


def test_the_bound_comes_close_to_the_best_schedule_of_a_queue() -> None:
    jobs = [Demand(1.0, 0, 20_000, 1), Demand(1.0, 0, 40_000, 1), Demand(8.0, 30_000, 10_000, 1)]
    # the best: 20,000 s of the first, 10,000 of the second, the third, 30,000 of the second
    least, found = least_delay_s(jobs, 1)
    assert found == 20_000 + 10_000
    assert 0.85 * found <= least <= found


def test_jobs_that_fit_wait_for_nothing() -> None:
    jobs = [Demand(3.0, 100 * number, 5000, 1) for number in range(4)]
    assert least_delay_s(jobs, 4) == (0.0, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_job_runs_in_the_cheapest_seconds(seed: int) -> None:
    chance = random.Random(seed)
    slots = [*(float(chance.randrange(6)) for _ in range(8)), 0.0]
    asked = Demand(chance.choice((0.5, 1.0, 3.0)), 1, 3, chance.choice((1, 2)))
    seconds = [*range(1, 8), 8, 9, 10]  # the last slot is free and has no end

    def cost(chosen: tuple[int, ...]) -> float:
        price = sum(slots[min(second, 8)] for second in chosen) * asked.instances
        return price + asked.weight * (chosen[-1] + 1 - asked.release_s - asked.holds_s)

    held = [0.0] * len(slots)
    assert cheapest_run(asked, Prices(1, slots), held) == min(map(cost, combinations(seconds, 3)))
    assert sum(held) == 3 * asked.instances


def test_the_oracle_runs_what_is_worth_most_for_the_work_that_is_left() -> None:
    jobs = [Demand(1.0, 0, 1000, 2), Demand(1.0, 100, 300, 1), Demand(1.0, 100, 200, 1)]
    schedule = oracle(jobs, 2)
    # both small ones pass the wide one, which goes on once both are over
    assert [(step.since_s, step.until_s) for step in schedule.steps] == [
        (0, 100),
        (100, 300),
        (300, 400),
        (400, 1300),
    ]
    assert schedule.weighted_s == 300


def test_goodput_is_bounded_by_what_was_submitted_in_time() -> None:
    jobs = [job("a", duration_s=10_000), job("b", submit_s=9000, duration_s=500), job("c", submit_s=10_000)]
    # on 4 instances: a trains 10,000 s less its start before the last submission, b 500 s
    assert most_goodput(jobs, {"g1": 4}) == (10_000 - START_S + 500) / 40_000
    assert most_goodput(jobs, {"g1": 1}) == (10_000 - START_S) / 10_000  # full from then on
