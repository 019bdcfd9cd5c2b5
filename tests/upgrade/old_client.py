"""The command line of an earlier commit, as people have it who have not upgraded yet."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAIN = "from trainmaster_client.cli import main; main()"
_SECONDS = 120.0
_SHOWN_LINES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OldClient:
    checkout: Path
    folder: Path
    """Where it is called."""
    environment: Mapping[str, str]
    """How it reaches the stack."""

    def told(self, *words: str) -> dict[str, Any]:
        """Exit code of a command, and the last lines that it printed."""
        code = f"{self.checkout / 'client'}{os.pathsep}{self.checkout / 'layers/trainmaster'}"
        done = subprocess.run(
            [sys.executable, "-c", _MAIN, *words],
            cwd=self.folder,
            env=os.environ | dict(self.environment) | {"PYTHONPATH": code, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        lines: Sequence[str] = done.stdout.splitlines()
        return {"command": " ".join(words), "code": done.returncode, "printed": lines[-_SHOWN_LINES:]}
