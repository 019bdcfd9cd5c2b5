"""The default event bus and the mail topic, as far as functions send to them: what was sent is kept."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from local.wire import Response

XML = (
    b'<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult>'
    b"<MessageId>1</MessageId></PublishResult></PublishResponse>"
)


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SentMail:
    subject: str
    text: str
    attributes: dict[str, str]


@dataclass(slots=True)
class Messages:
    events: list[Event] = field(default_factory=list)
    mails: list[SentMail] = field(default_factory=list)

    def put_events(self, body: bytes) -> Response:
        for entry in json.loads(body)["Entries"]:
            assert entry["Source"] == "trainmaster"
            self.events.append(Event(entry["DetailType"], json.loads(entry["Detail"])))
        answer = {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}
        return Response(status=200, body=json.dumps(answer).encode())

    def publish(self, body: bytes) -> Response:
        sent = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        entry = "MessageAttributes.entry."
        names = {key: value for key, value in sent.items() if key.startswith(entry) and key.endswith(".Name")}
        attributes = {
            name: sent[f"{key.removesuffix('Name')}Value.StringValue"] for key, name in names.items()
        }
        self.mails.append(SentMail(sent["Subject"], sent["Message"], attributes))
        return Response(status=200, body=XML)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]
