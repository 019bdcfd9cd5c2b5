"""SNS topics: what is published goes to the functions that subscribe."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.clock import TwinClock
from local.deployment.wiring import Subscription


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    subscriptions: Sequence[Subscription]
    clock: TwinClock
    deliver: Callable[[str, Mapping[str, Any]], None]
    """(ARN of the function, event); returns before the function runs."""

    def published(self, params: Mapping[str, Any]) -> None:
        """Take the parameters of a Publish that succeeded."""
        for subscription in self.subscriptions:
            if subscription.topic_arn == params.get("TopicArn"):
                self.deliver(subscription.function_arn, self._event(subscription, params))

    def _event(self, subscription: Subscription, params: Mapping[str, Any]) -> dict[str, Any]:
        message = {
            "Type": "Notification",
            "MessageId": str(uuid.uuid4()),
            "TopicArn": subscription.topic_arn,
            "Subject": params.get("Subject"),
            "Message": params.get("Message"),
            "Timestamp": self.clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "MessageAttributes": {
                name: {"Type": value.get("DataType"), "Value": value.get("StringValue")}
                for name, value in (params.get("MessageAttributes") or {}).items()
            },
        }
        record = {
            "EventSource": "aws:sns",
            "EventVersion": "1.0",
            "EventSubscriptionArn": subscription.arn,
            "Sns": message,
        }
        return {"Records": [record]}
