"""Asynchronous invocations: queued, tried again after an error, and at last handed to the failure queue.

Source: Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous invocation".
"""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from local.clock import TwinClock
from local.deployment.background import Background
from local.deployment.lambda_runtime.invocation import Outcome
from local.deployment.wiring import AsyncSettings

_RETRY_WAITS = (timedelta(minutes=1), timedelta(minutes=2))
"""Waits before the second and the third attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    function_arn: str
    payload: Mapping[str, Any]
    request_id: str
    queued_at: datetime
    attempts: int = 0
    """Number of attempts already made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncInvoker:
    clock: TwinClock
    background: Background
    invoke: Callable[[str, bytes], Outcome]
    """(ARN of the function, event) -> its answer."""
    settings: Mapping[str, AsyncSettings]
    """ARN of the function -> how it is retried; the defaults of Lambda where there is none."""
    deliver_failure: Callable[[str, str], None]
    """(ARN of the queue, record)."""

    def submit(self, function_arn: str, payload: Mapping[str, Any]) -> None:
        """Invoke later; returns at once."""
        event = _Event(
            function_arn=function_arn,
            payload=payload,
            request_id=str(uuid.uuid4()),
            queued_at=self.clock.now(),
        )
        self._submit(event)

    def _submit(self, event: _Event) -> None:
        self.background.run(f"invocation of {event.function_arn}", lambda: self._attempt(event))

    def _attempt(self, event: _Event) -> None:
        outcome = self.invoke(event.function_arn, json.dumps(event.payload).encode())
        if not outcome.failed:
            return
        settings = self.settings.get(event.function_arn, AsyncSettings())
        made = event.attempts + 1
        if made > settings.retries:
            self._give_up(event, outcome, made, "RetriesExhausted")
            return
        wait = self.clock.scaled(_RETRY_WAITS[made - 1])
        if self.clock.now() + wait - event.queued_at > settings.max_age:
            self._give_up(event, outcome, made, "EventAgeExceeded")
            return
        again = _Event(
            function_arn=event.function_arn,
            payload=event.payload,
            request_id=event.request_id,
            queued_at=event.queued_at,
            attempts=made,
        )
        self.clock.call_later(wait, lambda: self._submit(again))

    def _give_up(self, event: _Event, outcome: Outcome, attempts: int, condition: str) -> None:
        queue_arn = self.settings.get(event.function_arn, AsyncSettings()).on_failure_arn
        if queue_arn is None:
            return
        record = {
            "version": "1.0",
            "timestamp": self.clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "requestContext": {
                "requestId": event.request_id,
                "functionArn": f"{event.function_arn}:$LATEST",
                "condition": condition,
                "approximateInvokeCount": attempts,
            },
            "requestPayload": event.payload,
            "responseContext": {
                "statusCode": 200,
                "executedVersion": "$LATEST",
                "functionError": "Unhandled",
            },
            "responsePayload": json.loads(outcome.payload),
        }
        self.deliver_failure(queue_arn, json.dumps(record))
