"""A world for each fault: table, queue and SageMaker of its own."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.builders import A
from tests.faults.scenes import trains
from tests.integration.cloud import Cloud
from tests.integration.conftest import TABLE, make_table
from tests.integration.world import World

NewWorld = Callable[..., World]
TWO = {"pools": [{"name": "main", "capacity": {A: 2}}]}


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """What a pool does not write: it preempts whatever that costs, and keeps nothing warm.

    A fault is then about itself. Tests about prices and warm pools write their own.
    """
    return {**document, "pools": [_plain(pool) for pool in document["pools"]]}


def _plain(pool: dict[str, Any]) -> dict[str, Any]:
    preemption = {"cost": {"enabled": False}, **pool.get("preemption", {})}
    warm_pool = {"keep_alive": "0s", "retain": "0s", **pool.get("warm_pool", {})}
    return {**pool, "preemption": preemption, "warm_pool": warm_pool}


@pytest.fixture(scope="session")
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def new_world(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewWorld]:
    """Makes worlds one after the other, each with an empty table.

    Takes a policy document, made ``plain`` unless it is to be put ``as_written``.
    """
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "trainmaster")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "trainmaster")
    numbers = itertools.count()

    def make(policy: dict[str, Any] | None = None, *, as_written: bool = False) -> World:
        cloud.empty()
        make_table(cloud.client("dynamodb"), TABLE)
        queue = cloud.client("sqs").create_queue(QueueName=f"doorbell-{next(numbers)}")
        document = policy or TWO
        return World(
            cloud=cloud,
            queue_url=queue["QueueUrl"],
            policy=document if as_written else plain(document),
        )

    with cloud.open():
        yield make


@pytest.fixture
def world(new_world: NewWorld) -> World:
    return new_world()


@pytest.fixture
def busy(world: World) -> World:
    """job1 (p=1) and job2 (p=2) train on both instances."""
    world.submit("job1", priority=1)
    world.submit("job2", priority=2)
    world.schedule()
    trains(world, "job1", "job2")
    return world


@pytest.fixture
def preempting(busy: World) -> World:
    """job4 (p=3) came and waits for job1 to stop."""
    busy.submit("job4", priority=3)
    busy.schedule()
    assert busy.states("job1", "job4") == ["preempting", "pending"]
    return busy
