"""When a training is killed, how, on how many ranks it goes on, and with which exit codes it may end."""

import math
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

_SIGNALS = {"TERM": signal.SIGTERM, "KILL": signal.SIGKILL, "INT": signal.SIGINT}
_IN_SAVE = "SAVE"
_LEAST_BATCH = 8
PROGRAM = Path(__file__).parents[3] / "training/train.py"
SILENT_SECONDS = 600.0
"""An attempt that has printed nothing for this long hangs; how long it takes in all is not limited."""
PREEMPTED = 128 + signal.SIGTERM
KILLED = -signal.SIGKILL
_STEPS_TO_AGREE = 2
"""A signal that comes after a rank has voted on the next step ends the step after it."""


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
    in_save: bool = False
    """Killed while this step is being saved, or the first one after it that is caught at it."""

    def __str__(self) -> str:
        return f"{self.step}:{_IN_SAVE if self.in_save else self.signal.name.removeprefix('SIG')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    steps: int
    kills: tuple[Kill, ...]
    worlds: tuple[int, ...]
    """Ranks of each attempt; one attempt more than kills."""

    @classmethod
    def read(cls, *, steps: int, kill_at: str, worlds: str) -> Self:
        """Read a schedule from ``7:TERM,13:KILL`` and ``2,2,1``.

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

    def batch_size(self, parts: int = 1) -> int:
        """Return the least batch that every world can share, each rank's share in so many parts."""
        shared = math.lcm(*self.worlds) * parts
        return shared * math.ceil(_LEAST_BATCH / shared)

    @property
    def is_of_one_world(self) -> bool:
        return len(set(self.worlds)) == 1

    def uninterrupted(self) -> Self:
        """Return the schedule without kills, on the ranks of the first attempt."""
        return replace(self, kills=(), worlds=self.worlds[:1])

    def in_one_world(self) -> Self:
        """Return the same kills, always on the ranks of the first attempt."""
        return replace(self, worlds=self.worlds[:1] * len(self.worlds))


def kills_in_saves(number: int, *, steps: int, every: int, seed: int) -> tuple[Kill, ...]:
    """Return kills at saved steps, some perhaps twice; never at the last, which nothing follows."""
    saves = range(every, steps, every)
    if number and len(saves) < 2:  # noqa: PLR2004  one that is missed has another one after it
        raise ScheduleError([f"--kill-in-save needs --steps of more than twice --checkpoint-every {every}"])
    chosen = sorted(random.Random(seed).choices(saves[:-1], k=number))
    return tuple(Kill(step=step, signal=signal.SIGKILL, in_save=True) for step in chosen)


def allowed_exits(kill: str | None, *, sent_at: int | None, done: int, steps: int) -> list[int]:
    """Return the exit codes with which an attempt may end; the first one is the usual one.

    Args:
        kill: As a schedule has it, ``7:TERM``; None: it is left alone.
        sent_at: The step that was seen to be done when the signal was sent; None: it was never sent.
        done: The last step that was trained before this attempt.
        steps: Of the whole training.
    """
    if kill is None or done == steps:
        return [0]
    if kill.endswith(("KILL", _IN_SAVE)):
        return [KILLED]
    if sent_at is not None and sent_at + _STEPS_TO_AGREE >= steps:
        return [PREEMPTED, 0]  # it may be done before it can stop
    return [PREEMPTED]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _kill(text: str, problems: list[str]) -> Kill | None:
    step, _, name = text.partition(":")
    if step.isdecimal() and name in _SIGNALS:
        return Kill(step=int(step), signal=_SIGNALS[name])
    if step.isdecimal() and name == _IN_SAVE:
        return Kill(step=int(step), signal=signal.SIGKILL, in_save=True)
    problems.append(
        f"--kill-at has {text!r}; wanted is STEP:SIGNAL with one of {', '.join(_SIGNALS)}, {_IN_SAVE}"
    )
    return None


def _world(text: str, problems: list[str]) -> int | None:
    if text.isdecimal() and int(text):
        return int(text)
    problems.append(f"--worlds has {text!r}; wanted is a number of ranks, 1 or more")
    return None


def _contradictions(steps: int, kills: Sequence[Kill], worlds: Sequence[int]) -> list[str]:
    problems = []
    if steps < 1:
        problems.append(f"--steps is {steps}; wanted is 1 or more")
    if len(worlds) != len(kills) + 1:
        problems.append(
            f"--worlds has {len(worlds)} and --kill-at {len(kills)}: an attempt follows each kill, "
            f"so give {len(kills) + 1} numbers of ranks"
        )
    at = [kill.step for kill in kills]
    if at != sorted(set(at)):
        problems.append(
            f"--kill-at has the steps {', '.join(map(str, at))}; each must be after the one before"
        )
    if at and not 1 <= min(at) <= max(at) < steps:
        problems.append(f"--kill-at must lie between step 1 and the last but one of --steps {steps}")
    return problems
