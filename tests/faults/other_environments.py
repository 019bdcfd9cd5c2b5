"""Environments of packages whose pins are their own, and the tests that run in them."""

import fcntl
import os
import subprocess
from pathlib import Path

from tests.markdown import ROOT


def python_of(environment: str) -> Path:
    """Made where there is none, by one test at a time: two would empty each other's folder."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / f"{environment}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run("make", f"{environment}/.ready")
    return ROOT / environment / "bin" / "python"


def play(folder: str, *, environment: str) -> None:
    """Raises AssertionError with what was printed if a test there fails."""
    _run(str(python_of(environment)), "-m", "pytest", "-q", "-p", "no:cacheprovider", folder)


def _run(*command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
