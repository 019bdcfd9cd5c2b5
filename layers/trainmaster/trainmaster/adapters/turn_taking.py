"""Make calls of SageMaker in the account's turn; a throttled call is tried again at the shared pace."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from trainmaster.core.errors import ThrottledError
from trainmaster.ports import Turns

T = TypeVar("T")

THROTTLES = frozenset(
    {"ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded"}
)
TRIES = 3
"""Attempts at a call that AWS throttles."""
PATIENCE = timedelta(seconds=45)
"""Longest wait for the turn of one call."""


class TurnTaking:
    """Waits for turns within the time that ``left`` returns; without ``turns`` calls are made at once."""

    def __init__(
        self, turns: Turns | None = None, *, left: Callable[[], timedelta] = lambda: PATIENCE
    ) -> None:
        self._turns = turns
        self._left = left

    def make(self, operation: str, send: Callable[[], T], *, has_turn: bool = False) -> T:
        """Make one call when its turn comes, and return its answer.

        Args:
            operation: AWS's name for it.
            send: Makes the call.
            has_turn: The caller has waited for it before.

        Raises:
            ThrottledError: It was refused a few times, or its turn does not come in time.
        """
        if self._turns is None:
            return send()
        why = "its turn does not come in time"
        for number in range(TRIES):
            waits = number > 0 or not has_turn
            if waits and not self._turns.wait_for(operation, most=min(self._left(), PATIENCE)):
                break
            try:
                answer = send()
            except ClientError as error:
                why = error.response["Error"]["Code"]
                if why not in THROTTLES:
                    raise
                self._turns.throttled(operation)
            else:
                self._turns.accepted(operation)
                return answer
        raise ThrottledError(f"{operation} was refused: {why}")

    def pages(
        self, operation: str, send: Callable[..., dict[str, Any]], **arguments: Any
    ) -> Iterator[dict[str, Any]]:
        """Yield the pages of a list operation; each page waits for its own turn."""
        while True:
            page = self.make(operation, partial(send, **arguments))
            yield page
            if not page.get("NextToken"):
                return
            arguments["NextToken"] = page["NextToken"]
