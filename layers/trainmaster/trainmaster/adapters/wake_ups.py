"""Send wake-ups over SQS, one message a pool; the schedule function handles them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.core.errors import UnavailableError

VERSION = 1
"""Version of the messages written here; a message without a version is of version 1."""
BATCH = 10
"""Messages of one SendMessageBatch. Source: SQS limits."""


class SqsWakeUps:
    def __init__(self, client: Any, *, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, pools: Iterable[str], *, hops: int = 0) -> None:
        """Send a wake-up for each pool. Raises UnavailableError; the reconciler sends one within a minute."""
        names = sorted(set(pools))
        for start in range(0, len(names), BATCH):
            self._send(names[start : start + BATCH], hops)

    def _send(self, pools: list[str], hops: int) -> None:
        counted = {"hops": hops} if hops else {}
        entries = [
            {"Id": str(number), "MessageBody": json.dumps({"version": VERSION, "pool": pool} | counted)}
            for number, pool in enumerate(pools)
        ]
        try:
            answer = self._client.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
        except (ClientError, BotoCoreError) as error:
            raise UnavailableError("the wake-up queue did not take the message") from error
        if answer.get("Failed"):
            raise UnavailableError("the wake-up queue refused a message")


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUp:
    pool: str
    hops: int
    """Passes in a row so far that could not finish and have each requested the next one."""


def wake_up_of(body: str) -> WakeUp:
    """Read a message. Raises ValueError for one that no release of the stack has written."""
    message = json.loads(body)
    if not isinstance(message, dict) or not isinstance(message.get("pool"), str):
        raise ValueError("the message names no pool")  # noqa: TRY004  one error, whatever is wrong with it
    if message.get("version", 1) != VERSION:
        raise ValueError(f"the message has version {message['version']!r}, this code reads {VERSION}")
    hops = message.get("hops", 0)
    return WakeUp(pool=message["pool"], hops=hops if isinstance(hops, int) else 0)
