"""An API that gives no answer for a while: which errors pass by themselves, and a connection made again."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TypeVar

from trainmaster.core.jobs.spans import length

from trainmaster_client.api import ApiClient
from trainmaster_client.errors import PASSING_ERRORS, CredentialsError, TrainmasterClientError
from trainmaster_client.errors.troubles import Trouble

T = TypeVar("T")
SLOW = timedelta(seconds=5)
"""A read that takes longer is mentioned."""


@dataclass(slots=True, kw_only=True)
class Freshness:
    """Freshness of a picture that is read again and again."""

    answered_at: datetime | None = None
    asked_at: datetime | None = None
    """Instant of the pending request; None if no answer is awaited."""
    error: str = ""
    """Reason why the last read failed; empty if it did not."""

    def answered(self, *, now: datetime) -> None:
        self.answered_at, self.asked_at, self.error = now, None, ""

    def failed(self, error: Exception) -> None:
        self.asked_at, self.error = None, " ".join(str(error).split())

    def trouble(self, *, now: datetime, zone: tzinfo | None = None) -> str:
        """Say since when nothing new came, and why; empty if all is well. The zone is else this machine's."""
        waited = now - self.asked_at if self.asked_at else timedelta()
        why = self.error or (f"no answer for {length(waited)}" if waited >= SLOW else "")
        if not why or self.answered_at is None:
            return why
        then = self.answered_at.astimezone(zone)
        return f"nothing new since {then:%H:%M:%S} ({length(now - self.answered_at)}): {why}"


def needs_credentials(error: TrainmasterClientError) -> bool:
    """Tell whether new credentials help: none are found, or they have expired."""
    return isinstance(error, CredentialsError) or error.trouble is Trouble.EXPIRED_CREDENTIALS


def is_passing(error: TrainmasterClientError) -> bool:
    """Tell whether the same call may be answered later, by itself or after a new login."""
    return isinstance(error, PASSING_ERRORS) or needs_credentials(error)


class Connection:
    """A connection to the API; ``renew`` makes the next call look for credentials again.

    Args:
        make: Connects.
    """

    def __init__(self, make: Callable[[], ApiClient]) -> None:
        self._make = make
        self._api: ApiClient | None = None

    @property
    def api(self) -> ApiClient:
        if self._api is None:
            self._api = self._make()
        return self._api

    def ask(self, call: Callable[[ApiClient], T]) -> T:
        """Make a call; after an expiry the next one finds a login made in another shell.

        Raises TrainmasterClientError.
        """
        try:
            return call(self.api)
        except TrainmasterClientError as error:
            self.lost(error)
            raise

    def lost(self, error: TrainmasterClientError) -> None:
        """Take the error of a failed call: the next call then finds a login made in another shell."""
        if needs_credentials(error):
            self._api = None
