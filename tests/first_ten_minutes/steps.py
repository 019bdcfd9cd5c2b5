"""A step of the beginning: what ran, how long, what it fetched and what it left on the disk."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.first_ten_minutes import machine

STEP_SECONDS = 1800.0
"""For one command, on a machine that others use too."""
_NOT_A_STRANGERS = (
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "COLUMNS",
    "PIP_NO_CACHE_DIR",
)
_OF_AWS = ("AWS_", "SAGEMAKER_", "TRAINMASTER_")
_DOWNLOADED = re.compile(r"^ *Downloading \S+ \((\d+(?:\.\d+)?) (bytes|kB|MB|GB)\)", re.MULTILINE)
_FROM_DISK = re.compile(r"^ *Processing (?:file://)?(/\S+\.(?:whl|tar\.gz|zip))\b", re.MULTILINE)
"""What pip prints of a package from an index, and of one from a folder or a mirror on this machine."""
_UNITS = {"bytes": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


class StepError(Exception):
    """A command of the documents did not do what they say; the message has what it printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    seconds: float
    cpu_seconds: float
    fetched_bytes: int
    """Packages, from an index or a folder of this machine in its place, as pip rounds their sizes."""
    written_bytes: int
    """By how much the folder grew; pip's cache is not in it."""


@dataclass(slots=True)
class Beginning:
    """An empty folder, and the steps that were made in it."""

    folder: Path
    steps: list[Step] = field(default_factory=list)
    _printed: list[str] = field(default_factory=list)
    """By the commands of this step."""

    def __post_init__(self) -> None:
        for part in (self.work, self._cache, self._home):
            part.mkdir(parents=True)

    @property
    def work(self) -> Path:
        """Where the stranger stands."""
        return self.folder / "work"

    @property
    def _cache(self) -> Path:
        return self.folder / "pip-cache"

    @property
    def _home(self) -> Path:
        return self.folder / "home"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Of a new user of this machine: its package index, an empty cache, no settings of AWS."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in _NOT_A_STRANGERS and not name.startswith(_OF_AWS)
        }
        own = {
            "HOME": str(self._home),
            "PIP_CACHE_DIR": str(self._cache),
            "PIP_VERBOSE": "1",  # makes up for `--quiet`: pip says what it fetches
            "PIP_PROGRESS_BAR": "off",
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_COLOR": "1",
        }
        return kept | own | dict(more or {})

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure what is done in the block."""
        self._printed.clear()
        written, first = _size_of(self.work), machine.now()
        yield
        last = machine.now()
        self.steps.append(
            Step(
                name=name,
                seconds=round(last.seconds - first.seconds, 2),
                cpu_seconds=round(last.own_cpu_seconds - first.own_cpu_seconds, 2),
                fetched_bytes=fetched("\n".join(self._printed)),
                written_bytes=_size_of(self.work) - written,
            )
        )

    def run(self, *command: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
        """What a command prints. Raises StepError."""
        done = subprocess.run(
            command,
            cwd=cwd or self.work,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=STEP_SECONDS,
            check=False,
        )
        if done.returncode:
            raise StepError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
        self._printed.append(done.stdout)
        return done.stdout

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(step) for step in self.steps]


def fetched(printed: str) -> int:
    """Bytes of the packages that pip says it took, from an index or from this machine; each of these once."""
    downloaded = sum(float(count) * _UNITS[unit] for count, unit in _DOWNLOADED.findall(printed))
    here = {path for path in _FROM_DISK.findall(printed) if Path(path).is_file()}
    return round(downloaded) + sum(Path(path).stat().st_size for path in here)


def _size_of(folder: Path) -> int:
    """Of its files; one with several names counts once."""
    found = {(one.st_dev, one.st_ino): one.st_size for one in _files(folder)}
    return sum(found.values())


def _files(folder: Path) -> Iterator[os.stat_result]:
    for root, _, names in os.walk(folder):
        for name in names:
            yield os.lstat(os.path.join(root, name))  # noqa: PTH118  a hundred thousand of them
