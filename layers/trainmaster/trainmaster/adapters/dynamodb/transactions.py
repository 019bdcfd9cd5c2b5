"""TransactWriteItems with the one retry that the SDK does not make."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.core.errors import LostRaceError, UnavailableError

CONFLICT_TRIES = 8
"""Two writers on the same item at the same instant: AWS cancels one and leaves the retry to us."""
CONFLICT_PAUSE_SECONDS = 0.05
MAX_ITEMS = 100
"""Source: DynamoDB limits, TransactWriteItems."""

_CANCELLED = "TransactionCanceledException"
_CONDITION = "ConditionalCheckFailed"
_CONFLICTS = frozenset({"TransactionConflictException", "TransactionInProgressException"})


class ConditionsFailedError(LostRaceError):
    """Rows were not as they had to be."""

    def __init__(self, positions: frozenset[int]) -> None:
        super().__init__("a row changed after it was read")
        self.positions = positions
        """Of the operations whose conditions failed."""


class Transactions:
    """Writes all or nothing. ``pause`` waits between tries (tests hand over one that does not)."""

    def __init__(self, client: Any, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._pause = pause

    def write(self, operations: Sequence[dict[str, Any]]) -> None:
        """Raises LostRaceError when a condition failed, UnavailableError when DynamoDB did not take it.

        botocore resends with the same ClientRequestToken, so a write whose answer was lost is not applied
        twice and does not lose against itself.
        """
        assert len(operations) <= MAX_ITEMS, f"{len(operations)} items in one transaction"
        for number in range(CONFLICT_TRIES):
            if number:
                self._pause(random.uniform(0, CONFLICT_PAUSE_SECONDS * 2 ** (number - 1)))  # noqa: S311  jitter
            try:
                self._client.transact_write_items(TransactItems=list(operations))
            except ClientError as error:
                if not _is_conflict(error):
                    raise _translated(error) from error
            except BotoCoreError as error:
                raise UnavailableError("the table did not answer") from error
            else:
                return
        raise LostRaceError("other writers kept the same rows busy")


def _is_conflict(error: ClientError) -> bool:
    code = error.response["Error"]["Code"]
    return code in _CONFLICTS or (
        code == _CANCELLED and "TransactionConflict" in _reasons(error) and _CONDITION not in _reasons(error)
    )


def _translated(error: ClientError) -> Exception:
    code = error.response["Error"]["Code"]
    if code == _CANCELLED and _CONDITION in _reasons(error):
        return ConditionsFailedError(_failed(error))
    return unavailable(error)


def unavailable(error: ClientError) -> UnavailableError:
    """Throttles, outages, a disabled key: nothing was written, the caller may come back."""
    return UnavailableError(f"the table refused: {error.response['Error']['Code']}")


def _failed(error: ClientError) -> frozenset[int]:
    cancelled = error.response.get("CancellationReasons", [])
    return frozenset(position for position, one in enumerate(cancelled) if one.get("Code") == _CONDITION)


def _reasons(error: ClientError) -> set[str]:
    cancelled = error.response.get("CancellationReasons", [])
    return {reason.get("Code", "None") for reason in cancelled}
