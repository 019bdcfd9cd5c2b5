"""Row H12: the stack is updated while messages and messages are under way; later it may be rolled back."""

import json
from dataclasses import replace
from typing import Any

import pytest
from trainmaster.adapters.dynamodb.layout import MESSAGE_SCHEMA
from trainmaster.core.outbox.messages import MessageKind, OutboxMessage
from trainmaster.core.policy import UNMANAGED

from tests.faults.spoiling import set_aside
from tests.integration.messages import request
from tests.integration.world import World
from tests.unit.core.outbox.examples import RECORD


def wake(world: World, *bodies: str) -> list[str]:
    """Deliver wake-ups at once; the ids of those that are sent back."""
    records = [{"messageId": str(number), "body": body} for number, body in enumerate(bodies)]
    failures = world.call("schedule", {"Records": records})["batchItemFailures"]
    return [failure["itemIdentifier"] for failure in failures]


def test_H12_a_ring_of_before_versions_still_wakes_its_pool(world: World) -> None:
    world.submit("job1")
    assert wake(world, '{"pool": "main"}') == []
    assert world.states("job1") == ["running"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('{"version": 2, "pool": "main"}', id="of a later version"),
        pytest.param('{"version": "1", "pool": "main"}', id="a version in another form"),
        pytest.param('{"version": 1, "queue": "main"}', id="no pool"),
        pytest.param('{"version": 1, "pool": ["main"]}', id="a pool in another form"),
        pytest.param('["main"]', id="a list"),
        pytest.param("main", id="no JSON"),
    ],
)
def test_H12_a_ring_nobody_here_can_read_goes_back_and_the_others_are_answered(
    world: World, body: str
) -> None:
    """After five times SQS puts it into the dead letters, which an alarm watches."""
    world.submit("job1")
    assert wake(world, body, '{"version": 1, "pool": "main"}') == ["0"]
    assert world.states("job1") == ["running"]


def test_H12_a_ring_of_today_says_its_version(world: World) -> None:
    world.submit("job1")
    (message,) = world._wake_ups(again_in_seconds=0)
    assert json.loads(message["Body"]) == {"version": 1, "pool": "main"}


def test_H12_messages_of_a_later_version_are_left_to_it_and_the_others_are_done(world: World) -> None:
    world.sagemaker.run_outside(request("stray"))
    for name in ("a", "b"):
        message = OutboxMessage(
            id=name,
            kind=MessageKind.STOP_UNMANAGED,
            at=world.now,
            training_job_name="stray",
            found=replace(RECORD, training_job_name="stray"),
        )
        world.wiring.store.leave(UNMANAGED, [message])
    later: dict[str, Any] = {"schema": {"N": str(MESSAGE_SCHEMA + 1)}, "kind": {"S": "of-next-year"}}
    without: dict[str, Any] = {}
    for item in world.items():
        if item["pk"]["S"] == "E#-":
            changed = later if item["sk"]["S"] == "a" else without
            item.pop("schema")  # as rows were before they had one
            world.cloud.client("dynamodb").put_item(TableName="trainmaster", Item=item | changed)
    assert wake(world, '{"pool": "-"}') == []
    assert world.sagemaker.jobs["stray"].stops == 1
    assert [item["sk"]["S"] for item in world.items() if item["pk"]["S"] == "E#-"] == ["a"]
    assert set_aside(world)["all"] == 0, "nothing is wrong with it"
