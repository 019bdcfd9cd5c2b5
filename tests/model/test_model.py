"""Whatever the order and the faults: one training job a job, none without one, nobody waits for ever.

A start at most once, a user's stop for good, counters that are sums: each is looked at in every state.
"""

import pytest
from trainmaster.core.jobs.states import TRANSITIONS, JobState

from tests.model.exploring import Budget, Explored, Explorer

S = JobState
ALL_STEPS = [
    (Budget(crashes=1, cancels=1, failures=1), True),
    (Budget(no_capacity=1, cancels=1, holds=1), False),
    (Budget(refusals=1, cancels=1, outside_stops=1, deletions=1), False),
]
"""Faults, and whether there are warm pools; together they take every step that two jobs can take."""
MANY = [
    pytest.param((Budget(crashes=1, refusals=1, lost=1, cancels=1), True), id="one process at a time"),
    pytest.param((Budget(processes=2), False), id="two processes at once"),
    pytest.param(
        (Budget(processes=2, crashes=1, cancels=1, arrivals=0), False), id="one job, two at once, one dies"
    ),
]
NEVER_TAKEN = {
    # A claim that finds its name taken, or is refused for good, fails from `starting`.
    (S.PENDING, S.FAILED),
    (S.HELD, S.FAILED),
    (S.PREEMPTED, S.FAILED),
    # Nobody reaches MaxRuntimeInSeconds here.
    (S.STARTING, S.STOPPED),
    (S.PREEMPTING, S.STOPPED),
    # Nor does an attempt narrower than the job's largest width, which then waits to go on.
    (S.STARTING, S.PREEMPTED),
    (S.RUNNING, S.PREEMPTED),
}
"""Steps that TRANSITIONS allows and no world here makes."""


World = tuple[Budget, bool]


def explored(world: World) -> Explored:
    budget, warm_pools = world
    explorer = Explorer(budget, warm_pools=warm_pools)
    found = explorer.explore()
    assert found.stuck == [], "\n".join(explorer.story(found.stuck[0]))
    return found


@pytest.mark.parametrize(
    "world",
    [
        pytest.param((Budget(crashes=1), True), id="with warm pools, one process dies"),
        pytest.param((Budget(crashes=1, cancels=1), False), id="one process dies, one job is stopped"),
        pytest.param(
            (Budget(processes=2, arrivals=0), False),
            id="one job, two processes at once",
        ),
        pytest.param((Budget(refusals=1, lost=1), False), id="the account refuses, an answer is lost"),
        pytest.param(
            (Budget(crashes=1, deletions=1, arrivals=0), True),
            id="one job with a warm pool, its training job is deleted, one process dies",
        ),
        pytest.param(
            (Budget(crashes=1, retried=1), False),
            id="a failure is retried, one process dies",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            (Budget(processes=2, retried=1, arrivals=0), False),
            id="one job, a failure is retried, two processes at once",
        ),
    ],
)
def test_whatever_two_jobs_go_through_the_invariants_hold_and_they_end(world: World) -> None:
    explored(world)


@pytest.mark.long
def test_every_state_is_reached_and_no_step_is_taken_that_the_table_does_not_have() -> None:
    worlds = [explored(world) for world in ALL_STEPS]
    edges = {edge for world in worlds for edge in world.edges}
    every = {(before, after) for before, afters in TRANSITIONS.items() for after in afters}
    assert edges <= every
    assert every - edges == NEVER_TAKEN
    assert {state for world in worlds for state in world.seen} == set(S)


@pytest.mark.long
@pytest.mark.parametrize("world", MANY)
def test_with_more_at_once_they_still_do(world: World) -> None:
    explored(world)
