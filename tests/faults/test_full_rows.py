"""Row K5: a row takes no more. Trying again cannot help, so it is a failure that somebody hears of."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from trainmaster.core.errors import WriteRefusedError
from trainmaster.core.lifecycle.change import Change

from local.engine.client import received
from local.wire import Response
from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of
from tests.integration.cloud import json_response
from tests.integration.messages import proxy_event, request
from tests.integration.world import World

TEAMS = [
    {"name": name, "principals": ["arn:aws:iam::123456789012:user/ada"], "roles": "any"}
    for name in ("red", "blue")
]
POLICY = {"pools": [{"name": "main", "capacity": {A: 3}}], "teams": TEAMS}
FULL_ROW = {"pk": {"S": "T#main"}, "sk": {"S": "red"}}
TOO_LARGE = {"Code": "ValidationError", "Message": "Item size to update is above 400 KB"}

Answer = Callable[[World, str, str, AWSPreparedRequest], Response | None]
UNHURT: Answer = World.answer


def unless_it_grows(answer: Answer) -> Answer:
    """DynamoDB cancels a transaction for one row in it that takes no more."""

    def refused(world: World, service: str, operation: str, sent: AWSPreparedRequest) -> Response | None:
        if operation != "TransactWriteItems":
            return answer(world, service, operation, sent)
        items = json.loads(received(sent).body)["TransactItems"]
        reasons = [TOO_LARGE if _is_update_of_it(one) else {"Code": "None"} for one in items]
        if TOO_LARGE not in reasons:
            return None
        body = {"__type": "TransactionCanceledException", "CancellationReasons": reasons}
        return json_response(body, status=400)

    return refused


def _is_update_of_it(operation: dict[str, Any]) -> bool:
    return bool(operation.get("Update", {}).get("Key") == FULL_ROW)


def of_team(team: str, priority: int = 0) -> dict[str, Any]:
    return {"Tags": [{"Key": "team", "Value": team}, {"Key": "priority", "Value": str(priority)}]}


@pytest.fixture
def full(new_world: NewWorld, monkeypatch: pytest.MonkeyPatch) -> World:
    """Team red's row is full, one job of it waits before one of team blue."""
    world = new_world(POLICY)
    world.submit("reds", **of_team("red", 1))
    world.submit("blues", **of_team("blue"))
    monkeypatch.setattr(World, "answer", unless_it_grows(UNHURT))
    return world


def failures_of_a_pass(world: World) -> int:
    record = {"messageId": "1", "body": json.dumps({"pool": "main"})}
    return len(world.call("schedule", {"Records": [record]})["batchItemFailures"])


def test_K5_the_pass_fails_at_once_its_job_says_why_and_others_start(full: World) -> None:
    assert failures_of_a_pass(full) == 1
    assert full.states("reds", "blues") == ["pending", "running"]
    waiting = full.api("GET", "/jobs/reds")["waiting"]
    assert waiting["code"] == "backoff"
    assert "T#main/red: Item size to update is above 400 KB" in waiting["message"]
    assert "reds" not in full.sagemaker.jobs


def test_K5_the_api_answers_500_and_asks_nobody_to_come_back(full: World) -> None:
    answer = full.call("api", proxy_event("POST", "/add-job", request("more", **of_team("red"))))
    told, headers = json.loads(answer["body"]), {**answer["multiValueHeaders"]}
    assert (answer["statusCode"], told["title"]) == (500, "Write refused")
    assert headers["Content-Type"] == ["application/problem+json"]
    assert "Retry-After" not in headers
    assert full.api("GET", "/jobs/more")["status"] == 404
    assert full.submit("beside", **of_team("blue"))["status"] == 201


def test_K5_passes_fail_until_somebody_helps_and_the_job_starts_then(
    full: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [failures_of_a_pass(full) for _ in range(4)] == [1, 1, 1, 1]
    assert code_of(full, "reds") == "backoff"
    monkeypatch.setattr(World, "answer", UNHURT)
    full.now += minutes(1)
    assert failures_of_a_pass(full) == 0
    assert full.states("reds") == ["running"]


def test_K5_a_reason_that_cannot_be_written_fails_the_pass_and_the_others_are_written(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world({"pools": [{"name": "main", "capacity": {A: 1}}]})
    for name, priority in (("runs", 5), ("first", 0), ("second", 0)):
        world.submit(name, priority=priority)
    world.wake()
    monkeypatch.setattr(world.wiring.store._transactions, "write", refusing(world, "first"))
    world.cloud.client("dynamodb").delete_item(
        TableName="trainmaster", Key={"pk": {"S": "P#main"}, "sk": {"S": "told"}}
    )
    for name in ("first", "second"):
        job = world.job(name)
        world.wiring.store.commit([Change(before=job, after=replace(job, waiting=None))], at=world.now)
    assert failures_of_a_pass(world) == 1
    assert world.job("first").waiting is None
    assert world.job("second").waiting is not None


def refusing(world: World, name: str) -> Callable[[Sequence[dict[str, Any]]], None]:
    """The table takes no change of this job that gives it a reason."""
    write = world.wiring.store._transactions.write

    def refused(operations: Sequence[dict[str, Any]]) -> None:
        items = [one["Put"]["Item"] for one in operations if "Put" in one]
        if any(item["pk"]["S"] == f"J#{name}" and "waiting" in item for item in items):
            raise WriteRefusedError("a row takes no more")
        write(operations)

    return refused


def test_K5_a_pool_marks_a_bounded_number_of_teams_and_counts_the_others_all_the_same(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster.adapters.dynamodb.pool_reads.MOST_MARKED_TEAMS", 1)
    world = new_world(POLICY)
    world.submit("reds", **of_team("red", 1))
    for name in ("blues", "more", "most"):
        assert world.submit(name, **of_team("blue"))["status"] == 201
    rows = {(one["pk"]["S"], one["sk"]["S"]): one for one in world.items()}
    counters = rows["P#main", "counters"]
    assert {name for name in counters if name.startswith("team#")} == {"team#red"}
    world.wake()
    assert world.states("reds", "blues", "more", "most") == ["running", "running", "running", "pending"]
    world.check("reds", "blues", "more", "most", capacity=world.capacity())
