"""When a training is killed, how, and on how many ranks it goes on."""

import math
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

_SIGNALS = {"TERM": signal.SIGTERM, "KILL": signal.SIGKILL, "INT": signal.SIGINT}
_LEAST_BATCH = 8


class ScheduleError(Exception):
    """All that is wrong with a schedule."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    step: int
    """Sent when this step is seen to be done, or the first one after it that is."""
    signal: signal.Signals

    def __str__(self) -> str:
        return f"{self.step}:{self.signal.name.removeprefix('SIG')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    steps: int
    kills: tuple[Kill, ...]
    worlds: tuple[int, ...]
    """Ranks of each attempt; one attempt more than kills."""

    @classmethod
    def read(cls, *, steps: int, kill_at: str, worlds: str) -> Self:
        """From ``7:TERM,13:KILL`` and ``2,2,1``.

        Raises:
            ScheduleError: With everything that is wrong.
        """
        problems: list[str] = []
        kills = tuple(kill for text in _parts(kill_at) if (kill := _kill(text, problems)))
        sizes = tuple(size for text in _parts(worlds) if (size := _world(text, problems)))
        if not problems:
            problems = _contradictions(steps, kills, sizes)
        if problems:
            raise ScheduleError(problems)
        return cls(steps=steps, kills=kills, worlds=sizes)

    @property
    def batch_size(self) -> int:
        """The least that every world can share."""
        shared = math.lcm(*self.worlds)
        return shared * math.ceil(_LEAST_BATCH / shared)

    @property
    def is_of_one_world(self) -> bool:
        return len(set(self.worlds)) == 1

    def uninterrupted(self) -> Self:
        """On the ranks of the first attempt."""
        return replace(self, kills=(), worlds=self.worlds[:1])

    def in_one_world(self) -> Self:
        """The same kills, always on the ranks of the first attempt."""
        return replace(self, worlds=self.worlds[:1] * len(self.worlds))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _kill(text: str, problems: list[str]) -> Kill | None:
    step, _, name = text.partition(":")
    if step.isdecimal() and name in _SIGNALS:
        return Kill(step=int(step), signal=_SIGNALS[name])
    problems.append(f"--kill-at has {text!r}; wanted is STEP:SIGNAL with one of {', '.join(_SIGNALS)}")
    return None


def _world(text: str, problems: list[str]) -> int | None:
    if text.isdecimal() and int(text):
        return int(text)
    problems.append(f"--worlds has {text!r}; wanted is a number of ranks, 1 or more")
    return None


def _contradictions(steps: int, kills: Sequence[Kill], worlds: Sequence[int]) -> list[str]:
    found = []
    if steps < 1:
        found.append(f"--steps is {steps}; wanted is 1 or more")
    if len(worlds) != len(kills) + 1:
        found.append(
            f"--worlds has {len(worlds)} and --kill-at {len(kills)}: an attempt follows each kill, "
            f"so give {len(kills) + 1} numbers of ranks"
        )
    at = [kill.step for kill in kills]
    if at != sorted(set(at)):
        found.append(f"--kill-at has the steps {', '.join(map(str, at))}; each must be after the one before")
    if at and not 1 <= min(at) <= max(at) < steps:
        found.append(f"--kill-at must lie between step 1 and the last but one of --steps {steps}")
    return found
