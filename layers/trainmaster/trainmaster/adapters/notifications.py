"""Notifier over EventBridge: the account's default bus."""

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.core.errors import UnavailableError

SOURCE = "trainmaster"


class EventBridgeNotifier:
    def __init__(self, client: Any, *, stack: str) -> None:
        self._client = client
        self._stack = stack

    def tell(self, kind: str, detail: Mapping[str, Any]) -> None:
        entry = {
            "Source": SOURCE,
            "DetailType": kind,
            "Detail": json.dumps({"stack": self._stack, **detail}),
        }
        try:
            answer = self._client.put_events(Entries=[entry])
        except (ClientError, BotoCoreError) as error:
            raise UnavailableError("EventBridge did not take the event") from error
        if answer.get("FailedEntryCount"):
            raise UnavailableError("EventBridge did not take the event")
