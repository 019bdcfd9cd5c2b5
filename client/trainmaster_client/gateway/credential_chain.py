"""The gateway's own credentials: the usual chain's, walked again when they expire, without a restart."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import botocore.session
from botocore.credentials import Credentials, ReadOnlyCredentials

from trainmaster_client.errors import CredentialsError, GatewayCredentialsError
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.expiry import CREDENTIAL_ERRORS

WALK_SECONDS = 2.0
"""The chain is walked once in that time, however many calls find their credentials expired: it may run a
program or ask the network."""


class RenewedCredentials(Credentials):
    """Credentials in the form that botocore takes: each signature asks for them. Threads may share them.

    Those of SSO, of a role or of a process renew themselves, as long as the chain that gave them can; those
    of the shared file and of a new ``aws sso login`` are found when the chain is walked again.

    Args:
        load: Walks the chain from its beginning; returns None if the chain has none.
        monotonic: Seconds of a clock that never goes back.
    """

    def __init__(
        self, load: Callable[[], Credentials | None], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__("", "")
        self._load = load
        self._monotonic = monotonic
        self._found: Credentials | None = None
        self._given: tuple[ReadOnlyCredentials, ...] = ()
        self._walked_at: float | None = None
        self._using = threading.RLock()

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Raises CredentialsError, and GatewayCredentialsError where the chain cannot renew them."""
        with self._using:
            try:
                return self._noted(self._chain().get_frozen_credentials())
            except CREDENTIAL_ERRORS:
                self._found = None
            try:
                return self._noted(self._chain().get_frozen_credentials())
            except CREDENTIAL_ERRORS as error:
                self._found = None
                raise GatewayCredentialsError(f"{error}.") from error

    def given(self) -> tuple[ReadOnlyCredentials, ...]:
        """Return the present credentials and those before them, newest first.

        The chain is walked only for the first ones. Empty if the chain has none: then nothing is signed
        either.
        """
        if not self._given:
            with suppress(CredentialsError):
                self.get_frozen_credentials()
        return self._given

    def renew(self, *, refused: ReadOnlyCredentials) -> None:
        """Walk the chain for others than those that AWS called expired. Raises GatewayCredentialsError."""
        with self._using:
            if self.get_frozen_credentials().access_key != refused.access_key:
                return
            now = self._monotonic()
            if self._walked_at is None or now - self._walked_at >= WALK_SECONDS:
                self._walked_at, self._found = now, None
            if self.get_frozen_credentials().access_key == refused.access_key:
                raise GatewayCredentialsError("AWS says that they have expired.")

    def _chain(self) -> Credentials:
        if self._found is None:
            self._found = self._load()
        if self._found is None:
            raise CredentialsError("no AWS credentials found.", trouble=Trouble.NO_CREDENTIALS)
        return self._found

    def _noted(self, frozen: ReadOnlyCredentials) -> ReadOnlyCredentials:
        if not self._given or self._given[0].access_key != frozen.access_key:
            self._given = (frozen, *self._given[:1])
        return frozen


def usual_chain() -> Credentials | None:
    """Load credentials as any session does: environment, profile's files, SSO, a process, a role."""
    return botocore.session.Session().get_credentials()
