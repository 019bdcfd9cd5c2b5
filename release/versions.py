"""The version and its one place; which version may be released, and of what tree."""

import re
from collections.abc import Collection
from pathlib import Path

HOME = Path("layers/trainmaster/trainmaster/__init__.py")
"""Wheel, API, command line and packaged template all read it from there."""
_LINE = re.compile(r'^__version__ = "([^"]*)"$', re.MULTILINE)
_SEMANTIC = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class VersionError(Exception):
    """This cannot be released; the message says why and what to do."""


def read(root: Path) -> str:
    """The version of a checkout. Raises VersionError."""
    matches = _LINE.findall((root / HOME).read_text(encoding="utf-8"))
    if len(matches) != 1:
        raise VersionError(f'{HOME} has to have one line __version__ = "X.Y.Z", and has {len(matches)}')
    parts(matches[0])
    return str(matches[0])


def write(root: Path, version: str) -> None:
    path = root / HOME
    text = path.read_text(encoding="utf-8")
    path.write_text(_LINE.sub(f'__version__ = "{version}"', text), encoding="utf-8")


def parts(version: str) -> tuple[int, ...]:
    """Return its three numbers. Raises VersionError."""
    match = _SEMANTIC.fullmatch(version)
    if match is None:
        raise VersionError(f"{version!r} is not a valid version; use three numbers, e.g. 0.2.0 (semver.org)")
    return tuple(int(number) for number in match.groups())


def tag_of(version: str) -> str:
    return f"v{version}"


def check_next(version: str, *, current: str, tags: Collection[str]) -> None:
    """Raises VersionError if this cannot be the next version."""
    check_untagged(version, tags)
    if parts(version) < parts(current):
        raise VersionError(f"{version} is lower than {current}, which {HOME} has; take a higher one")


def check_untagged(version: str, tags: Collection[str]) -> None:
    """Raises VersionError if the version is out already."""
    if tag_of(version) in tags:
        raise VersionError(
            f"{version} is released already: there is a tag {tag_of(version)}. "
            "Take the next version: make version VERSION=X.Y.Z"
        )


def check_clean(changes: str) -> None:
    """Raises VersionError unless ``git status --porcelain`` printed nothing."""
    if changes.strip():
        raise VersionError(
            "a release is made of a commit, and this tree has changes that are in none; "
            f"commit or remove them:\n{changes.rstrip()}"
        )
