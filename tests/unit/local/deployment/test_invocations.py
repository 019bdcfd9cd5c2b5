"""Asynchronous invocations and the reading of queues, on a manual clock and without processes."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from local.clock import TwinClock
from local.deployment.background import Background
from local.deployment.lambda_runtime.asynchronous import AsyncInvoker
from local.deployment.lambda_runtime.invocation import Fault, Outcome
from local.deployment.lambda_runtime.queue_trigger import QueueReader, SqsQueue
from local.deployment.wiring import AsyncSettings, QueueTrigger

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:f"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:q"
OK = Outcome(payload=b"null")
FAILED = Outcome.of_fault(Fault.EXITED, "gone")


@pytest.fixture
def clock() -> Iterator[TwinClock]:
    clock = TwinClock(manual=True, speed=1.0, start=datetime(2026, 1, 1, tzinfo=UTC))
    yield clock
    clock.close()


@pytest.fixture
def background(clock: TwinClock) -> Iterator[Background]:
    background = Background(clock.activity)
    yield background
    background.close()


@dataclass
class Function:
    """Answers calls with what it was told to, the last answer for ever."""

    answers: list[Outcome]
    payloads: list[Any] = field(default_factory=list)

    def invoke(self, function_arn: str, payload: bytes) -> Outcome:
        assert function_arn == FUNCTION
        self.payloads.append(json.loads(payload))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def invoker(
    clock: TwinClock, background: Background, function: Function, settings: AsyncSettings | None
) -> tuple[AsyncInvoker, list[dict[str, Any]]]:
    dead: list[dict[str, Any]] = []

    def deliver(queue_arn: str, record: str) -> None:
        assert queue_arn == QUEUE
        dead.append(json.loads(record))

    made = AsyncInvoker(
        clock=clock,
        background=background,
        invoke=function.invoke,
        settings={} if settings is None else {FUNCTION: settings},
        deliver_failure=deliver,
    )
    return made, dead


def test_an_event_is_tried_three_times_and_then_goes_to_the_failure_queue(
    clock: TwinClock, background: Background
) -> None:
    function = Function([FAILED])
    asynchronous, dead = invoker(clock, background, function, AsyncSettings(on_failure_arn=QUEUE))
    asynchronous.submit(FUNCTION, {"n": 1})
    clock.advance(timedelta())
    assert len(function.payloads) == 1
    clock.advance(timedelta(minutes=1))
    assert len(function.payloads) == 2
    clock.advance(timedelta(minutes=2))
    assert function.payloads == [{"n": 1}] * 3
    (record,) = dead
    assert record["requestPayload"] == {"n": 1}
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert record["requestContext"]["approximateInvokeCount"] == 3
    assert record["responsePayload"]["errorType"] == "Runtime.ExitError"


def test_an_event_that_succeeds_at_the_second_try_is_done(clock: TwinClock, background: Background) -> None:
    function = Function([FAILED, OK])
    asynchronous, dead = invoker(clock, background, function, AsyncSettings(on_failure_arn=QUEUE))
    asynchronous.submit(FUNCTION, {})
    clock.advance(timedelta(minutes=10))
    assert len(function.payloads) == 2
    assert dead == []


def test_without_retries_the_first_failure_is_the_last(clock: TwinClock, background: Background) -> None:
    function = Function([FAILED])
    settings = AsyncSettings(retries=0, on_failure_arn=QUEUE)
    asynchronous, dead = invoker(clock, background, function, settings)
    asynchronous.submit(FUNCTION, {})
    clock.advance(timedelta(minutes=10))
    assert len(function.payloads) == 1
    assert dead[0]["requestContext"]["approximateInvokeCount"] == 1


def test_an_event_that_would_be_too_old_is_not_tried_again(clock: TwinClock, background: Background) -> None:
    function = Function([FAILED])
    settings = AsyncSettings(max_age=timedelta(seconds=90), on_failure_arn=QUEUE)
    asynchronous, dead = invoker(clock, background, function, settings)
    asynchronous.submit(FUNCTION, {})
    clock.advance(timedelta(minutes=10))
    assert len(function.payloads) == 2
    assert dead[0]["requestContext"]["condition"] == "EventAgeExceeded"


def test_without_a_destination_a_failed_event_is_gone(clock: TwinClock, background: Background) -> None:
    function = Function([FAILED])
    asynchronous, dead = invoker(clock, background, function, None)
    asynchronous.submit(FUNCTION, {})
    clock.advance(timedelta(minutes=10))
    assert len(function.payloads) == 3
    assert dead == []


class InvalidHandleError(Exception):
    pass


class Queue:
    """SQS as the reader calls it: one queue, visibility set by hand."""

    exceptions = SimpleNamespace(ReceiptHandleIsInvalid=InvalidHandleError)

    def __init__(self, *bodies: str) -> None:
        self.messages = {f"m{number}": body for number, body in enumerate(bodies)}
        self.hidden: set[str] = set()
        self.receives = 0

    def get_queue_attributes(self, **_: Any) -> Any:
        return {"Attributes": {"VisibilityTimeout": "720"}}

    def receive_message(self, *, MaxNumberOfMessages: int, **_: Any) -> Any:  # noqa: N803
        self.receives += 1
        ids = [each for each in self.messages if each not in self.hidden][:MaxNumberOfMessages]
        self.hidden.update(ids)
        messages = [
            {
                "MessageId": each,
                "ReceiptHandle": each,
                "Body": self.messages[each],
                "Attributes": {},
                "MD5OfBody": "",
            }
            for each in ids
        ]
        return {"Messages": messages} if messages else {}

    def delete_message(self, *, ReceiptHandle: str, **_: Any) -> None:  # noqa: N803
        del self.messages[ReceiptHandle]

    def change_message_visibility(self, *, ReceiptHandle: str, VisibilityTimeout: int, **_: Any) -> None:  # noqa: N803
        assert VisibilityTimeout == 0
        self.hidden.discard(ReceiptHandle)


def reader(
    clock: TwinClock,
    background: Background,
    queue: Queue,
    invoke: Callable[[str, bytes], Outcome],
    *,
    batch_size: int = 1000,
) -> QueueReader:
    trigger = QueueTrigger(
        function_arn=FUNCTION,
        queue_arn=QUEUE,
        batch_size=batch_size,
        window=timedelta(seconds=1),
        max_concurrency=2,
        reports_item_failures=True,
    )
    return QueueReader(
        trigger, queue=SqsQueue(queue, "http://q"), clock=clock, background=background, invoke=invoke
    )


def bodies(payload: Any) -> list[str]:
    return [record["body"] for record in payload["Records"]]


def test_all_messages_go_to_the_function_in_one_batch_and_are_deleted(
    clock: TwinClock, background: Background
) -> None:
    queue, function = Queue(*(str(number) for number in range(25))), Function([OK])
    reader(clock, background, queue, function.invoke).wake()
    clock.advance(timedelta())
    (payload,) = function.payloads
    assert bodies(payload) == [str(number) for number in range(25)]
    assert payload["Records"][0]["eventSourceARN"] == QUEUE
    assert payload["Records"][0]["awsRegion"] == "us-east-1"
    assert queue.messages == {}


def test_messages_that_the_function_reports_come_back_after_the_visibility_timeout(
    clock: TwinClock, background: Background
) -> None:
    partly = Outcome(payload=b'{"batchItemFailures": [{"itemIdentifier": "m1"}]}')
    queue, function = Queue("a", "b"), Function([partly, OK])
    reader(clock, background, queue, function.invoke).wake()
    clock.advance(timedelta(seconds=719))
    assert queue.messages == {"m1": "b"}
    assert len(function.payloads) == 1
    clock.advance(timedelta(seconds=2))
    assert queue.messages == {}
    assert [bodies(each) for each in function.payloads] == [["a", "b"], ["b"]]


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(FAILED, id="the function failed"),
        pytest.param(Outcome(payload=b'{"batchItemFailures": [{}]}'), id="an unreadable report"),
        pytest.param(Outcome(payload=b'{"batchItemFailures": [{"itemIdentifier": "x"}]}'), id="a foreign id"),
    ],
)
def test_otherwise_all_messages_come_back(clock: TwinClock, background: Background, outcome: Outcome) -> None:
    queue, function = Queue("a", "b"), Function([outcome, OK])
    reader(clock, background, queue, function.invoke).wake()
    clock.advance(timedelta())
    assert set(queue.messages) == {"m0", "m1"}
    clock.advance(timedelta(minutes=13))
    assert queue.messages == {}


def test_nobody_looks_into_the_queue_before_he_is_woken(clock: TwinClock, background: Background) -> None:
    queue, function = Queue("a"), Function([OK])
    reader(clock, background, queue, function.invoke)
    clock.advance(timedelta(hours=1))
    assert queue.receives == 0


def test_a_message_that_comes_during_an_invocation_is_not_forgotten(
    clock: TwinClock, background: Background
) -> None:
    queue = Queue("a")
    seen: list[list[str]] = []

    def invoke(_: str, payload: bytes) -> Outcome:
        seen.append(bodies(json.loads(payload)))
        if len(seen) == 1:
            queue.messages["late"] = "b"
            for _wake in range(5):
                woken.wake()
        return OK

    woken = reader(clock, background, queue, invoke)
    woken.wake()
    clock.advance(timedelta())
    assert sorted(seen) == [["a"], ["b"]]
    assert queue.messages == {}


def test_a_batch_is_never_larger_than_the_trigger_says(clock: TwinClock, background: Background) -> None:
    queue, function = Queue(*(str(number) for number in range(25))), Function([OK])
    reader(clock, background, queue, function.invoke, batch_size=12).wake()
    clock.advance(timedelta())
    assert [len(each["Records"]) for each in function.payloads] == [12, 12, 1]


def test_each_wake_is_heard_and_at_most_two_invocations_run_at_once(
    clock: TwinClock, background: Background
) -> None:
    queue, entered, leave = Queue(), threading.Semaphore(0), threading.Event()
    running: list[int] = [0, 0]
    lock = threading.Lock()

    def invoke(_: str, __: bytes) -> Outcome:
        with lock:
            running[0] += 1
            running[1] = max(running)
        entered.release()
        leave.wait(5)
        with lock:
            running[0] -= 1
        return OK

    woken = reader(clock, background, queue, invoke, batch_size=1)
    for round_number in range(2):
        leave.clear()
        for number in range(4):
            queue.messages[f"{round_number}-{number}"] = "x"
            woken.wake()
        assert entered.acquire(timeout=5)
        assert entered.acquire(timeout=5)
        leave.set()
        clock.advance(timedelta())
        assert queue.messages == {}
    assert running == [0, 2]


def test_a_real_clock_waits_for_the_window_so_that_messages_travel_together() -> None:
    clock = TwinClock(manual=False, speed=5.0)
    background = Background(clock.activity)
    queue, function = Queue("a"), Function([OK])
    woken = reader(clock, background, queue, function.invoke)
    woken.wake()
    queue.messages["soon"] = "b"
    assert clock.activity.wait_idle(5)
    assert [bodies(each) for each in function.payloads] == [["a", "b"]]
    background.close()
    clock.close()
