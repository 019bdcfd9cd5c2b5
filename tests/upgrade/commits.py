"""From which commits an upgrade is tried, and their files."""

import io
import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from tests.markdown import ROOT

EARLIEST = "6936c3f6"
"""The oldest commit whose tables are read: what was deployed since then can be upgraded."""
ONE_ORDER = "d9a2d7e8"
"""Since this commit passes find waiting jobs in one order of the pool; before, in lanes that teams count."""
_RELEASE = re.compile(r"v(\d+)\.(\d+)\.(\d+)")


def newest_release(tags: Iterable[str]) -> str | None:
    """The tag of the highest version; tags of other kinds are nobody's release."""
    found = [(tuple(map(int, match.groups())), tag) for tag in tags if (match := _RELEASE.fullmatch(tag))]
    return max(found)[1] if found else None


def tags() -> list[str]:
    return _git("tag", "--list").decode().split()


def is_here(commit: str) -> bool:
    """False in a shallow clone, and outside git."""
    try:
        _git("cat-file", "-e", f"{commit}^{{commit}}")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def is_since(commit: str, first: str) -> bool:
    """It is this first one, or has it among its ancestors."""
    try:
        _git("merge-base", "--is-ancestor", first, commit)
    except subprocess.CalledProcessError:
        return False
    return True


def unpack(commit: str, folder: Path) -> Path:
    """The tracked files of a commit."""
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and later
        archive.extractall(folder / commit)
    return folder / commit


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout
