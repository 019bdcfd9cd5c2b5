"""A world for each fault: table, queue and SageMaker of its own."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.faults.scenes import trains
from tests.integration.cloud import Cloud
from tests.integration.conftest import TABLE, make_table
from tests.integration.world import World

NewWorld = Callable[..., World]


@pytest.fixture(scope="session")
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def new_world(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewWorld]:
    """Makes worlds one after the other, each with an empty table; takes a policy document."""
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "trainmaster")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "trainmaster")
    numbers = itertools.count()

    def make(policy: dict[str, Any] | None = None) -> World:
        cloud.empty()
        make_table(cloud.client("dynamodb"), TABLE)
        queue = cloud.client("sqs").create_queue(QueueName=f"doorbell-{next(numbers)}")
        return World(cloud=cloud, queue_url=queue["QueueUrl"], policy=policy)

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
