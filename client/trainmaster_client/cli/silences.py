"""An API that gives no answer for a while: which errors pass by themselves, and a connection made again."""

from collections.abc import Callable

from trainmaster_client.api import ApiClient
from trainmaster_client.errors import PASSING_ERRORS, CredentialsError, TrainmasterClientError
from trainmaster_client.errors.troubles import Trouble


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

    def lost(self, error: TrainmasterClientError) -> None:
        """Take the error of a failed call: the next call then finds a login made in another shell."""
        if needs_credentials(error):
            self._api = None
