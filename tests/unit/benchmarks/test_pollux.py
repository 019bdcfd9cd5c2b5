"""Pollux's rule on cases whose allocation is known."""

import pytest
from trainmaster.core.jobs.widths import Widths

from benchmarks.replay.cells import World, run_of
from benchmarks.replay.deciders import ELASTIC_DECIDERS, POLLUX
from benchmarks.replay.elasticity import Elasticity
from benchmarks.replay.jobs import TraceJob
from tests.unit.benchmarks.traces import job

(DECIDER,) = [decider for decider in ELASTIC_DECIDERS if decider.label == POLLUX]
STOP_S, COLD_S = 90, 240


def elastic(name: str, *, duration_s: int = 25_600, submit_s: int = 0) -> TraceJob:
    """On one, two or four instances, each time 1.6 times as fast."""
    twice = Elasticity(widths=Widths(counts=(1, 2, 4)), per_doubling=1.6)
    return job(name, duration_s=duration_s, submit_s=submit_s, checkpoint_every_s=600, elastic=twice)


def attempts(*jobs: TraceJob, instances: int = 4) -> dict[str, list[tuple[int, int, str]]]:
    """Instances, second of the start and end of each attempt, by job."""
    run = run_of(DECIDER, World(jobs=jobs, capacity={"g1": instances}), seed=1)
    found: dict[str, list[tuple[int, int, str]]] = {told.job_id: [] for told in jobs}
    for row in sorted(run.rows, key=lambda row: row.start_s):
        found[row.job_id].append((row.instances, row.start_s, row.end))
    return found


def test_two_equal_jobs_get_equal_shares_and_the_last_one_gets_all() -> None:
    found = attempts(elastic("a"), elastic("b", submit_s=7200))
    assert found["a"][:2] == [(4, 0, "resized"), (2, 7200 + STOP_S, "completed")]
    assert found["b"][0] == (2, 7200 + STOP_S, "resized")
    assert [instances for instances, _, _ in found["b"]] == [2, 4]


def test_a_job_that_starts_just_now_is_not_changed() -> None:
    found = attempts(elastic("a"), elastic("b", submit_s=100))
    (first, second, *_), (other, *_) = found["a"], found["b"]
    assert first == (4, 0, "resized")
    assert COLD_S <= other[1] - STOP_S <= COLD_S + 120, "the next minute after it trains"
    assert (second[0], other[0]) == (2, 2)


@pytest.mark.parametrize("count", [2, 4])
def test_a_rigid_job_is_never_stopped(count: int) -> None:
    rigid = job("rigid", instances=count, duration_s=5000, checkpoint_every_s=600)
    found = attempts(rigid, elastic("a", submit_s=600))
    assert found["rigid"] == [(count, 0, "completed")]
    assert found["a"][0][:2] == ((2, 600) if count == 2 else (4, 5000 + COLD_S))
