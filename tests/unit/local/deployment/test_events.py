"""Rules, faults of delivery, schedules and topics, on a manual clock."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.clock import TwinClock
from local.deployment.events.delivery_faults import DeliveryFaults
from local.deployment.events.router import EventRouter
from local.deployment.events.rule_book import RuleBook
from local.deployment.events.schedules import Scheduler
from local.deployment.events.topics import Topics
from local.deployment.wiring import Rule, Schedule, Subscription
from local.wire import AwsError, Principal

START = datetime(2026, 1, 1, tzinfo=UTC)
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:f"
CALLER = Principal(arn="arn:aws:iam::123456789012:user/u", account_id="123456789012", access_key_id="A")


class Mailbox:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def send(self, queue_arn: str, message: str) -> None:
        self.sent.append((queue_arn, json.loads(message)))

    def deliver(self, function_arn: str, event: Mapping[str, Any]) -> None:
        assert function_arn == FUNCTION
        self.events.append(dict(event))


@pytest.fixture
def clock():
    clock = TwinClock(manual=True, speed=1.0, start=START)
    yield clock
    clock.close()


def router(clock: TwinClock, mailbox: Mailbox, faults: DeliveryFaults, pattern: Any) -> EventRouter:
    def forward(operation: str, params: dict[str, Any]) -> dict[str, Any]:
        if operation == "PutEvents":
            return {"Entries": [{"EventId": f"id-{each['Source']}"} for each in params["Entries"]]}
        return {"Forwarded": operation}

    return EventRouter(
        rules=[Rule(arn="arn:rule", pattern=pattern, function_arns=(FUNCTION,))],
        faults=faults,
        clock=clock,
        region="us-east-1",
        account_id="123456789012",
        deliver=mailbox.deliver,
        forward=forward,
        book=RuleBook(forward),
        send=mailbox.send,
    )


def test_a_training_event_reaches_the_function_of_a_matching_rule(clock: TwinClock) -> None:
    mailbox = Mailbox()
    bus = router(clock, mailbox, DeliveryFaults(clock, seed=0), {"source": ["aws.sagemaker"]})
    bus.publish({"TrainingJobName": "j"}, ["arn:j"])
    (event,) = mailbox.events
    assert event.pop("id")
    assert event == {
        "version": "0",
        "detail-type": "SageMaker Training Job State Change",
        "source": "aws.sagemaker",
        "account": "123456789012",
        "time": "2026-01-01T00:00:00Z",
        "region": "us-east-1",
        "resources": ["arn:j"],
        "detail": {"TrainingJobName": "j"},
    }


def test_an_event_that_no_rule_selects_goes_nowhere(clock: TwinClock) -> None:
    mailbox = Mailbox()
    bus = router(clock, mailbox, DeliveryFaults(clock, seed=0), {"source": ["other"]})
    bus.publish({}, [])
    assert mailbox.events == []


def test_own_events_are_routed_and_those_in_the_name_of_aws_are_refused(clock: TwinClock) -> None:
    mailbox = Mailbox()
    bus = router(clock, mailbox, DeliveryFaults(clock, seed=0), {"source": [{"exists": True}]})
    entries = [
        {"Source": "aws.sagemaker", "DetailType": "t", "Detail": "{}"},
        {"Source": "trainmaster", "DetailType": "t", "Detail": '{"a": 1}', "Resources": ["r"]},
        {"Source": "elsewhere", "DetailType": "t", "Detail": "{}", "EventBusName": "mine"},
    ]
    answer = bus.call("PutEvents", {"Entries": entries}, CALLER)
    assert answer["FailedEntryCount"] == 1
    assert [each.get("ErrorCode") for each in answer["Entries"]] == [
        "NotAuthorizedForSourceException",
        None,
        None,
    ]
    assert [(each["source"], each["id"], each["detail"]) for each in mailbox.events] == [
        ("trainmaster", "id-trainmaster", {"a": 1})
    ]


def test_other_calls_of_the_service_are_forwarded(clock: TwinClock) -> None:
    bus = router(clock, Mailbox(), DeliveryFaults(clock, seed=0), {"source": ["x"]})
    assert bus.call("ListRules", {}, CALLER) == {"Forwarded": "ListRules"}


def sent_through(faults: DeliveryFaults, count: int) -> list[int]:
    delivered: list[int] = []
    for number in range(count):
        faults.pass_on(lambda number=number: delivered.append(number))  # type: ignore[misc]
    return delivered


def test_without_faults_each_delivery_passes_once_and_in_order(clock: TwinClock) -> None:
    assert sent_through(DeliveryFaults(clock, seed=0), 5) == [0, 1, 2, 3, 4]


def test_a_rate_of_one_meets_every_delivery(clock: TwinClock) -> None:
    faults = DeliveryFaults(clock, seed=0)
    faults.set(duplicate=1)
    assert sent_through(faults, 3) == [0, 0, 1, 1, 2, 2]
    faults.set(drop=1.0)
    assert sent_through(faults, 3) == []


def test_a_number_above_one_meets_the_next_deliveries_alone(clock: TwinClock) -> None:
    faults = DeliveryFaults(clock, seed=0)
    faults.set(drop=2)
    assert sent_through(faults, 4) == [2, 3]


def test_the_same_seed_gives_the_same_faults(clock: TwinClock) -> None:
    faults = DeliveryFaults(clock, seed=0)
    faults.set(drop=0.5, seed=7)
    first = sent_through(faults, 50)
    faults.set(drop=0.5, seed=7)
    assert sent_through(faults, 50) == first
    assert 0 < len(first) < 50


def test_a_reordered_delivery_comes_after_the_next_one(clock: TwinClock) -> None:
    faults = DeliveryFaults(clock, seed=0)
    faults.set(reorder=2)
    assert sent_through(faults, 4) == [2, 0, 1, 3]


def test_a_reordered_delivery_that_nothing_passes_comes_by_itself(clock: TwinClock) -> None:
    faults = DeliveryFaults(clock, seed=0)
    faults.set(reorder=1)
    delivered = sent_through(faults, 1)
    assert delivered == []
    clock.advance(timedelta(minutes=1))
    assert delivered == [0]


def test_a_schedule_fires_once_each_period(clock: TwinClock) -> None:
    mailbox = Mailbox()
    scheduler = Scheduler(clock=clock, region="us-east-1", account_id="123456789012", deliver=mailbox.deliver)
    schedule = Schedule(
        arn="arn:s", every=timedelta(minutes=1), function_arn=FUNCTION, role_arn="r", payload=None
    )
    scheduler.start(schedule)
    clock.advance(timedelta(seconds=59))
    assert mailbox.events == []
    clock.advance(timedelta(seconds=121))
    assert [event["time"] for event in mailbox.events] == [
        "2026-01-01T00:01:00Z",
        "2026-01-01T00:02:00Z",
        "2026-01-01T00:03:00Z",
    ]
    assert mailbox.events[0]["resources"] == ["arn:s"]


def test_a_schedule_with_a_payload_sends_it(clock: TwinClock) -> None:
    mailbox = Mailbox()
    scheduler = Scheduler(clock=clock, region="us-east-1", account_id="123456789012", deliver=mailbox.deliver)
    scheduler.start(
        Schedule(
            arn="arn:s", every=timedelta(minutes=1), function_arn=FUNCTION, role_arn="r", payload='{"a": 1}'
        )
    )
    clock.advance(timedelta(minutes=1))
    assert mailbox.events == [{"a": 1}]


def test_a_message_reaches_the_functions_that_subscribe_to_its_topic(clock: TwinClock) -> None:
    mailbox = Mailbox()
    subscriptions = [Subscription(arn="arn:sub", topic_arn="arn:topic", function_arn=FUNCTION)]
    topics = Topics(subscriptions=subscriptions, clock=clock, deliver=mailbox.deliver)
    topics.published({"TopicArn": "arn:other", "Message": "no"})
    topics.published(
        {
            "TopicArn": "arn:topic",
            "Message": "yes",
            "Subject": "s",
            "MessageAttributes": {"k": {"DataType": "String", "StringValue": "v"}},
        }
    )
    (event,) = mailbox.events
    (record,) = event["Records"]
    assert (record["EventSource"], record["EventSubscriptionArn"]) == ("aws:sns", "arn:sub")
    message = record["Sns"]
    assert (message["Message"], message["Subject"], message["TopicArn"]) == ("yes", "s", "arn:topic")
    assert message["MessageAttributes"] == {"k": {"Type": "String", "Value": "v"}}
    assert message["Timestamp"] == "2026-01-01T00:00:00.000Z"


QUEUE = "arn:aws:sqs:us-east-1:123456789012:q"


def rule_for(bus: EventRouter, name: str, pattern: Any) -> None:
    """A rule made by calls, that tells the queue."""
    bus.call("PutRule", {"Name": name, "EventPattern": json.dumps(pattern)}, CALLER)
    bus.call("PutTargets", {"Rule": name, "Targets": [{"Id": "1", "Arn": QUEUE}]}, CALLER)


def put(bus: EventRouter, source: str) -> None:
    entry = {"Source": source, "DetailType": "t", "Detail": '{"a": 1}'}
    bus.call("PutEvents", {"Entries": [entry]}, CALLER)


def test_a_rule_made_by_calls_tells_its_queue_of_what_it_selects(clock: TwinClock) -> None:
    mailbox = Mailbox()
    bus = router(clock, mailbox, DeliveryFaults(clock, seed=0), {"source": ["nobody"]})
    rule_for(bus, "mine", {"source": ["trainmaster"]})
    put(bus, "trainmaster")
    put(bus, "another")
    ((queue, event),) = mailbox.sent
    assert (queue, event["source"], event["detail"]) == (QUEUE, "trainmaster", {"a": 1})
    listed = bus.call("ListTargetsByRule", {"Rule": "mine"}, CALLER)
    assert listed == {"Targets": [{"Id": "1", "Arn": QUEUE}]}


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("DisableRule", {"Name": "mine"}),
        ("RemoveTargets", {"Rule": "mine", "Ids": ["1"]}),
    ],
)
def test_a_rule_that_was_taken_back_tells_nobody(
    clock: TwinClock, operation: str, params: dict[str, Any]
) -> None:
    mailbox = Mailbox()
    bus = router(clock, mailbox, DeliveryFaults(clock, seed=0), {"source": ["nobody"]})
    rule_for(bus, "mine", {"source": ["trainmaster"]})
    bus.call(operation, params, CALLER)
    put(bus, "trainmaster")
    assert mailbox.sent == []


def test_a_rule_goes_after_its_targets(clock: TwinClock) -> None:
    bus = router(clock, Mailbox(), DeliveryFaults(clock, seed=0), {"source": ["nobody"]})
    rule_for(bus, "mine", {"source": ["trainmaster"]})
    with pytest.raises(AwsError, match="has targets"):
        bus.call("DeleteRule", {"Name": "mine"}, CALLER)
    bus.call("RemoveTargets", {"Rule": "mine", "Ids": ["1"]}, CALLER)
    assert bus.call("DeleteRule", {"Name": "mine"}, CALLER) == {"Forwarded": "DeleteRule"}


@pytest.mark.parametrize(
    ("operation", "params", "code"),
    [
        ("PutRule", {"Name": "r", "ScheduleExpression": "rate(1 minute)"}, "ValidationException"),
        ("PutRule", {"Name": "r", "EventPattern": "{"}, "InvalidEventPatternException"),
        (
            "PutRule",
            {"Name": "r", "EventPattern": '{"a": [{"numeric": [">", 1]}]}'},
            "InvalidEventPatternException",
        ),
        ("PutTargets", {"Rule": "unknown", "Targets": []}, "ResourceNotFoundException"),
        ("PutTargets", {"Rule": "mine", "Targets": [{"Id": "2", "Arn": FUNCTION}]}, "ValidationException"),
    ],
)
def test_what_the_twin_does_not_know_of_rules_is_refused(
    clock: TwinClock, operation: str, params: dict[str, Any], code: str
) -> None:
    bus = router(clock, Mailbox(), DeliveryFaults(clock, seed=0), {"source": ["nobody"]})
    rule_for(bus, "mine", {"source": ["trainmaster"]})
    with pytest.raises(AwsError) as caught:
        bus.call(operation, params, CALLER)
    assert caught.value.code == code
