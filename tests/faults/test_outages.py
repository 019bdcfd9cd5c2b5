"""Rows D1, D8, D11, D12, D14: AWS throttles, cannot be reached, forgets to answer, or is down."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.adapters.client_settings import QUICK
from trainmaster.adapters.dynamodb.calls import LOST_TRIES
from trainmaster.adapters.turn_taking import PATIENCE
from trainmaster.core.errors import TrainmasterError

from tests.builders import A, minutes
from tests.faults.scenes import code_of, ends, trains
from tests.integration.cloud import ANY, OUTAGE, THROTTLED, AnswerLost, Refused, Unreachable
from tests.integration.messages import request
from tests.integration.world import World

pytestmark = pytest.mark.thorough

TRIES = 3
"""Of each call, the first included."""
LONGEST_WAITS_SECONDS = 1 + 2
"""Between three tries: full jitter up to 1 s, then up to 2 s."""
FUNCTION_TIMEOUT_SECONDS = 120
THROTTLED_BY: dict[str, Refused] = {
    "CreateTrainingJob": THROTTLED,
    "DescribeTrainingJob": THROTTLED,
    "ListTags": THROTTLED,
    "StopTrainingJob": THROTTLED,
    "UpdateTrainingJob": THROTTLED,
    "GetItem": Refused("ThrottlingException"),
    "Query": Refused("ProvisionedThroughputExceededException"),
    "TransactWriteItems": Refused("ProvisionedThroughputExceededException"),
    "UpdateItem": Refused("RequestLimitExceeded"),
    "SendMessageBatch": Refused("RequestThrottled"),
    "DescribeAlarms": Refused("Throttling"),
}


def tolerant(act: Callable[[], Any]) -> None:
    """A function that fails is called again by whoever called it."""
    try:
        act()
    except TrainmasterError as error:
        assert error.retryable, error  # noqa: PT017  not what is tested


def everything(world: World) -> None:
    """Every function does what it does, as far as it can."""
    alarm = '{"AlarmName": "trainmaster-trainmaster-idle-job2", "AWSAccountId": "123456789012"}'
    acts: list[Callable[[], Any]] = [
        lambda: world.submit("job5"),
        lambda: world.cancel("job3"),
        lambda: world.tell("job1"),
        lambda: world.call("on_idle_alarm", {"Records": [{"Sns": {"Message": alarm}}]}),
        world.reconcile,
        world.wake,
    ]
    for act in acts:
        tolerant(act)


@pytest.fixture
def at_work(busy: World) -> World:
    """job1 has ended unseen, job2 trains, job3 and job4 wait."""
    busy.submit("job3")
    busy.submit("job4", priority=3)
    busy.sagemaker.end("job1", "Completed")
    return busy


@pytest.mark.parametrize("operation", THROTTLED_BY)
def test_D1_a_throttled_operation_loses_nothing_and_takes_a_bounded_time(
    operation: str, at_work: World
) -> None:
    names = ["job1", "job2", "job3", "job4"]
    at_work.wire.lasting[operation] = THROTTLED_BY[operation]
    everything(at_work)
    assert max(at_work.wire.waits, default=0) <= PATIENCE.total_seconds()
    at_work.wire.heal()
    names += ["job5"] if at_work.wiring.reader.job("job5") else []
    at_work.check(*names)
    assert not any(at_work.job(name).starts.refused > 1 for name in names)
    everything(at_work)
    names += ["job5"] if "job5" not in names else []
    for _ in range(4):
        at_work.now += minutes(10)  # back-offs end
        at_work.a_minute_passes()
    assert at_work.states(*names) == ["completed", "running", "stopped", "running", "pending"]
    at_work.check(*names)


def test_D1_each_call_is_tried_three_times_with_full_jitter(at_work: World) -> None:
    at_work.wire.lasting["DescribeTrainingJob"] = THROTTLED
    at_work.wire.sent.clear()
    tolerant(lambda: at_work.tell("job1"))
    assert at_work.wire.sent.count("DescribeTrainingJob") == TRIES
    assert sum(at_work.wire.waits) <= PATIENCE.total_seconds()


def test_D1_a_call_that_is_never_answered_ends_long_before_its_function() -> None:
    """The longest: connected late and not answered, each time; a claim is leased for 300 seconds."""
    config: Any = QUICK
    longest = TRIES * (config.connect_timeout + config.read_timeout) + LONGEST_WAITS_SECONDS
    assert config.retries == {"mode": "standard", "total_max_attempts": TRIES}
    assert longest == 39
    assert longest < FUNCTION_TIMEOUT_SECONDS


def test_D8_starts_that_do_not_reach_sagemaker_back_off_and_say_so(world: World) -> None:
    world.submit("job1")
    world.submit("job2")
    world.wire.lasting["CreateTrainingJob"] = Unreachable()
    world.schedule()
    for name in ("job1", "job2"):
        job = world.job(name)
        assert (job.state.value, job.attempt, job.is_parked) == ("pending", 0, True)
        waiting = world.api("GET", f"/jobs/{name}")["waiting"]
        assert waiting["code"] == "backoff"
        assert "SageMaker could not be reached" in waiting["message"]
    world.check("job1", "job2")
    world.wire.heal()
    world.now += timedelta(seconds=10)
    world.wake()
    assert world.states("job1", "job2") == ["running", "running"]


def test_D8_a_pass_that_cannot_reach_sagemaker_gives_up_and_fails_so_that_an_alarm_tells(
    world: World,
) -> None:
    policies = world.wiring.policies
    document = {"pools": [{"name": "main", "capacity": {A: 9}}]}
    policies.put(document, pools=["main"], replaces=policies.current())
    names = [f"job{number}" for number in range(6)]
    for name in names:
        world.submit(name)
    world.wire.lasting["CreateTrainingJob"] = Unreachable()
    record = {"messageId": "1", "body": json.dumps({"pool": "main"})}
    assert world.call("schedule", {"Records": [record]})["batchItemFailures"] == [{"itemIdentifier": "1"}]
    backing_off = [name for name in names if world.job(name).is_parked]
    assert backing_off == names[:3]
    assert set(world.states(*names)) == {"pending"}


def test_D8_the_longer_sagemaker_is_out_of_reach_the_rarer_it_is_tried(world: World) -> None:
    world.submit("job1")
    world.wire.lasting["CreateTrainingJob"] = Unreachable()
    waits = []
    for _ in range(10):
        world.wake()
        not_before = world.job("job1").not_before
        assert not_before is not None
        waits.append((not_before - world.now).total_seconds())
        world.now = not_before - timedelta(milliseconds=1)
        tried = world.wire.sent.count("CreateTrainingJob")
        world.wake()
        assert world.wire.sent.count("CreateTrainingJob") == tried, "not before its time"
        world.now = not_before
    most = [10, 20, 40, 80, 160, 320, 640, 900, 900, 900]
    assert all(1 <= wait <= at_most for wait, at_most in zip(waits, most, strict=True)), waits
    assert world.job("job1").attempt == 0
    world.cloud.forget_clients()
    world.wire.heal()
    world.wiring = world.fresh_process()
    world.wake()
    assert world.states("job1") == ["running"]


@pytest.mark.parametrize("lost", [1, 2])
def test_D11_a_transaction_whose_answer_was_lost_is_recognised_when_it_is_sent_again(
    lost: int, world: World
) -> None:
    """Botocore sends it again under the same token; DynamoDB knows that it has it."""
    world.wire.strike("TransactWriteItems", lost, AnswerLost())
    assert world.submit("job1")["status"] == 201
    world.wire.strike("TransactWriteItems", lost, AnswerLost())
    world.schedule()
    assert world.states("job1") == ["running"]
    trains(world, "job1")
    world.sagemaker.end("job1", "Completed")
    world.wire.strike("TransactWriteItems", lost, AnswerLost())
    world.tell("job1")
    assert world.states("job1") == ["completed"]
    world.check("job1")


def test_D11_a_claim_that_succeeded_unseen_is_made_good_when_its_lease_is_over(world: World) -> None:
    world.submit("job1")
    world.wire.strike("TransactWriteItems", LOST_TRIES * TRIES, AnswerLost())
    world.wake()
    assert world.states("job1") == ["starting"]
    assert world.sagemaker.creates == []
    world.check("job1")
    world.a_minute_passes()
    assert world.states("job1") == ["running"]
    assert world.job("job1").attempt == 0
    world.check("job1")


def test_D11_a_submission_that_succeeded_unseen_is_the_same_job_when_it_is_sent_again(world: World) -> None:
    world.wire.strike("TransactWriteItems", LOST_TRIES * TRIES, AnswerLost())
    assert world.submit("job1")["status"] == 503
    assert world.submit("job1")["status"] == 200
    world.check("job1")


def test_D11_a_hold_that_was_dropped_unseen_is_not_missed(preempting: World) -> None:
    preempting.cancel("job4")
    preempting.wire.strike("UpdateItem", 1, AnswerLost())
    preempting.wake()
    ends(preempting, "job1", "Stopped")
    assert preempting.states("job1", "job4") == ["running", "stopped"]
    preempting.check("job1", "job2", "job4")


KEY_DISABLED = Refused("AccessDeniedException", members={"message": "The KMS key is disabled"})


def test_D12_without_the_key_callers_get_a_503_and_nothing_is_half_written(at_work: World) -> None:
    before = at_work.items()
    for operation in ("GetItem", "Query", "BatchGetItem", "TransactWriteItems", "UpdateItem"):
        at_work.wire.lasting[operation] = KEY_DISABLED
    at_work.wire.lasting["SendMessageBatch"] = Refused("KmsDisabled")
    calls = [
        at_work.submit("job5"),
        at_work.api("DELETE", "/jobs/job3"),
        at_work.patch("job3", priority=7),
        at_work.api("GET", "/jobs"),
        at_work.api("GET", "/jobs/job1"),
        at_work.api("GET", "/pools"),
        at_work.api("PUT", "/policy/paused", {"paused": True}),
    ]
    assert [one["status"] for one in calls] == [503] * len(calls)
    everything(at_work)
    assert at_work.items() == before
    at_work.wire.heal()
    everything(at_work)
    at_work.a_minute_passes()
    assert at_work.states("job1", "job3", "job4") == ["completed", "stopped", "running"]


def test_D12_a_job_that_is_stored_while_the_queue_has_no_key_starts_within_a_minute(world: World) -> None:
    world.wire.lasting["SendMessageBatch"] = Refused("KmsDisabled")
    assert world.submit("job1")["status"] == 201
    world.wire.heal()
    world.reconcile()
    world.schedule()
    assert world.states("job1") == ["running"]


@pytest.mark.parametrize("trouble", [OUTAGE, Unreachable()], ids=["503 from everywhere", "no network"])
def test_D14_while_everything_fails_nothing_changes_and_then_it_recovers_by_itself(
    trouble: Refused | Unreachable, at_work: World
) -> None:
    before = at_work.items()
    at_work.wire.lasting[ANY] = trouble
    at_work.wire.sent.clear()
    for _ in range(3):
        at_work.now += minutes(1)
        everything(at_work)
    at_work.wire.heal()
    assert at_work.items() == before
    assert "CreateTrainingJob" not in at_work.wire.sent, "nothing is claimed that cannot be written"
    for _ in range(2):
        at_work.a_minute_passes()
    assert at_work.states("job1", "job2", "job3", "job4") == ["completed", "running", "pending", "running"]
    at_work.check("job1", "job2", "job3", "job4")


def test_D14_an_outage_that_begins_in_the_middle_of_a_pass_leaves_what_the_next_one_needs(
    world: World,
) -> None:
    for name in ("job1", "job2"):
        world.submit(name)

    def outage(_: dict[str, Any]) -> Any:
        world.wire.lasting[ANY] = OUTAGE
        return world.sagemaker._CreateTrainingJob(request("job1") | _)

    world.sagemaker.intercept["CreateTrainingJob"] = outage
    tolerant(world.wake)
    world.wire.heal()
    world.check("job1", "job2")
    for _ in range(3):
        world.a_minute_passes()
    assert world.states("job1", "job2") == ["running", "running"]
    assert world.sagemaker.creates == ["job1", "job2"]
    assert code_of(world, "job1") is None
    world.check("job1", "job2")
