"""AWS at the last step before the network: answers what clients of one boto3 session are about to send."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

Document = dict[str, Any]


class _Raw:
    """A body as urllib3 streams it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: object, **__: object) -> list[bytes]:
        return [self._body]


@dataclass(slots=True)
class FakeAws:
    """What is not scripted is refused, so nothing leaves this process."""

    calls: list[tuple[str, Document]] = field(default_factory=list)
    """(operation, body) in their order."""
    answers: dict[str, Callable[[Document], Document]] = field(default_factory=dict)
    """Operation -> answer; one with ``__type`` is an error."""

    def operations(self) -> list[str]:
        return [operation for operation, _ in self.calls]

    def forget(self) -> None:
        self.calls.clear()
        self.answers.clear()

    def attach(self, boto_session: boto3.Session) -> None:
        boto_session.events.register("before-send", self._answer)  # type: ignore[arg-type]  # stubs: no answer

    def _answer(self, event_name: str, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        operation = event_name.rpartition(".")[2]
        body = _body(request.body)
        self.calls.append((operation, body))
        assert operation in self.answers, f"{event_name} was about to be sent"
        answer = self.answers[operation](body)
        headers = HTTPHeaders()
        headers["content-type"] = "application/x-amz-json-1.1"
        status = 400 if "__type" in answer else 200
        return AWSResponse(request.url, status, headers, _Raw(json.dumps(answer).encode()))


def _body(raw: Any) -> Document:
    text = raw.decode() if isinstance(raw, bytes) else raw or "{}"
    try:
        found: Document = json.loads(text)
    except ValueError:
        found = dict(parse_qsl(text))
    return found
