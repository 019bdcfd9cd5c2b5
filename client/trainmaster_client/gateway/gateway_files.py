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
    """Of the stack whose queue is behind it."""

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    port: int
    """0 takes a free one."""
    ready: Path | None
    """Written once it answers."""
    folder: Path
    """Holds its state."""
    are_changes_allowed: bool
    proxies: frozenset[str] = frozenset()
    """Host names, in lower case, under which proxies of the user show the pages."""


def state_folder(env: Mapping[str, str] = os.environ) -> Path:
    return Path(env.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "trainmaster"


def token_for(port: int, *, api_url: str, folder: Path) -> str:
    """That of the last start on this port for this stack, for programs that have it; else a new one."""
    before = read_state(port, folder=folder)
    if before is not None and before.api_url == api_url:
        return before.token
    return secrets.token_urlsafe(TOKEN_BYTES)


def read_state(port: int, *, folder: Path) -> GatewayState | None:
    """None: no gateway was started on this port, or its file may be read or written by others."""
    file = folder / _NAME.format(port=port)
    try:
        found = file.lstat()
        is_private = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
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
    """What the gateway says of itself; None: it does not answer, or not to this token."""
    return _said(f"{endpoint_url}/status")


def new_ui_url(endpoint_url: str) -> str | None:
    """That opens the gateway's page once; None where it does not answer, or is of a release before pages."""
    found = (_said(f"{endpoint_url}/ui-url", data=b"") or {}).get("ui_url")
    own = f"{endpoint_url.rpartition('/')[0]}/ui/"
    return found if isinstance(found, str) and found.startswith(own) and found.isprintable() else None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token in the URL is for the gateway alone, and what is on its port now may be another program."""

    def redirect_request(self, *_: object) -> None:
        return None


def _said(url: str, *, data: bytes | None = None) -> dict[str, Any] | None:
    """Ask by GET, with data by POST, no proxy and no other address; None for what is no short JSON object."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())
    deadline, body = time.monotonic() + STATUS_SECONDS, b""
    try:
        with opener.open(url, data=data, timeout=STATUS_SECONDS) as answer:
            while chunk := answer.read1(_CHUNK_BYTES):
                body += chunk
                if len(body) > _LARGEST_STATUS_BYTES or time.monotonic() > deadline:
                    return None
        found = json.loads(body)
    except (OSError, HTTPException, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
