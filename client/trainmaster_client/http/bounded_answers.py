"""One answer to one request, with bounds on its length and on the time until its last byte.

A read timeout is no bound: it begins again with each byte, so a server that sends one every few seconds, or
never ends its headers, would hold its caller for ever.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session

from trainmaster_client.http.answers import Answer

LARGEST_ANSWER_BYTES = 10 * 1024 * 1024
"""API Gateway passes on no more. Source: API Gateway quotas, payload size."""
_CHUNK_BYTES = 64 * 1024


class UnboundedAnswerError(Exception):
    """Raised for an answer that does not come to an end; the message is a part of a sentence."""


def bounded_answer(http: URLLib3Session, request: AWSPreparedRequest, *, seconds: float) -> Answer:
    """Send a request and read its answer as it comes: nothing is unpacked, no redirect is followed.

    The exchange runs in a thread of its own, which can be left: a thread that waits for the network cannot be
    interrupted. It is a daemon, so that it keeps no program from ending.

    Raises:
        UnboundedAnswerError: It is too long, or not whole after so many seconds.
        botocore.exceptions.BotoCoreError: The connection failed.
    """
    abandoned = threading.Event()
    outcome = _Outcome(lambda: _whole_answer(http, request, abandoned))
    threading.Thread(target=outcome.run, name="trainmaster-answer", daemon=True).start()
    if not outcome.done.wait(seconds):
        abandoned.set()
        raise UnboundedAnswerError(f"its answer is not whole after {seconds:.0f} s")
    if outcome.error is not None:
        raise outcome.error
    assert outcome.answer is not None
    return outcome.answer


class _Outcome:
    """Carries a thread's result, or the error that it ended with."""

    def __init__(self, act: Callable[[], Answer]) -> None:
        self._act = act
        self.done = threading.Event()
        self.answer: Answer | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answer = self._act()
        except BaseException as error:  # noqa: BLE001  it is raised where the answer is waited for
            self.error = error
        self.done.set()


def _whole_answer(http: URLLib3Session, request: AWSPreparedRequest, abandoned: threading.Event) -> Answer:
    request.stream_output = True
    response = http.send(request)
    headers = {name.lower(): value for name, value in response.headers.items()}
    try:
        length = headers.get("content-length", "")
        if request.method != "HEAD" and length.isdecimal() and len(length) < len(str(2**63)):
            _check_length(int(length))
        body = whole_body(_chunks(response.raw, abandoned))
    except BaseException:
        response.raw.close()  # what is left of it is not the next answer
        raise
    return Answer(status=response.status_code, headers=headers, body=body)


def whole_body(chunks: Iterable[bytes], *, largest: int = LARGEST_ANSWER_BYTES) -> bytes:
    """Join a body that comes in parts; raises UnboundedAnswerError where it is longer."""
    body = bytearray()
    for chunk in chunks:
        body += chunk
        _check_length(len(body), largest)
    return bytes(body)


def _chunks(raw: Any, abandoned: threading.Event) -> Iterable[bytes]:  # noqa: ANN401  urllib3's answer
    for chunk in raw.stream(_CHUNK_BYTES, decode_content=False):
        if abandoned.is_set():
            raise UnboundedAnswerError("nobody waits for it any more")
        yield chunk


def _check_length(length: int, largest: int = LARGEST_ANSWER_BYTES) -> None:
    if length > largest:
        raise UnboundedAnswerError(f"its answer is longer than {largest // 1024 // 1024} MiB")
