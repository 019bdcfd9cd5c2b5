"""Decide who may see the gateway's pages: whoever has a token that is valid once, then that page's session.

The token is in the fragment of a link, which browsers send to no server. The page exchanges it for a session,
keeps that in the storage of its origin, which has the port in it, and sends it in a header. A cookie would go
to every port of the host, so whatever else the browser opens on this machine could use it.
"""

import hmac
import secrets
import threading
from collections import deque
from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from typing import TypeAlias

from trainmaster_client.gateway.gateway_files import TOKEN_BYTES
from trainmaster_client.gateway.json_protocol import CallRefusedError

FRAGMENT_NAME = "token"
TOKEN_HEADER = "trainmaster-token"  # noqa: S105  its name
"""Header of the call that exchanges a token."""
SESSION_HEADER = "trainmaster-session"
"""Header of each call of a page. Browsers let no page of another origin send it: they ask first."""
_UNSPENT = 32
"""Unused tokens that are kept; the oldest are dropped."""
_BEARER = "Bearer "
_NOT_YOURS = (
    "This page is for whoever started the gateway. A link opens it once; a new one: trainmaster gateway "
    "--print-env"
)

Headers: TypeAlias = Mapping[str, str]
"""Names in lower case."""


class PageKeys:
    """Tokens that are good once, and the session of this process. Threads may share it.

    Args:
        token: The gateway's own, for programs: they send it as a bearer token.
    """

    def __init__(self, *, token: str) -> None:
        self._token = token
        self._session = secrets.token_urlsafe(TOKEN_BYTES)
        self._unspent: deque[str] = deque(maxlen=_UNSPENT)
        self._spending = threading.Lock()

    def one_time(self) -> str:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        with self._spending:
            self._unspent.append(token)
        return token

    def admit(self, headers: Headers) -> None:
        """Let in a page by its session, and a program by the gateway's token. Raises CallRefusedError."""
        is_page = _is_same(headers.get(SESSION_HEADER, ""), self._session)
        is_program = _is_same(headers.get("authorization", ""), f"{_BEARER}{self._token}")
        if not is_page and not is_program:
            raise _denied(_NOT_YOURS)

    def exchange(self, headers: Headers) -> str:
        """Answer the session to whoever has a token that is good once. Raises CallRefusedError."""
        if not self._spend(headers.get(TOKEN_HEADER, "")):
            raise _denied(_NOT_YOURS)
        return self._session

    def link_key(self, name: str) -> str:
        """Return a key that opens one thing by a link, in a tab of its own: a link sends no header.

        It is worth nothing for anything else, and like the session ends with the process.
        """
        return hmac.new(self._session.encode(), name.encode(), sha256).hexdigest()

    def admit_link(self, name: str, key: str) -> None:
        """Raises CallRefusedError where the key is not that of ``link_key``."""
        if not _is_same(key, self.link_key(name)):
            raise _denied(_NOT_YOURS)

    def _spend(self, token: str) -> bool:
        """Use up a token; tell whether it was valid. An empty token never is."""
        with self._spending:
            spent = next((unspent for unspent in self._unspent if _is_same(unspent, token)), "")
            if spent:
                self._unspent.remove(spent)
        return bool(spent)


def refuse_changes(method: str, *, are_allowed: bool) -> None:
    """Raises CallRefusedError for any method but GET unless changes are allowed."""
    if method != "GET" and not are_allowed:
        raise _denied(
            f"This gateway only reads: {method} is refused. To allow it, start it with --allow-changes."
        )


def _is_same(given: str, key: str) -> bool:
    return hmac.compare_digest(given.encode(), key.encode())


def _denied(message: str) -> CallRefusedError:
    return CallRefusedError("AccessDeniedException", message, status=HTTPStatus.FORBIDDEN)
