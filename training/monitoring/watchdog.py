"""Notices that the ranks of a host hang, and says where. launch.py uses this file from monitoring/ beside it.

Each rank keeps a file of a few bytes in the memory of the host, replaced in place (``Heartbeat``; some
microseconds a step), with what it is doing and at which step. Only time in which every rank of the host is
inside a step counts: loading, compiling, evaluating, saving and waiting for data may take as long as they
take, and so may a process that somebody has stopped (SIGSTOP, a debugger). It needs only Python's standard
library.
"""

import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

VARIABLE = "LAUNCH_HEARTBEAT"
"""Names the heartbeat's file; the launcher sets it for each rank. If it is not set, nothing is written."""
IN_STEP, WAITS_FOR_DATA, BETWEEN_STEPS = "step", "data", "between"
"""Activities of a rank. Only a step is judged by its time; start, evaluation, save and end are between
steps."""
_PERIOD = 0.5  # seconds between two looks
_LEAST_SECONDS = 480.0  # collectives themselves give up after 600 (world.py), and say less
_TIMES_USUAL = 20
_LEAST_TIMES_USUAL = 5  # of hang_seconds: a limit that was set for short steps must not end long ones
_FIRST_STEPS = 3  # compile, and fill caches
_REMEMBERED = 20
_DUMP_SECONDS = 5.0  # for a rank to write its stacks
_QUIET_SECONDS = 0.3  # after which it is done with it
_SHOWN = 4
_FRAME = re.compile(r'^ {2}File "(?P<file>[^"]{1,500})", line (?P<line>\d+) in (?P<function>.+)$')


class Rank(Protocol):
    """A worker process of launch.py."""

    name: str

    @property
    def pid(self) -> int: ...
    def said(self) -> str:
        """Return the end of what it has written to its error output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    doing: str
    step: int
    hang_seconds: float  # as the job sets it; 0: not at all


def beat_in(path: Path) -> Beat | None:
    """Read a rank's file; None if there is none yet, or it is just being written."""
    try:
        doing, step, seconds = path.read_text().split()
        return Beat(doing=doing, step=int(step), hang_seconds=float(seconds))
    except (OSError, ValueError):
        return None


class Heartbeat:
    def __init__(self, env: Mapping[str, str], *, hang_seconds: float = 0.0) -> None:
        """Open this rank's file, if the launcher gave it one.

        ``hang_seconds`` without any progress count as hanging; 0 leaves the limit to the launcher.
        """
        path = env.get(VARIABLE)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600) if path else None
        self._hang_seconds = hang_seconds
        self._step = 0

    def begins(self, step: int) -> None:
        self._step = step
        self._beat(IN_STEP)

    def waits_for_data(self) -> None:
        self._beat(WAITS_FOR_DATA)

    def has_data(self) -> None:
        self._beat(IN_STEP)

    def ends(self) -> None:
        """Record that the step is done."""
        self._beat(BETWEEN_STEPS)

    def _beat(self, doing: str) -> None:
        if self._file is not None:  # of one length, so that no part of a longer one stays behind
            os.pwrite(self._file, f"{doing:<8} {self._step:>12} {self._hang_seconds:>12g}\n".encode(), 0)


@dataclass(kw_only=True)
class Progress:
    """The progress of the ranks of a host, in time that this process has seen pass."""

    last: tuple[Beat | None, ...] = ()
    seen_at: float | None = None
    waited: float = 0.0
    """Seconds for which every rank was inside a step and none got any further."""
    in_step: float = 0.0
    """Seconds since the newest step began anywhere."""
    steps: int = 0
    """Steps that began while the ranks were watched."""
    usual: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def hangs(self, beats: tuple[Beat | None, ...], now: float, *, are_running: bool) -> bool:
        """Tell whether the ranks hang by now.

        ``are_running`` is False while somebody has stopped one of the processes.
        """
        # A launcher that was itself held up has seen nothing in the meantime.
        passed = min(now - (now if self.seen_at is None else self.seen_at), 2 * _PERIOD)
        self.seen_at = now
        moves = beats != self.last
        self.in_step += passed
        if begun := self._newest(beats) - self._newest(self.last):
            if self.steps:
                self.usual.append(self.in_step / begun)
            self.steps += begun if self.last else 1
            self.in_step = 0.0
        self.last = beats
        is_judged = are_running and all(beat is not None and beat.doing == IN_STEP for beat in beats)
        self.waited = self.waited + passed if is_judged and not moves else 0.0
        return self.steps >= _FIRST_STEPS and self.waited >= self.limit

    @property
    def step(self) -> int:
        """Return the newest step that is done: every rank was in the next one."""
        return min((beat.step for beat in self.last if beat), default=1) - 1

    @property
    def longest(self) -> float:
        """Return the seconds of the longest of the last steps, with an evaluation or a save if it had one."""
        return max(self.usual, default=0.0)

    @property
    def limit(self) -> float:
        given = max((beat.hang_seconds for beat in self.last if beat), default=0.0)
        if given:
            return max(given, _LEAST_TIMES_USUAL * self.longest)
        return max(_LEAST_SECONDS, _TIMES_USUAL * self.longest)

    @staticmethod
    def _newest(beats: Sequence[Beat | None]) -> int:
        return max((beat.step for beat in beats if beat), default=0)


class Watchdog:
    """Looks at the ranks of this host twice a second, while it is entered."""

    def __init__(
        self, envs: Sequence[Mapping[str, str]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepare a file for each rank; ``envs`` are the ranks' environment variables."""
        self._clock, self._progress, self._next_look = clock, Progress(), 0.0
        self._folder: Path | None = None
        with suppress(OSError):  # where nothing can be written, ranks are not watched
            self._folder = Path(tempfile.mkdtemp(prefix="launch-"))
        self._beats = [self._folder / env["RANK"] for env in envs] if self._folder else []
        files = [{VARIABLE: str(path)} for path in self._beats] or [{}] * len(envs)
        self.envs = [{**env, **variables} for env, variables in zip(envs, files, strict=True)]
        """Variables of the ranks, which name the file that each of them keeps."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def why(self, ranks: Sequence[Rank]) -> str:
        """Return why the attempt has to end, with all stacks in the log; empty while it need not end."""
        now = self._clock()
        if now < self._next_look or not self._beats:
            return ""
        self._next_look = now + _PERIOD
        progress = self._progress
        beats = tuple(beat_in(path) for path in self._beats)
        if not progress.hangs(beats, now, are_running=not any(is_stopped(rank.pid) for rank in ranks)):
            return ""
        reason = (
            f"hang: no rank has finished a step for {progress.waited:.0f} s "
            f"(usual: {progress.longest:.1f} s) since step {progress.step}"
        )
        print(f"launcher: {reason}; the stacks of all ranks follow", file=sys.stderr, flush=True)
        where = {rank.name: place(stacks_of(rank)) for rank in ranks}
        return f"{reason}: {'; '.join(told(where))}; all stacks are in the log"


def told(where: Mapping[str, str]) -> Iterator[str]:
    """Describe which ranks are where: the place with the fewest first, as they hold up the rest.

    Ranks that wait for others inside torch come after those in another place.
    """
    names = {place: [name for name in where if where[name] == place] for place in where.values()}
    for place, those in sorted(names.items(), key=lambda group: (len(group[1]), "distributed" in group[0])):
        remainder = f" and {len(those) - _SHOWN} more" if len(those) > _SHOWN else ""
        yield f"{', '.join(those[:_SHOWN])}{remainder} in {place}"


def stacks_of(rank: Rank) -> str:
    """Let a rank write the stacks of its threads to the log, and return the end of them."""
    marker = f"launcher: {rank.name}, process {rank.pid}:"
    print(marker, file=sys.stderr, flush=True)
    if not catches(rank.pid, signal.SIGUSR1):
        print("launcher: it cannot say where it is", file=sys.stderr, flush=True)
        return ""
    before, newest = rank.said(), ""
    with suppress(ProcessLookupError):
        os.kill(rank.pid, signal.SIGUSR1)
    ends_at = quiet_at = time.monotonic() + _DUMP_SECONDS
    while time.monotonic() < min(ends_at, quiet_at):
        time.sleep(0.05)
        if (now := rank.said()) not in (before, newest):
            newest, quiet_at = now, time.monotonic() + _QUIET_SECONDS
    return newest


def place(stacks: str) -> str:
    """Find the place of the main thread: ``wait (work.py:12)``.

    Its stack is the last one in the text, innermost frame first.
    """
    lines = stacks.splitlines()
    starts = [at for at, line in enumerate(lines) if "(most recent call first)" in line]
    for line in lines[starts[-1] + 1 :] if starts else ():
        if frame := _FRAME.match(line):
            return f"{frame['function']} ({Path(frame['file']).name}:{frame['line']})"
    return "an unknown place"


def hand_on(ranks: Sequence[Rank], number: signal.Signals) -> None:
    """Send the signal to the ranks that handle it; the others would end."""
    for rank in ranks:
        with suppress(ProcessLookupError):
            if catches(rank.pid, number):
                os.kill(rank.pid, number)


def is_stopped(pid: int) -> bool:
    """Tell whether SIGSTOP or a debugger has stopped the process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"T", "t"}
    except (OSError, IndexError):
        return False


def catches(pid: int, number: signal.Signals) -> bool:
    """Tell whether the process handles the signal; else the signal would end it."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False
