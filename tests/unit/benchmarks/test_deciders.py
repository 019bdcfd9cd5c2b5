"""The deciders of a tournament, each on a case whose right answer is known."""

import pytest
from trainmaster_client.simulate.histories.trace_draws import Klass

from benchmarks.replay.cells import World, run_of
from benchmarks.replay.deciders import BASES, DECIDERS, DEFAULT, SHORTEST_FIRST, Decider
from benchmarks.replay.jobs import DAY_S, TraceJob
from benchmarks.replay.rows import Row
from tests.unit.benchmarks.traces import job

BY_LABEL = {decider.label: decider for decider in DECIDERS}
QUEUES = [decider.label for decider in DECIDERS if not decider.is_product]


def rows(label: str, *jobs: TraceJob, instances: int) -> list[Row]:
    return list(run_of(BY_LABEL[label], World(jobs=jobs, capacity={"g1": instances}), seed=1).rows)


def starts(found: list[Row]) -> list[str]:
    return [row.job_id for row in sorted(found, key=lambda row: row.start_s)]


def stopped(found: list[Row]) -> list[str]:
    return [row.job_id for row in found if row.end == "preempted"]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        pytest.param("fifo", ["first", "second", "urgent"], id="who came first, whatever its class"),
        pytest.param("strict", ["first", "urgent", "second"], id="the highest class, and nobody is stopped"),
        pytest.param("slurm", ["first", "urgent", "second"], id="the class counts more than the age"),
        pytest.param("plain", ["first", "urgent", "first", "second"], id="the highest class, at once"),
        pytest.param(DEFAULT, ["first", "urgent", "first", "second"], id="the product too"),
    ],
)
def test_who_goes_first(label: str, expected: list[str]) -> None:
    found = rows(
        label,
        job("first", duration_s=5000, klass=Klass.LOW, checkpoint_every_s=600),
        job("second", submit_s=10, klass=Klass.LOW, checkpoint_every_s=600),
        job("urgent", submit_s=2000, klass=Klass.HIGH),
        instances=1,
    )
    assert starts(found) == expected


@pytest.mark.parametrize(
    ("label", "victim"),
    [
        pytest.param("plain", "oldest", id="the plain queue"),
        pytest.param("plain-newest", "newest", id="with the other tie-break"),
        pytest.param("plain-savers", "older saver", id="of those that save the oldest"),
        pytest.param("plain-savers-newest", "newer saver", id="of those that save the newest"),
        pytest.param("plain-least-loss", "just started", id="who has trained least since it saved"),
    ],
)
def test_whom_it_stops(label: str, victim: str) -> None:
    found = rows(
        label,
        job("oldest", duration_s=9000, klass=Klass.LOW),
        job("older saver", submit_s=1, duration_s=9000, klass=Klass.LOW, checkpoint_every_s=1000),
        job("newer saver", submit_s=2, duration_s=9000, klass=Klass.LOW, checkpoint_every_s=600),
        job("just started", submit_s=1850, duration_s=9000, klass=Klass.NORMAL),
        job("newest", submit_s=1000, duration_s=9000, klass=Klass.LOW),
        job("urgent", submit_s=2100, klass=Klass.HIGH),
        instances=5,
    )
    assert stopped(found)[0] == victim


def test_the_queue_without_priorities_stops_nobody() -> None:
    low, high = job("low", duration_s=9000, klass=Klass.LOW), job("high", submit_s=9, klass=Klass.HIGH)
    assert [stopped(rows(label, low, high, instances=1)) for label in ("fifo", "strict", "slurm")] == [[]] * 3


@pytest.mark.parametrize(
    ("requested_days", "expected"),
    [
        pytest.param(5, ["running", "small", "wide"], id="it ends by its limit before the head can start"),
        pytest.param(1, ["running", "wide", "small"], id="it might delay the head"),
    ],
)
def test_slurm_lets_a_small_job_pass_that_cannot_delay_the_head(
    requested_days: int, expected: list[str]
) -> None:
    found = rows(
        "slurm",
        job("running", duration_s=80_000, requested_s=requested_days * DAY_S),
        job("wide", submit_s=10, instances=2),
        job("small", submit_s=20, duration_s=100, requested_s=DAY_S),
        instances=2,
    )
    assert starts(found) == expected


def test_slurm_prefers_the_team_that_has_used_less() -> None:
    found = rows(
        "slurm",
        job("used", duration_s=DAY_S - 1, team="busy"),
        job("again", submit_s=10, team="busy"),
        job("other", submit_s=20, team="quiet"),
        instances=1,
    )
    assert starts(found) == ["used", "other", "again"]


def test_shortest_first_differs_from_the_default_in_one_key() -> None:
    (pool,) = BY_LABEL[SHORTEST_FIRST].document({"g1": 1})["pools"]
    (default,) = BY_LABEL[DEFAULT].document({"g1": 1})["pools"]
    assert default == {"name": "g1", "capacity": {"ml.g5.xlarge": 1}}
    assert pool == {**default, "order": {"shortest_first": True}}


def test_the_example_has_the_order_and_the_preemption_of_the_example_file() -> None:
    policy = BY_LABEL["example"].policy({"g1": 4})
    (pool,) = policy.pools
    assert (pool.order.aging is not None, pool.preemption.min_runtime.seconds) == (True, 900)


def test_the_plain_queues_are_among_the_deciders_once_each() -> None:
    labels = [decider.label for decider in DECIDERS]
    assert len(labels) == len(set(labels))
    assert set(BASES) < set(QUEUES)


def test_every_decider_finishes_every_job() -> None:
    jobs = [
        job(f"j{n}", submit_s=300 * n, klass=Klass(n % 3), team=f"t{n % 2}", instances=1 + n % 2)
        for n in range(12)
    ]

    def finished(decider: Decider) -> int:
        return run_of(decider, World(jobs=jobs, capacity={"g1": 2}), seed=1).figures.finished

    assert {decider.label: finished(decider) for decider in DECIDERS} == dict.fromkeys(BY_LABEL, 12)
