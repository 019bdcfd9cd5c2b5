"""Which packages an extra of this distribution needs, and the command that installs them."""

import re
from importlib import metadata

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def requirements_of(extra: str) -> tuple[str, ...]:
    """List the requirements of an extra as pip takes them, e.g. ``starlette<2,>=1.0``.

    They come from the metadata of the installed distribution, which pyproject.toml is the source of.
    Empty if the code is only on the path and was never installed.
    """
    try:
        listed = metadata.requires("trainmaster") or []
    except metadata.PackageNotFoundError:
        return ()
    belongs = re.compile(rf"extra == ['\"]{re.escape(extra)}['\"]")
    return tuple(line.partition(";")[0].strip() for line in listed if belongs.search(line))


def missing_of(extra: str) -> tuple[str, ...]:
    """Name the packages of an extra that are not installed here."""
    names = (match[0] for line in requirements_of(extra) if (match := _NAME.match(line)))
    return tuple(name for name in names if not _is_installed(name))


def install_hint(extra: str) -> str:
    """Say how to install what an extra needs, as a sentence without its full stop."""
    command = install_command(extra)
    return f"Run: {command}" if command else f"Install what pyproject.toml lists for the extra {extra}"


def install_command(extra: str) -> str:
    """Give the command that installs what an extra needs; empty where that is not known.

    The command names the packages themselves and never ``trainmaster[extra]``: where pip belongs to another
    environment it would ask an index for our name, which on a public index is not ours.
    """
    wanted = requirements_of(extra)
    quoted = " ".join(f"'{line}'" if re.search(r"[<>=\[\]!~ ]", line) else line for line in wanted)
    return f"pip install {quoted}" if wanted else ""


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True
