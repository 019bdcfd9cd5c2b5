"""Imported by Python before a program: names and connections are refused, but those of this machine."""

import os
import socket
from pathlib import Path
from typing import Any

_FAMILIES = {socket.AF_INET, socket.AF_INET6}
_connect, _connect_ex, _resolve = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo


def _check(host: object) -> None:
    name = host.decode() if isinstance(host, bytes) else str(host)
    if host is None or name in {"localhost", "::1", ""} or name.startswith("127."):
        return
    with Path(os.environ["LOOPBACK_STRANGERS"]).open("a", encoding="utf-8") as strangers:
        strangers.write(f"{name}\n")
    raise OSError(f"{name} is not on this machine")


def _resolved(host: Any, *others: Any, **named: Any) -> Any:
    _check(host)
    return _resolve(host, *others, **named)


def _connected(self: socket.socket, address: Any) -> None:
    if self.family in _FAMILIES:
        _check(address[0])
    _connect(self, address)


def _connected_ex(self: socket.socket, address: Any) -> int:
    if self.family in _FAMILIES:
        _check(address[0])
    return _connect_ex(self, address)


socket.getaddrinfo = _resolved
socket.socket.connect = _connected  # type: ignore[method-assign, assignment]
socket.socket.connect_ex = _connected_ex  # type: ignore[method-assign, assignment]
