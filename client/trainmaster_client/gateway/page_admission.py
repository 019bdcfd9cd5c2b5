"""Who may see the gateway's pages: who has a token that is good once, then that browser by its cookie.

The token is in the fragment of a link, which browsers send to no server; the page changes it for the cookie.

Any page that a browser shows may send requests to this machine, and pages of its other ports send the cookie
with them: those are refused by what browsers say of where a request comes from.
"""

import hmac
import re
import secrets
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import TypeAlias
from urllib.parse import urlsplit

from trainmaster_client.gateway.admission import OWN_HOSTS
from trainmaster_client.gateway.gateway_files import TOKEN_BYTES
from trainmaster_client.gateway.json_protocol import CallRefusedError

FRAGMENT_NAME = "token"
TOKEN_HEADER = "trainmaster-token"  # noqa: S105  its name
"""Of the call that exchanges a token. No page of another origin can send it: browsers ask first."""
CHANGE_HEADER = "trainmaster-change"
"""Of each call by which a page changes something, for the same reason."""
_UNSPENT = 32
"""Tokens that nobody used yet; the oldest make room."""
_PREFIX_HEADERS = ("x-forwarded-prefix", "x-forwarded-context")
"""Where a proxy says what it took from the path. Source: jupyter-server-proxy, handlers.py."""
_PROXY_HEADERS = (*_PREFIX_HEADERS, "x-forwarded-host", "x-forwarded-for", "x-forwarded-proto", "forwarded")
_PREFIX = re.compile(r"(/[\w.~%@+-]+)+")
_BEARER = "Bearer "
_NOT_YOURS = (
    "This page is for whoever started the gateway. A link opens it once; a new one: trainmaster gateway "
    "--print-env"
)

Headers: TypeAlias = Mapping[str, str]
"""Names in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    method: str
    headers: Headers
    prefix: str = ""
    """What came before ``/ui/`` or ``/api/`` in the path itself."""


class PageKeys:
    """Tokens that are good once, and the cookie of this process. Threads may share it.

    Args:
        port: Cookies do not know ports, so its name does.
        token: The gateway's own, for programs: they send it as a bearer token.
    """

    def __init__(self, *, port: int, token: str) -> None:
        self._cookie = f"trainmaster-{port}"
        self._token = token
        self._secret = secrets.token_urlsafe(TOKEN_BYTES)
        self._unspent: deque[str] = deque(maxlen=_UNSPENT)
        self._spending = threading.Lock()

    def one_time(self) -> str:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        with self._spending:
            self._unspent.append(token)
        return token

    def admit(self, asked: PageRequest) -> None:
        """By the cookie, or as a program by the gateway's token. Raises CallRefusedError."""
        refuse_other_pages(asked)
        if self._is_a_program(asked.headers):
            return
        if not self._has_cookie(asked.headers):
            raise _denied(_NOT_YOURS)
        if asked.method != "GET" and CHANGE_HEADER not in asked.headers:
            raise _denied(f"A page that changes something sends the header {CHANGE_HEADER}.")

    def exchange(self, asked: PageRequest) -> str:
        """The Set-Cookie of who has a token that is good once. Raises CallRefusedError."""
        refuse_other_pages(asked)
        if not self._spend(asked.headers.get(TOKEN_HEADER, "")):
            raise _denied(_NOT_YOURS)
        return self._set_cookie(asked)

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._secret.encode())

    def _is_a_program(self, headers: Headers) -> bool:
        given = headers.get("authorization", "")
        return hmac.compare_digest(given.encode(), f"{_BEARER}{self._token}".encode())

    def _spend(self, token: str) -> bool:
        """An empty one is none."""
        with self._spending:
            found = next(
                (one for one in self._unspent if hmac.compare_digest(one.encode(), token.encode())), ""
            )
            if found:
                self._unspent.remove(found)
        return bool(found)

    def _set_cookie(self, asked: PageRequest) -> str:
        secure = "; Secure" if asked.headers.get("x-forwarded-proto") == "https" else ""
        path = f"{_prefix(asked)}/"
        return f"{self._cookie}={self._secret}; Path={path}; HttpOnly; SameSite=Strict{secure}"


def refuse_other_pages(asked: PageRequest) -> None:
    """What a page of another origin sends, whatever it brings; a link that somebody follows is none.

    Raises CallRefusedError.
    """
    headers = asked.headers
    _refuse_other_names(asked)
    is_a_link = asked.method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    is_elsewhere = headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} and not is_a_link
    origin = urlsplit(headers["origin"]).netloc if "origin" in headers else None
    own = {headers.get("host", ""), headers.get("x-forwarded-host", "")} - {""}
    if is_elsewhere or (origin is not None and origin not in own):
        raise _denied("The gateway answers its own pages, not those of others.")


def _refuse_other_names(asked: PageRequest) -> None:
    """A name that was bound to this machine (DNS rebinding); a proxy has a name of its own and says so."""
    name, _, port = asked.headers.get("host", "").lower().rpartition(":")
    host = name if port.isdecimal() and name else asked.headers.get("host", "").lower()
    is_proxied = bool(asked.prefix) or any(one in asked.headers for one in _PROXY_HEADERS)
    if host not in OWN_HOSTS and not is_proxied:
        raise _denied("Open the pages as 127.0.0.1 or localhost, or through a proxy.")


def refuse_changes(method: str, *, are_allowed: bool) -> None:
    """Raises CallRefusedError."""
    if method != "GET" and not are_allowed:
        raise _denied(
            f"This gateway only reads: {method} is refused. To allow it, start it with --allow-changes."
        )


def _denied(message: str) -> CallRefusedError:
    return CallRefusedError("AccessDeniedException", message, status=HTTPStatus.FORBIDDEN)


def _prefix(asked: PageRequest) -> str:
    """Where the browser sees the pages: a cookie is for them alone, not for all that shares the host."""
    said = (asked.headers.get(name, "").rstrip("/") for name in _PREFIX_HEADERS)
    return next((one for one in (asked.prefix, *said) if _PREFIX.fullmatch(one)), "")
