"""trainmaster as its users have it: a wheel in an environment of its own, used far from the checkout."""

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.markdown import ROOT

BUILD_SECONDS = 120
INSTALL_SECONDS = 900
"""Of a disk that others use, and without pip's cache."""
COMMAND_SECONDS = 120
_OF_THE_CHECKOUT = ("PYTHONPATH", "VIRTUAL_ENV", "COLUMNS")
_OF_AWS = "AWS_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An environment with the wheel, and an empty folder to stand in."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "venv" / "bin"

    @property
    def site_packages(self) -> Path:
        (found,) = (self.folder / "venv" / "lib").glob("python3.*/site-packages")
        return found

    @property
    def empty(self) -> Path:
        return self.folder / "empty"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Nothing that leads back to the checkout, and nobody's AWS configuration."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in _OF_THE_CHECKOUT and not name.startswith((_OF_AWS, "TRAINMASTER_"))
        }
        own = {"HOME": str(self.folder / "home"), "AWS_EC2_METADATA_DISABLED": "true", "NO_COLOR": "1"}
        return kept | own | dict(more or {})

    def run(self, *command: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """A program of the environment, by its name, whatever comes of it."""
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            cwd=self.empty,
            env=self.environment(env),
            check=False,
        )

    def done(self, *command: str, env: Mapping[str, str] | None = None) -> str:
        """What a program prints that has to succeed."""
        ran = self.run(*command, env=env)
        assert ran.returncode == 0, f"{command}: {ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def python(self, program: str, env: Mapping[str, str] | None = None) -> str:
        return self.done("python", "-c", program, env=env)


def built(folder: Path) -> Path:
    """The wheel, made as `make wheel` makes it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=BUILD_SECONDS, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, folder: Path, *, extra: str | None = None) -> Installed:
    """Into an empty environment, with what it asks for from the package index."""
    there = Installed(folder=folder)
    for part in ("empty", "home"):
        (folder / part).mkdir(parents=True)
    venv.create(folder / "venv", with_pip=True)
    pip_install(there, f"{wheel}[{extra}]" if extra else str(wheel))
    return there


def pip_install(there: Installed, *packages: str) -> None:
    subprocess.run(
        [str(there.bin / "python"), "-m", "pip", "install", "--quiet", *packages],
        cwd=there.empty,
        check=True,
        timeout=INSTALL_SECONDS,
    )
