"""EventBridge Scheduler: fires on the twin's clock; speed does not shorten AWS's own minutes."""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from local.clock import TwinClock
from local.deployment.wiring import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    clock: TwinClock
    region: str
    account_id: str
    deliver: Callable[[str, Mapping[str, Any]], None]
    """(ARN of the function, event); returns before the function runs."""

    def start(self, schedule: Schedule) -> None:
        """Fire first after one period, then once each period."""
        self.clock.call_later(schedule.every, lambda: self._fire(schedule))

    def _fire(self, schedule: Schedule) -> None:
        self.start(schedule)
        self.deliver(schedule.function_arn, self._event(schedule))

    def _event(self, schedule: Schedule) -> Mapping[str, Any]:
        if schedule.payload is not None:
            payload = json.loads(schedule.payload)
            assert isinstance(payload, dict)
            return payload
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": self.account_id,
            "time": self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self.region,
            "resources": [schedule.arn],
            "detail": "{}",
        }
