"""When a demo gives up, and what it says then: three lines, never a traceback.

How long a demo takes is not limited: a busy machine is slow, and nothing is wrong with it. Given up is when
nothing at all has changed for minutes.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

STANDSTILL_SECONDS = 300.0
"""Seconds of the machine's time. Loading torch with eight busy processes a core takes about a minute."""
_MEMORY = Path("/proc/meminfo")
_KIB_PER_GIB = 2**20


class StoryError(Exception):
    """The story cannot go on. The text says what happened, ``remedy`` what its user can do."""

    remedy = "run it again"


class StandstillError(StoryError):
    remedy = "end other programs if the load is above the number of cores (top shows them), and run it again"

    def __init__(self, *, waited_for: str, seconds: float) -> None:
        super().__init__(
            f"nothing has changed for {seconds / 60:.0f} minutes while it waited for this: {waited_for}"
        )


class TwinEndedError(StoryError):
    remedy = "run it again; if nobody killed the twin, look for a kernel that was out of memory (dmesg)"

    def __init__(self, *, exit_code: int) -> None:
        super().__init__(f"the local twin has ended in the middle, with exit code {exit_code}")


class ProgramEndedError(StoryError):
    """A program that the story needs ended before it was to, or not as it was to."""

    remedy = "read what it printed, which is in the file named here"

    def __init__(self, *, program: str, exit_code: int | None, printed: str = "") -> None:
        end = "has failed" if exit_code is None else f"has ended with exit code {exit_code}"
        super().__init__(f"{program} {end}")
        self.printed = printed


class Progress:
    """Tells for how long nothing has changed.

    Args:
        patience: Seconds without a change after which ``check`` gives up.
        clock: In seconds, monotonic.
    """

    def __init__(
        self, *, patience: float = STANDSTILL_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience, self._clock = patience, clock
        self._evidence: object = None
        self._changed_at = clock()

    def observe(self, evidence: object) -> None:
        """Note what can be seen now: anything that compares unequal once something has happened."""
        if evidence != self._evidence:
            self._evidence, self._changed_at = evidence, self._clock()

    def check(self, waited_for: str) -> None:
        """Raises StandstillError: nothing has changed for too long."""
        still = self._clock() - self._changed_at
        if still >= self._patience:
            raise StandstillError(waited_for=waited_for, seconds=still)


def three_lines(name: str, error: Exception, *, reached: str, details: Path) -> list[str]:
    """Say what was reached, how the machine is doing, and what to do.

    Args:
        name: Of the demo.
        error: What ended it.
        reached: The last thing that went well.
        details: Where everything else stands.
    """
    expected = isinstance(error, StoryError)
    what = str(error) if expected else f"it met an error: {type(error).__name__}: {_first_line(error)}"
    remedy = error.remedy if isinstance(error, StoryError) else "run it again, and report it with that file"
    return [
        f"{name}: NOT ok: {what}. Reached: {reached or 'nothing yet'}.",
        f"The machine: {machine()}.",
        f"What to do: {remedy}. Details: {details}",
    ]


def machine() -> str:
    """Tell the load and the memory of this machine."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    load_text = f"{load:.1f} processes want {cores} cores (load of the last minute)"
    if not _MEMORY.exists():
        return load_text
    lines = (line.partition(":") for line in _MEMORY.read_text(encoding="utf-8").splitlines())
    kib = {key: int(value.split()[0]) for key, _, value in lines}
    free, whole = (kib[key] / _KIB_PER_GIB for key in ("MemAvailable", "MemTotal"))
    return f"{load_text}, {free:.1f} of {whole:.1f} GiB of memory are free"


def _first_line(error: Exception) -> str:
    return (str(error).strip() or "without a word").splitlines()[0][:200]
