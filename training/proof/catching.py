"""Catches a training inside a save: stops all its processes, looks, and kills them or lets them go on."""

import random
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from threading import Event, Thread

from training.checkpoint.manifest import INDEX, MANIFEST
from training.proof.kill_schedule import Kill
from training.proof.processes import family_of, go_on, kill_tree, stopped_tree

_LOOK_SECONDS = 0.0005
_LOOKS_A_FAMILY = 200
"""After so many looks the processes are listed again: workers are started and end."""


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
                return any(one.stat().st_size for one in folder.glob("*.distcp"))
            case Moment.INDEX:
                return (folder / INDEX).exists()


class Catcher:
    """Looks in a thread of its own while the attempt runs."""

    def __init__(self, leader: int, checkpoints: Path, kill: Kill, *, reached: Callable[[], int]) -> None:
        self._leader, self._checkpoints, self._kill, self._reached = leader, checkpoints, kill, reached
        self._moment = random.Random(str(kill)).choice(list(Moment))  # noqa: S311  to be repeated
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
        """What an earlier attempt left of a save counts once this one is at it, and has to remove it."""
        step = int(folder.name.removeprefix("step-"))
        if not self._kill.step <= step <= self._reached():
            return False
        try:
            return self._moment.has_come(folder) and not (folder / MANIFEST).exists()
        except FileNotFoundError:  # it was torn, and is removed
            return False
