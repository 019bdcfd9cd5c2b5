"""A world for each fault: table, queue and SageMaker of its own."""

from collections.abc import Callable
from typing import Any

import boto3
import pytest

from tests.faults.scenes import trains
from tests.integration.conftest import TABLE, aws, dynamodb
from tests.integration.world import Cloud, World

__all__ = ["aws", "dynamodb"]


@pytest.fixture(scope="session")
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def new_world(dynamodb: Any, cloud: Cloud) -> Callable[[], World]:
    """Makes worlds one after the other; each starts empty."""
    schema = dynamodb.describe_table(TableName=TABLE)["Table"]
    index = schema["GlobalSecondaryIndexes"][0]
    sqs = boto3.client("sqs")

    def make() -> World:
        dynamodb.delete_table(TableName=TABLE)
        dynamodb.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=schema["KeySchema"],
            AttributeDefinitions=schema["AttributeDefinitions"],
            GlobalSecondaryIndexes=[{key: index[key] for key in ("IndexName", "KeySchema", "Projection")}],
        )
        return World(
            cloud=cloud, queue_url=sqs.create_queue(QueueName=f"doorbell-{next(numbers)}")["QueueUrl"]
        )

    numbers = iter(range(10_000))
    return make


@pytest.fixture
def world(new_world: Callable[[], World]) -> World:
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
