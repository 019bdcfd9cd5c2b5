"""Finds the caller that the key in a request belongs to."""

from local.engine.moto_engine import MotoEngine
from local.identity.identities import Credentials, Identities


class Callers:
    """Everybody with a key: the twin's own users and sessions, and users made through IAM."""

    def __init__(self, identities: Identities, engine: MotoEngine) -> None:
        self._identities = identities
        self._engine = engine

    def credentials_of(self, access_key_id: str) -> Credentials | None:
        known = self._identities.credentials_of(access_key_id)
        if known is not None:
            return known
        made = self._engine.user_of_key(access_key_id)
        if made is None:
            return None
        principal, secret = made
        return Credentials(principal=principal, access_key_id=access_key_id, secret_access_key=secret)
