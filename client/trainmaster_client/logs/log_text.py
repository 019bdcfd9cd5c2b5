"""Log lines as people see them, wherever they are shown."""

import re
from collections.abc import Mapping
from typing import Any

from trainmaster_client.http.printable import printable

_STYLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""What a program prints for colours and to move the cursor (ECMA-48, control sequences)."""


def host_count(document: Mapping[str, Any]) -> int:
    """Of the shape that a job, as the API answers it, runs in."""
    return sum(int(count) for count in (document.get("instances") or {}).values())


def cleaned(text: str) -> str:
    """As a terminal would show it in the end: of a progress bar its last state, and nothing that acts."""
    shown = [part for part in _STYLE.sub("", text).split("\r") if part]
    return printable(shown[-1].expandtabs()) if shown else ""
