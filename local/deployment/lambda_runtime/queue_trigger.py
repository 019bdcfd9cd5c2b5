"""Reads a queue for a function: batches, concurrency, partial failures, messages that come back.

Messages are looked for when somebody sends one or one comes back, never by polling.
Source: Lambda Developer Guide, "Using Lambda with Amazon SQS".
"""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from local.clock import TwinClock
from local.deployment.background import Background
from local.deployment.lambda_runtime.invocation import Outcome
from local.deployment.wiring import QueueTrigger

_RECEIVE_MOST = 10
"""SQS API reference, ReceiveMessage, MaxNumberOfMessages."""
_AFTERWARDS = timedelta(milliseconds=1)
"""A message is seen after the instant at which it becomes visible; a manual clock stands still in it."""


class SqsQueue:
    """A queue, by a boto3 client of SQS."""

    def __init__(self, sqs: Any, url: str) -> None:  # noqa: ANN401  a boto3 client
        self._sqs, self._url = sqs, url
        answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
        self.visibility_timeout = timedelta(seconds=int(answer["Attributes"]["VisibilityTimeout"]))

    def receive(self, most: int) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=most,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return list(answer.get("Messages", []))

    def delete(self, receipt_handle: str) -> None:
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=receipt_handle)

    def show_again(self, receipt_handle: str) -> None:
        with suppress(self._sqs.exceptions.ReceiptHandleIsInvalid):  # it was visible earlier, and is done
            self._sqs.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt_handle, VisibilityTimeout=0
            )


class QueueReader:
    """An event source mapping."""

    def __init__(
        self,
        trigger: QueueTrigger,
        *,
        queue: SqsQueue,
        clock: TwinClock,
        background: Background,
        invoke: Callable[[str, bytes], Outcome],
    ) -> None:
        self._trigger = trigger
        self._queue = queue
        self._clock = clock
        self._background = background
        self._invoke = invoke
        self._region = trigger.queue_arn.split(":")[3]
        self._lock = threading.Lock()
        self._readers = 0
        self._woken = False

    def wake(self) -> None:
        """Look into the queue soon."""
        with self._lock:
            self._woken = True
            if self._readers == self._trigger.max_concurrency:
                return  # one of them looks again before it ends
            self._readers += 1
        self._background.run(f"reading {self._trigger.queue_arn}", self._read)

    def _read(self) -> None:
        try:
            while self._take_turn():
                self._wait_for_company()
                while messages := self._receive():
                    self._settle(messages, self._process(messages))
        except BaseException:
            with self._lock:
                self._readers -= 1
            raise

    def _wait_for_company(self) -> None:
        """Wait for the batching window, unless the clock is manual: then no message would come meanwhile."""
        if not self._clock.manual:
            time.sleep(self._clock.scaled(self._trigger.window).total_seconds())

    def _take_turn(self) -> bool:
        with self._lock:
            turn, self._woken = self._woken, False
            if not turn:
                self._readers -= 1  # under the lock that ``wake`` takes: no call of it is lost
            return turn

    def _receive(self) -> list[dict[str, Any]]:
        batch: list[dict[str, Any]] = []
        while len(batch) < self._trigger.batch_size:
            most = min(_RECEIVE_MOST, self._trigger.batch_size - len(batch))
            received = self._queue.receive(most)
            batch += received
            if len(received) < most:
                break
        return batch

    def _process(self, messages: list[dict[str, Any]]) -> set[str]:
        """Invoke the function; answers the ids of messages that failed."""
        event = {"Records": [self._record(message) for message in messages]}
        outcome = self._invoke(self._trigger.function_arn, json.dumps(event).encode())
        everything = {message["MessageId"] for message in messages}
        if outcome.failed:
            return everything
        if not self._trigger.reports_item_failures:
            return set()
        failed = _reported_failures(outcome.payload)
        return everything if failed is None or not failed <= everything else failed

    def _record(self, message: dict[str, Any]) -> dict[str, Any]:
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
            "messageAttributes": message.get("MessageAttributes", {}),
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": self._trigger.queue_arn,
            "awsRegion": self._region,
        }

    def _settle(self, messages: list[dict[str, Any]], failed: set[str]) -> None:
        for message in messages:
            if message["MessageId"] not in failed:
                self._queue.delete(message["ReceiptHandle"])
        back = [message["ReceiptHandle"] for message in messages if message["MessageId"] in failed]
        if back:
            after = self._clock.scaled(self._queue.visibility_timeout)
            self._clock.call_later(after, lambda: self._show_again(back))

    def _show_again(self, receipt_handles: list[str]) -> None:
        """Show failed messages again, as their visibility timeout has passed on the twin's clock."""
        for handle in receipt_handles:
            self._queue.show_again(handle)
        self._clock.call_later(_AFTERWARDS, self.wake)


def _reported_failures(payload: bytes) -> set[str] | None:
    """Return the ids in the function's answer; None if it cannot be read: Lambda then takes all as failed."""
    try:
        answer = json.loads(payload)
        return {failure["itemIdentifier"] for failure in (answer or {}).get("batchItemFailures") or []}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
