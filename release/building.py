"""Makes what a release consists of: wheel, source distribution, packaged stack, bills of materials."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from release import archives, stack

ROOT = Path(__file__).parents[1]
BUILD_SECONDS = 1800.0
"""Most seconds for one program; it takes minutes on a quiet machine."""
_PRINTED = 4000
"""Characters of what a program printed that its error shows."""


class BuildError(Exception):
    """A program that builds or checks did not end well; the message has what it printed."""


def run(*command: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """Run a program and return what it prints. Raises BuildError."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=os.environ | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        raise BuildError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-_PRINTED:]}")
    return done.stdout


def python_packages(into: Path, *, source: Path = ROOT) -> tuple[Path, Path]:
    """The wheel and the source distribution of a checkout, or of an unpacked source distribution."""
    run(sys.executable, "-m", "hatchling", "build", "-d", str(into), cwd=source)
    (wheel,), (sdist,) = into.glob("*.whl"), into.glob("*.tar.gz")
    return wheel, sdist


def wheel_of(sdist: Path, folder: Path) -> Path:
    """The wheel that a source distribution makes, unpacked below this folder."""
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and later
        archive.extractall(folder / "source")  # noqa: S202  made here, a moment ago
    (source,) = (folder / "source").iterdir()
    wheel, _ = python_packages(folder / "dist", source=source)
    return wheel


def packaged_stack(folder: Path, *, version: str, home_page: str | None) -> Path:
    """The archive of the packaged stack; beside it, unpacked, what it has."""
    sam = str(Path(sys.executable).parent / "sam")
    built, name = folder / "built", f"trainmaster-{version}-stack"
    env = {"LAYER_PYTHON": sys.executable, "SAM_CLI_TELEMETRY": "0"}
    run(sam, "build", "--build-dir", str(built), "--template", str(ROOT / "template.yaml"), env=env)
    into = folder / name
    into.mkdir()
    stack.pack(built, into, root=ROOT, version=version, home_page=home_page)
    archive = folder / f"{name}.zip"
    archives.write_zip(archive, {f"{name}/{path}": file for path, file in archives.files_below(into).items()})
    return archive
