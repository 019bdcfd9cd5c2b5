"""Notices to the outside: events on the account's default bus, mail by SNS."""

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


MAX_SUBJECT = 100
"""Characters of a subject, printable ASCII. Source: SNS API reference, Publish."""


class SnsMailer:
    def __init__(self, client: Any, *, topic_arn: str) -> None:
        self._client = client
        self._topic_arn = topic_arn

    def mail(self, subject: str, text: str, attributes: Mapping[str, str]) -> None:
        plain = subject.encode("ascii", "replace").decode()[:MAX_SUBJECT]
        try:
            self._client.publish(
                TopicArn=self._topic_arn,
                Subject=plain,
                Message=text,
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": content}
                    for name, content in attributes.items()
                    if content
                },
            )
        except (ClientError, BotoCoreError) as error:
            raise UnavailableError("SNS did not take the message") from error
