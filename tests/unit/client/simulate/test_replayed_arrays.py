"""Replays of arrays: one submission, with its throttle, few waiting jobs, and the brake at equal failures."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

import pytest
from trainmaster.core.arrays.array_model import MOST_WAITING_JOBS
from trainmaster.core.jobs.end_conditions import ConditionKind
from trainmaster_client.simulate.comparison.outcomes import Fate, JobOutcome, outcomes_of
from trainmaster_client.simulate.engine.event_loop import engine_of
from trainmaster_client.simulate.engine.past_jobs import AfterEnd, PastArray, PastAttempt, PastJob
from trainmaster_client.simulate.engine.pool_replay import PoolReplay
from trainmaster_client.simulate.io.replaying import plain_queue, replay

from tests.unit.client.simulate.replayed import history, instant, job, policy

KEY = "01ARRAYZZZZ"


def tasks(count: int, *, at_most: int | None = None, stop_after: int = 0, **fields: Any) -> list[PastJob]:
    array = PastArray(key=KEY, at_most=at_most, stop_after_failures=stop_after)
    return [replace(job(f"s-{index}", **fields), array=array) for index in range(count)]


def outcomes(*jobs: PastJob, capacity: int = 8, plain: bool = False) -> dict[str, JobOutcome]:
    of, rules = history(*jobs), policy(capacity)
    return outcomes_of(of, plain_queue(of, rules) if plain else replay(of, rules, label="a"))


def most_at_once(ended: dict[str, JobOutcome]) -> int:
    starts = [(one.start_s, 1) for one in ended.values() if one.start_s is not None]
    ends = [(one.over_s, -1) for one in ended.values() if one.start_s is not None and one.over_s is not None]
    live = most = 0
    for _, change in sorted([*starts, *ends], key=lambda event: (event[0], event[1])):
        live += change
        most = max(most, live)
    return most


@pytest.mark.parametrize(("at_most", "expected"), [(None, 8), (3, 3), (1, 1), (100, 8)])
def test_as_many_tasks_run_at_once_as_the_throttle_lets(at_most: int | None, expected: int) -> None:
    ended = outcomes(*tasks(20, at_most=at_most))
    assert {one.fate for one in ended.values()} == {Fate.COMPLETED}
    assert most_at_once(ended) == expected


def test_a_throttled_array_leaves_room_to_a_later_job() -> None:
    ended = outcomes(*tasks(20, at_most=2), job("later", at=10), capacity=3)
    assert ended["later"].wait_s == 0
    alone = outcomes(*tasks(20), job("later", at=10), capacity=3)
    assert (alone["later"].wait_s or 0) > 1000


def test_tasks_start_in_the_order_of_their_indices() -> None:
    ended = outcomes(*tasks(12, at_most=1))
    starts = [ended[f"s-{index}"].start_s for index in range(12)]
    assert starts == sorted(starts, key=lambda start: start or 0)


def test_few_tasks_wait_as_jobs() -> None:
    of = history(*tasks(200))
    engine = engine_of(of, policy(2), ("g1",), PoolReplay.of, cpu_clock=lambda: 0.0)
    engine.run(until=500)
    state = engine.pools["g1"].state
    assert sum(waiting.is_waiting for waiting in state.jobs.values()) == MOST_WAITING_JOBS
    (array,) = state.arrays.all
    assert (array.counts.running, array.counts.waiting) == (2, 198)
    copy = engine.pools["g1"].fork(engine.setting)
    engine.run()
    assert state.arrays.all == ()
    assert copy.state.arrays.all == (array,), "a copy goes its own way"


def failing(count: int, *, stop_after: int, really: dict[int, float]) -> list[PastJob]:
    """Tasks that fail after 100 seconds; those in ``really`` started at these seconds in the history."""
    went = {
        index: PastAttempt(
            started_at=instant(second), training_since=None, ended_at=None, end=None, lost=timedelta()
        )
        for index, second in really.items()
    }
    return [
        replace(task, attempts=(went[index],) if index in went else ())
        for index, task in enumerate(tasks(count, at_most=1, stop_after=stop_after, trains=100, end="failed"))
    ]


def test_equal_failures_hold_an_array_as_its_user_left_it() -> None:
    ended = outcomes(*failing(8, stop_after=3, really={0: 0, 1: 400, 2: 800}))
    assert [ended[f"s-{index}"].start_s is not None for index in range(8)] == [True] * 3 + [False] * 5


def test_a_held_array_goes_on_when_the_history_has_its_next_task_start() -> None:
    ended = outcomes(*failing(5, stop_after=3, really={0: 0, 1: 400, 2: 800, 3: 90_000, 4: 90_400}))
    starts = [ended[f"s-{index}"].start_s or 0 for index in range(5)]
    assert starts[2] < 5000
    assert 90_000 <= starts[3] <= 90_060
    late = outcomes(*failing(5, stop_after=3, really=dict.fromkeys(range(5), 0.0)))
    assert (late["s-4"].start_s or 0) < 5000, "in the history all of them had started by then"


def test_without_the_brake_all_tasks_fail() -> None:
    ended = outcomes(*failing(12, stop_after=0, really={}))
    assert {one.fate for one in ended.values()} == {Fate.FAILED}


def test_a_task_that_is_withdrawn_before_it_is_a_job_never_starts() -> None:
    withdrawn = [
        replace(task, withdrawn_after=timedelta(seconds=50), trains_for=timedelta()) if index > 3 else task
        for index, task in enumerate(tasks(6, at_most=1))
    ]
    ended = outcomes(*withdrawn, job("other", at=60))
    assert [ended[f"s-{index}"].fate for index in range(6)] == [Fate.COMPLETED] * 4 + [Fate.WITHDRAWN] * 2


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("end", "kind", "runs"),
    [
        ("completed", ConditionKind.AFTER_OK, True),
        ("failed", ConditionKind.AFTER_OK, False),
        ("failed", ConditionKind.AFTER_NOT_OK, True),
        ("failed", ConditionKind.AFTER_ANY, True),
    ],
)
def test_a_job_after_an_array_waits_for_the_last_of_its_tasks(
    *, end: Literal["completed", "failed"], kind: ConditionKind, runs: bool, plain: bool
) -> None:
    *most, last = tasks(4, at_most=2)
    child = replace(job("child", at=1), after=(AfterEnd(kind=kind, job=KEY),))
    ended = outcomes(*most, replace(last, end=end), child, plain=plain)
    assert ended["child"].fate is (Fate.COMPLETED if runs else Fate.NEVER_ELIGIBLE)
    if runs:
        over = max(ended[f"s-{index}"].over_s or 0 for index in range(4))
        assert (ended["child"].start_s or 0) >= over


def test_a_job_after_a_refused_array_is_refused() -> None:
    child = replace(job("child", at=1), after=(AfterEnd(kind=ConditionKind.AFTER_OK, job=KEY),))
    found = replay(history(*tasks(2, n=50), child), policy(4), label="a")
    assert found.refused["child"] == f"waits for {KEY}: refused"
