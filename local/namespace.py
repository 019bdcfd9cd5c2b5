"""Gives a command an /opt of its own, without root and without a trace on the machine.

``python namespace.py FOLDER COMMAND...`` enters a user and a mount namespace in which /opt is FOLDER, with
what else the machine has in /opt bound into it, and then becomes the command: same process, same user, so
signals and exit codes are the command's. The mounts are gone with its last process; all that stays in FOLDER
is what they stood on: empty folders and files, and links. So FOLDER is for one command: to a second one they
would be the job's own, and hide what the machine has. The standard library alone: it runs isolated, before
anything of the job does.

Source: Linux manual, user_namespaces(7) and mount_namespaces(7).
"""

import ctypes
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_OPT = Path("/opt")

# linux/sched.h and linux/mount.h
_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWUSER = 0x1000_0000
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_PRIVATE = 0x4_0000

_REFUSED = 70
"""Exit code before there is a namespace; EX_SOFTWARE of sysexits.h."""
_NOT_FOUND = 127
"""Docker's exit code for a container whose command does not exist."""
_TRY_SECONDS = 20


def in_namespace(folder: Path, argv: Sequence[str]) -> list[str]:
    """Return the command that runs ``argv`` with ``folder`` as its /opt."""
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(folder), *argv]


@functools.cache
def namespaces_refused() -> str | None:
    """Say why this machine refuses a command its own /opt; None if it does not. Tried once a process."""
    if sys.platform != "linux":
        return f"namespaces are Linux's, this is {sys.platform}"
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(
            in_namespace(Path(folder), [sys.executable, "-I", "-S", "-c", ""]),
            capture_output=True,
            text=True,
            timeout=_TRY_SECONDS,
            check=False,
        )
    return None if tried.returncode == 0 else tried.stderr.strip() or f"exit code {tried.returncode}"


def main(folder: Path, argv: list[str]) -> int:
    """Does not return when all goes well."""
    try:
        _enter()
        _cover_opt(folder)
    except OSError as error:
        print(f"{error.filename or 'namespace'}: {error.strerror}", file=sys.stderr)
        return _REFUSED
    try:
        os.execvp(argv[0], argv)  # noqa: S606  the job's own command
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        return _NOT_FOUND


def _enter() -> None:
    """Enter the namespace as the same user: programs that think they are root give files away."""
    user, group = os.getuid(), os.getgid()
    if _libc().unshare(_CLONE_NEWUSER | _CLONE_NEWNS):
        raise _last_error("unshare")
    # A group may be mapped only by who has given up setgroups.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path("/proc/self", name).write_text(text, encoding="ascii")
    _mount("none", "/", _MS_REC | _MS_PRIVATE)


def _cover_opt(folder: Path) -> None:
    for entry in sorted(_OPT.iterdir()):
        place = folder / entry.name
        if place.is_symlink() or place.exists():  # the job's own comes first
            continue
        if entry.is_symlink():
            place.symlink_to(entry.readlink())
        else:
            place.mkdir() if entry.is_dir() else place.touch()
            _mount(str(entry), str(place), _MS_BIND | _MS_REC)
    _mount(str(folder), str(_OPT), _MS_BIND | _MS_REC)


def _mount(source: str, target: str, flags: int) -> None:
    if _libc().mount(os.fsencode(source), os.fsencode(target), None, flags, None):
        raise _last_error(f"mount on {target}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _last_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
