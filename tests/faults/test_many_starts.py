"""Starts of one plan are read and claimed together, and each stays its own job when something goes wrong."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.integration.world import Crash, World

STARTS = 20
POLICY = {"pools": [{"name": "main", "capacity": {A: STARTS}}]}
NAMES = [f"job{number:02d}" for number in range(STARTS)]


class InGroups:
    """As many hands as the function has, though they do one thing after the other."""

    hands = 8

    def __call__(self, tasks: Iterable[Callable[[], object]]) -> None:
        for task in tasks:
            task()


def crowd(new_world: NewWorld, policy: dict[str, Any] = POLICY) -> World:
    """All wait, and there are instances for all."""
    world = new_world(policy)
    world.wiring.beside = InGroups()
    for name in NAMES:
        world.submit(name)
    return world


@pytest.fixture
def crowded(new_world: NewWorld) -> World:
    return crowd(new_world)


def test_many_starts_cost_a_call_of_sagemaker_and_a_record_each_and_little_else(crowded: World) -> None:
    calls = Counter(crowded.calls_of(crowded.wake))
    assert crowded.states(*NAMES) == ["running"] * STARTS
    assert calls["CreateTrainingJob"] == STARTS
    assert calls["TransactWriteItems"] <= STARTS + -(-STARTS // 8) + 1, "claims are made eight at a time"
    assert sum(calls.values()) <= 2 * STARTS + 40, "three looks at the pool"
    crowded.check(*NAMES)


def test_a_job_that_changes_before_its_claim_costs_the_others_of_its_transaction_nothing(
    crowded: World,
) -> None:
    crowded.meanwhile["TransactWriteItems"] = lambda: crowded.cancel("job03")
    crowded.wake()
    others = [name for name in NAMES if name != "job03"]
    assert crowded.states("job03") == ["stopped"]
    assert crowded.states(*others) == ["running"] * (STARTS - 1)
    assert "job03" not in crowded.sagemaker.creates
    crowded.check(*NAMES)


def test_together_they_claim_no_more_than_each_of_them_might(new_world: NewWorld) -> None:
    world = crowd(new_world, {"pools": [{"name": "main", "capacity": {A: 5}}]})
    world.wake()
    assert world.states(*NAMES).count("running") == 5
    world.check(*NAMES, capacity=dict.fromkeys(world.capacity(), 5))


def test_a_pool_that_fills_up_meanwhile_is_never_overfilled(crowded: World) -> None:
    """Between the plan and the claims another pass starts them all."""
    crowded.meanwhile["TransactWriteItems"] = crowded.wake
    crowded.wake()
    assert crowded.states(*NAMES) == ["running"] * STARTS
    assert sorted(crowded.sagemaker.creates) == NAMES
    crowded.check(*NAMES)


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("operation", ["BatchGetItem", "TransactWriteItems", "CreateTrainingJob"])
def test_a_death_among_many_starts_leaves_none_behind(crowded: World, operation: str, phase: str) -> None:
    assert crowded.dies(crowded.wake, Crash(operation, phase))
    crowded.a_minute_passes()
    crowded.a_minute_passes()
    assert crowded.states(*NAMES) == ["running"] * STARTS
    assert sorted(crowded.sagemaker.creates) == NAMES
    crowded.check(*NAMES)


def test_a_request_that_is_gone_stops_its_job_alone(crowded: World) -> None:
    key = {"pk": {"S": "J#job05"}, "sk": {"S": "request"}}
    crowded.cloud.client("dynamodb").delete_item(TableName="trainmaster", Key=key)
    crowded.wake()
    assert crowded.states("job05") == ["failed"]
    assert crowded.states(*(name for name in NAMES if name != "job05")) == ["running"] * (STARTS - 1)


def test_while_the_account_is_throttled_each_start_is_claimed_in_its_own_turn(crowded: World) -> None:
    crowded.sagemaker.refuse["CreateTrainingJob"] = [("ThrottlingException", 400)]
    crowded.wake()
    crowded.a_minute_passes()
    assert crowded.states(*NAMES) == ["running"] * STARTS
    crowded.check(*NAMES)
