"""State of an elastic job that outlasts its attempts: what AWS took, and what its program reported.

Its run time is counted in instance-seconds: all times of an elastic job are kept as if its training had been
at its largest width, where an hour at half of it uses half an hour up. So all that reads a job's run time
reads the same for elastic jobs and others, and only an attempt needs the time at its own width.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median

from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.widths import Widths

LONGEST_RUN = timedelta(days=28)
"""Source: SageMaker API reference, StoppingCondition, MaxRuntimeInSeconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeLimits:
    """Run times of a job's attempts that AWS accepted and refused."""

    granted: timedelta | None = None
    """Longest MaxRuntimeInSeconds that AWS accepted; None: none was accepted so far."""
    refused: timedelta | None = None
    """Shortest MaxRuntimeInSeconds that AWS refused for a limit of the account; None: none was."""

    def after_grant(self, run_time: timedelta) -> "RunTimeLimits":
        """Note an accepted run time; it disproves that one as short was refused for its length."""
        granted = max(self.granted or run_time, run_time)
        refused = None if self.refused is not None and self.refused <= granted else self.refused
        return RunTimeLimits(granted=granted, refused=refused)

    def after_refusal(self, run_time: timedelta) -> "RunTimeLimits":
        return RunTimeLimits(granted=self.granted, refused=min(self.refused or run_time, run_time))


NO_LIMITS = RunTimeLimits()


def run_time_at(
    width: int, left: timedelta, widths: Widths, limits: RunTimeLimits = NO_LIMITS
) -> timedelta | None:
    """Return MaxRuntimeInSeconds of an attempt at a width; None where AWS refuses as much.

    Args:
        width: Instances of the attempt.
        left: What is left of the job's run time at its largest width.
        widths: Widths of the job.
        limits: Run times that AWS accepted and refused before.
    """
    run_time = in_whole_seconds(min(at_width(left, width, widths.largest), max(LONGEST_RUN, left)))
    if limits.refused is None or run_time < limits.refused or width == widths.largest:
        return run_time
    return None if limits.granted is None else min(run_time, limits.granted)


def at_largest(trained: timedelta, width: int, largest: int) -> timedelta:
    """Return the time at the largest width that is as many instance-seconds as this time at a width."""
    return in_whole_seconds(trained * width / largest)


def at_width(time: timedelta, width: int, largest: int) -> timedelta:
    """Return the time at a width that is as many instance-seconds as this time at the largest."""
    return time * largest / width


def in_whole_seconds(time: timedelta) -> timedelta:
    return timedelta(seconds=int(time.total_seconds()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProgress:
    """The newest step that its program has reported, and how fast it trained at each width."""

    at: datetime
    """When the line was written."""
    step: int | None = None
    steps: int | None = None
    """Steps of the whole job; None: the program does not say."""
    speeds: Mapping[str, int] = field(default_factory=dict)
    """Steps in 1,000 seconds, by width as text."""

    @property
    def is_done(self) -> bool:
        """Tell whether no step is known to be left."""
        return self.step is not None and self.steps is not None and self.step >= self.steps

    @property
    def share_left(self) -> float | None:
        """Part of all steps that is left, 0 to 1; None: it is not known."""
        if self.step is None or not self.steps:
            return None
        return max(1 - self.step / self.steps, 0.0)

    def speed_at(self, width: int) -> float | None:
        """Return steps a second at a width; None: it has not run there, or did not say."""
        speed = self.speeds.get(str(width))
        return None if speed is None else speed / 1000


_LINE = re.compile(r"(?:metric|progress) (?P<words>[^\r\n]*)$")
_WORD = re.compile(r"(?P<name>[a-z_]{1,20})=(?P<number>[0-9]{1,15}(?:\.[0-9]{1,9})?)(?= |$)")
_MEMORY = 0.5
"""Weight of a new speed at a width against those seen before."""
_MOST_WIDTHS = 64


def reported_progress(
    lines: Iterable[str], known: TrainingProgress | None, *, width: int, at: datetime
) -> TrainingProgress | None:
    """Read the progress and the speed from a program's newest lines; what they do not say stays as known.

    A line is ``metric step=120 steps=1000 width=4 step_ms=83.1``, or begins with ``progress``; the words may
    be in any order. The global batch does not change with the width, so steps are the unit of speed.

    Args:
        lines: Lines of the live attempt, the oldest first.
        known: What was known before; None: nothing was.
        width: Instances of the live attempt, for lines that do not name a width.
        at: When the lines were read.
    """
    reports = [words for line in lines if (words := _words_of(line)) is not None]
    if not reports:
        return known
    newest, before = reports[-1], known or TrainingProgress(at=at)
    speeds = dict(before.speeds)
    paces = [
        words["step_ms"] for words in reports if words.get("step_ms") and words.get("width", width) == width
    ]
    if paces:
        speed = 1e6 / median(paces)
        seen = speeds.get(str(width))
        mixed = speed if seen is None else _MEMORY * speed + (1 - _MEMORY) * seen
        speeds[str(width)] = max(round(mixed), 1)
    return TrainingProgress(
        at=at,
        step=int(newest["step"]),
        steps=int(newest["steps"]) if newest.get("steps") else before.steps,
        speeds=dict(list(speeds.items())[-_MOST_WIDTHS:]),
    )


def _words_of(line: str) -> dict[str, float] | None:
    """Return the numbers of a progress line by their names; None for any other line."""
    match = _LINE.match(line.strip())
    if match is None:
        return None
    words = {word["name"]: float(word["number"]) for word in _WORD.finditer(match["words"])}
    return words if "step" in words else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticState:
    """Facts from earlier attempts of an elastic job that decide about its next width."""

    limits: RunTimeLimits = NO_LIMITS
    narrower_than: int | None = None
    """The next attempt is narrower than this, as the last one failed at it; None: it may have any width."""
    fell_back: bool = False
    """Whether a failure has led to a narrower attempt before, which happens once a job."""
    account_width: int | None = None
    """Most instances that the account's limits leave it, by their last refusal, until an attempt ends that
    trained; None: they refused none since."""
    wanted: int | None = None
    """Width of its next attempt as the planner wanted it when it stopped the last one; None: it did not stop
    one for its width, or the next has begun."""
    resized_at: datetime | None = None
    """When it was last asked to stop for another width; None: it never was."""
    progress: TrainingProgress | None = None
    """Newest report of its program; None: it has reported nothing that is understood."""

    def trained(self) -> "ElasticState":
        """Forget the widths that failed or were refused, as a narrower attempt trained.

        A change of width is no reason to ask the account once more for what it has just refused.
        """
        account_width = None if self.wanted is None else self.account_width
        return replace(self, narrower_than=None, account_width=account_width)

    def failed_at(self, width: int, widths: Widths) -> "ElasticState":
        """Note a failed attempt: the first one at more than the least width leads to a narrower attempt."""
        if self.fell_back or width <= widths.least:
            return self
        return replace(self, narrower_than=width, fell_back=True)


NEVER_RAN = ElasticState()


def startable(
    shapes: Iterable[Shape], widths: Widths, state: ElasticState, left: timedelta
) -> tuple[Shape, ...]:
    """Return the shapes in which the next attempt may start, the largest first.

    Args:
        shapes: One shape for each width and kind of capacity.
        widths: Widths of the job.
        state: What earlier attempts showed.
        left: What is left of its run time at the largest width.
    """
    failed, most = state.narrower_than or widths.largest + 1, state.account_width or widths.largest
    narrow = [shape for shape in shapes if shape.instances < failed and shape.instances <= most]
    granted = [
        shape for shape in narrow if run_time_at(shape.instances, left, widths, state.limits) is not None
    ]
    return tuple(granted or narrow)
