"""Starts a program, catches it inside a save, and ends it: politely, or with everything below it at once."""

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Self

from benchmarks.training.proof.kill_schedule import Kill
from training.preemptible.checkpoint.manifest import INDEX, MANIFEST

_PROC = Path("/proc")
_LOOK_SECONDS = 0.0005
_LOOKS_A_FAMILY = 200
"""After so many looks the processes are listed again: workers are started and end."""


class Started:
    """A program in its own session; nothing is left of it at the end, or once it has been silent too long.

    How long it may take in all is not limited.
    """

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], errors: Path, silent_seconds: float
    ) -> None:
        with errors.open("wb") as file:
            self.process = subprocess.Popen(
                command, env=env, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True
            )
        self._silent_seconds, self.was_silent = silent_seconds, False
        self._patience = self._begun()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._patience.cancel()
        kill_tree(self.process.pid)
        self.process.communicate()

    def lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._patience.cancel()
            self._patience = self._begun()
            yield line

    def _begun(self) -> Timer:
        patience = Timer(self._silent_seconds, self._give_up)
        patience.daemon = True
        patience.start()
        return patience

    def _give_up(self) -> None:
        self.was_silent = True
        kill_tree(self.process.pid)


def stopped_tree(leader: int, family: Sequence[int]) -> list[int]:
    """Send SIGSTOP to these known processes, then to any others; return all that were stopped."""
    stopped: list[int] = []
    for pid in (*family, *family_of(leader)):
        if pid not in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
    return stopped


def go_on(stopped: Sequence[int]) -> None:
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def kill_tree(leader: int) -> None:
    """Send SIGKILL to all of a session and all below them, whatever sessions and groups those made."""
    for pid in family_of(leader):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def family_of(leader: int) -> list[int]:
    """Read the family from /proc, on Linux; empty when all have ended, though the number may be reused."""
    family: list[int] = []
    children: dict[int, list[int]] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            # The name in parentheses may hold anything; state, parent, group and session follow it.
            _, parent, _, session, *_ = path.read_text().rpartition(")")[2].split()
            children.setdefault(int(parent), []).append(int(path.parent.name))
            if int(session) == leader:
                family.append(int(path.parent.name))
    for pid in family:  # grows while it is walked
        family += [child for child in children.get(pid, []) if child not in family]
    return family


class Moment(StrEnum):
    """How far the save is."""

    FOLDER = "the folder is there"
    SHARD = "a shard has bytes"
    INDEX = "the index is there"

    def has_come(self, folder: Path) -> bool:
        match self:
            case Moment.FOLDER:
                return folder.exists()
            case Moment.SHARD:
                return any(shard.stat().st_size for shard in folder.glob("*.distcp"))
            case Moment.INDEX:
                return (folder / INDEX).exists()


class Catcher:
    """Looks in a thread of its own while the attempt runs."""

    def __init__(self, leader: int, checkpoints: Path, kill: Kill, *, reached: Callable[[], int]) -> None:
        self._leader, self._checkpoints, self._kill, self._reached = leader, checkpoints, kill, reached
        self._moment = random.Random(str(kill)).choice(list(Moment))
        self._over = Event()
        self.caught_at: int | None = None
        """The last step that was seen to be done when it was killed inside a save."""
        self._thread = Thread(target=self._look, name="catcher", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        looks, family, missed = 0, family_of(self._leader), set[str]()
        while not self._over.wait(_LOOK_SECONDS):
            looks += 1
            if not looks % _LOOKS_A_FAMILY:
                family = family_of(self._leader)
            for folder in self._checkpoints.glob("step-*"):
                if folder.name not in missed and self._is_in_save(folder):
                    stopped = stopped_tree(self._leader, family)
                    if self._is_in_save(folder):
                        self.caught_at = self._reached()
                        kill_tree(self._leader)
                        return
                    go_on(stopped)
                    missed.add(folder.name)  # the next save is caught as early as can be
                    self._moment = Moment.FOLDER

    def _is_in_save(self, folder: Path) -> bool:
        """Tell whether a save is under way; remains of an earlier attempt count once this one is at them."""
        step = int(folder.name.removeprefix("step-"))
        if not self._kill.step <= step <= self._reached():
            return False
        try:
            return self._moment.has_come(folder) and not (folder / MANIFEST).exists()
        except FileNotFoundError:  # it was torn, and is removed
            return False
