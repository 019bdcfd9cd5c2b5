"""How a gateway is started, and its files: its token, kept for the next start, and what it tells others."""

import json
import os
import secrets
import stat
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.private_files import write_private

TOKEN_BYTES = 32
STATUS_SECONDS = 3.0
_LARGEST_STATUS_BYTES = 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_NAME = "gateway-{port}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState:
    pid: int
    port: int
    token: str
    api_url: str
    """URL of the stack whose queue is behind the gateway."""

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    port: int
    """Port to listen on; 0 takes a free one."""
    ready: Path | None
    """File that is written once the gateway answers; None: no file."""
    folder: Path
    """Folder that holds its state."""
    are_changes_allowed: bool
    proxies: frozenset[str] = frozenset()
    """Host names, in lower case, under which proxies of the user show the pages."""


def state_folder(env: Mapping[str, str] = os.environ) -> Path:
    return Path(env.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "trainmaster"


def token_for(port: int, *, api_url: str, folder: Path) -> str:
    """Return the token of the last start on this port for this stack, as programs may have it.

    Else a new one.
    """
    before = read_state(port, folder=folder)
    if before is not None and before.api_url == api_url:
        return before.token
    return secrets.token_urlsafe(TOKEN_BYTES)


def read_state(port: int, *, folder: Path) -> GatewayState | None:
    """Read a gateway's state.

    None if none was started on this port, or if others may read or write its file.
    """
    file = folder / _NAME.format(port=port)
    try:
        details = file.lstat()
        is_private = (
            stat.S_ISREG(details.st_mode) and details.st_uid == os.getuid() and not details.st_mode & 0o077
        )
        return GatewayState(**json.loads(file.read_text(encoding="utf-8"))) if is_private else None
    except (OSError, ValueError, TypeError):
        return None


def known_states(folder: Path) -> Iterator[GatewayState]:
    for file in sorted(folder.glob(_NAME.format(port="*"))):
        port = file.stem.partition("-")[2]
        state = read_state(int(port), folder=folder) if port.isdecimal() else None
        if state is not None:
            yield state


def write_state(state: GatewayState, *, folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / _NAME.format(port=state.port)
    write_ready(file, asdict(state))
    return file


def write_ready(file: Path, document: Mapping[str, Any]) -> None:
    """Write JSON with a token for this user alone; raises InvalidArgumentError."""
    try:
        write_private(file, json.dumps(document))
    except OSError as error:
        raise InvalidArgumentError(f"{file}: {error.strerror}.", hint="Name another file.") from error


def status(endpoint_url: str) -> dict[str, Any] | None:
    """Return the gateway's own status; None if it does not answer, or not to this token."""
    return _said(f"{endpoint_url}/status")


def new_ui_url(endpoint_url: str) -> str | None:
    """Return a URL that opens the gateway's page once.

    None if the gateway does not answer, or is of a release before pages.
    """
    link = (_said(f"{endpoint_url}/ui-url", data=b"") or {}).get("ui_url")
    own = f"{endpoint_url.rpartition('/')[0]}/ui/"
    return link if isinstance(link, str) and link.startswith(own) and link.isprintable() else None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token is for the gateway alone, and another program may have its port now."""

    def redirect_request(self, *_: object) -> None:
        return None


def _said(url: str, *, data: bytes | None = None) -> dict[str, Any] | None:
    """Send GET, or POST with data, past any proxy or redirect; None unless a short JSON object answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())
    deadline, body = time.monotonic() + STATUS_SECONDS, b""
    try:
        with opener.open(url, data=data, timeout=STATUS_SECONDS) as answer:
            while chunk := answer.read1(_CHUNK_BYTES):
                body += chunk
                if len(body) > _LARGEST_STATUS_BYTES or time.monotonic() > deadline:
                    return None
        document = json.loads(body)
    except (OSError, HTTPException, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
