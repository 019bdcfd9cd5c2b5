"""Worth of another width: the time that an elastic job saves by a growth.

    gain = left * (1 - 1 / speed-up) - (stop + start-up + load + chance * wait)

``left`` is what the job would still train at its present width: by its own progress line, else by the lengths
of jobs like it, else what is left of its run time. The speed-up is that of its own metric lines at both
widths; where one is missing that of earlier runs of its program, and without those each doubling is
``PER_DOUBLING`` times as fast. ``stop`` is the time in which SageMaker lets a job save, ``start-up`` what its
attempt took to train, ``load`` the reading of its checkpoint. With ``chance`` AWS has no instances for the
restart, and the job waits ``wait`` for nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import inf, log2

from trainmaster.core.durations.work_speeds import MeasuredWidths
from trainmaster.core.jobs.elastic_state import TrainingProgress, at_width
from trainmaster.core.jobs.widths import LEAST_WIDTHS
from trainmaster.core.planning.snapshot import RunningJob

PER_DOUBLING = 1.8
"""Speed-up by twice the instances where the job has not shown its own."""
STOP = timedelta(seconds=120)
"""Source: SageMaker API reference, StopTrainingJob: 120 seconds to save."""
LOAD = timedelta(seconds=60)
_HOUR = timedelta(hours=1)
_NO_TIME = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRisk:
    """Chance that AWS has no instances for a start of a type, and what that costs."""

    chance: float = 0.0
    wait: timedelta = _NO_TIME
    """Time that a start without instances waits for them."""


NO_RISK = StartRisk()


@dataclass(frozen=True, slots=True, kw_only=True)
class WidthWorth:
    """Gain of a job that continues with more instances."""

    width: int
    to: int
    largest: int
    """The largest of its widths."""
    left: timedelta
    """Time that it would still train at its present width."""
    saved: timedelta
    """Time by which it would end earlier; negative: it would end later."""
    learned_from: MeasuredWidths | None = None
    """Earlier runs whose speeds are behind it; None: its own speeds are, or the usual speed-up."""

    @property
    def text(self) -> str:
        verb = "would save" if self.saved > _NO_TIME else "would not save any"
        gain = f" {_time_text(self.saved)}" if self.saved > _NO_TIME else ""
        growth = f"growing to {self.to} {verb}{gain} of {_time_text(self.left)}"
        if self.learned_from is not None:
            growth += f", by the speeds of {runs_text(self.learned_from)}"
        return f"{self.width} of {self.largest} instances; {growth}"

    @property
    def ends_in(self) -> timedelta:
        """Time from now to its end if it grows."""
        return self.left - self.saved


def width_worth(job: RunningJob, to: int, *, now: datetime, risk: StartRisk = NO_RISK) -> WidthWorth:
    """Return what an elastic job gains by continuing with ``to`` instances.

    Args:
        job: A running job that trains.
        to: More instances than it has.
        now: Instant of the stop.
        risk: Chance that the restart gets no instances at first.
    """
    width, left = sum(job.vector.values()), time_left(job, now=now)
    measured = None if job.widths is None else job.widths.measured
    faster = speed_up(job.progress, width, to, measured)
    saved = left - left / faster - restart(job) - risk.chance * risk.wait
    largest = to if job.widths is None else job.widths.largest
    is_own = own_speed_up(job.progress, width, to) is not None
    learned_from = None if is_own else measured
    return WidthWorth(width=width, to=to, largest=largest, left=left, saved=saved, learned_from=learned_from)


def restart(job: RunningJob) -> timedelta:
    """Return how long a job does not train for a change of its width."""
    start_up = _NO_TIME if job.training_since is None else job.training_since - job.claimed_at
    lost = _NO_TIME if job.stops is None else job.stops.lost
    return STOP + start_up + LOAD + lost


def speed_up(
    progress: TrainingProgress | None, width: int, to: int, measured: MeasuredWidths | None = None
) -> float:
    """Return how much faster a job trains with ``to`` instances than with ``width``.

    Args:
        progress: What the job has reported itself.
        width: Its instances.
        to: Other instances; more or fewer.
        measured: Speeds of earlier runs of its program, which count where its own are missing.
    """
    own = own_speed_up(progress, width, to)
    if own is not None:
        return own
    if measured is not None:
        return measured_speed_up(measured, width, to)
    return float(PER_DOUBLING ** log2(to / width))


def own_speed_up(progress: TrainingProgress | None, width: int, to: int) -> float | None:
    """Return the speed-up that a job has shown itself; None if it has not trained at both widths."""
    if progress is None:
        return None
    before, after = progress.speed_at(width), progress.speed_at(to)
    return after / before if before and after else None


def measured_speed_up(measured: MeasuredWidths, width: int, to: int) -> float:
    """Return the speed-up by earlier runs: never above linear, never below 1 for more instances.

    Between two measured widths speed is a power of the width, so that any two steps make the same speed-up as
    one. Beyond the measured widths the usual one holds, or that of the nearest two if it is less.
    """
    narrow, wide = sorted((log2(width), log2(to)))
    doublings = sum(
        exponent * max(min(wide, end) - max(narrow, begin), 0.0)
        for begin, end, exponent in _segments(measured)
    )
    return float(2 ** (doublings if to >= width else -doublings))


def _segments(measured: MeasuredWidths) -> Iterator[tuple[float, float, float]]:
    """Yield ranges of widths, as logarithms to base 2, with the exponent of speed within each.

    A slower wider run is noise, or a limit that is reached: it counts as equally fast.
    """
    speeds = zip(measured.counts, measured.per_1000_s, strict=False)
    points = [(log2(count), log2(speed)) for count, speed in speeds if count > 0 and speed > 0]
    usual = log2(PER_DOUBLING)
    if len(points) < LEAST_WIDTHS:
        yield -inf, inf, usual
        return
    exponents = [
        min(max((after - before) / (end - begin), 0.0), 1.0)
        for (begin, before), (end, after) in pairwise(points)
    ]
    yield -inf, points[0][0], min(exponents[0], usual)
    for ((begin, _), (end, _)), exponent in zip(pairwise(points), exponents, strict=True):
        yield begin, end, exponent
    yield points[-1][0], inf, min(exponents[-1], usual)


def runs_text(measured: MeasuredWidths) -> str:
    """Name the earlier runs: ``5 runs of its program with 2 to 8 instances``."""
    other = " with other hyperparameters" if measured.other_settings else ""
    at = f"with {measured.counts[0]} to {measured.counts[-1]} instances"
    return f"{measured.runs} runs of its program{other} {at}"


def time_left(job: RunningJob, *, now: datetime) -> timedelta:
    """Return how long a job would still train at its present width."""
    width, progress = sum(job.vector.values()), job.progress
    if progress is not None and progress.step is not None and progress.steps is not None:
        speed = progress.speed_at(width)
        if speed:
            reported = timedelta(seconds=max(progress.steps - progress.step, 0) / speed)
            return max(reported - (now - progress.at), _NO_TIME)
    trained = _NO_TIME if job.training_since is None else max(now - job.training_since, _NO_TIME)
    expected, widths = job.expected, job.widths
    if expected.predicted is not None and widths is not None:
        # Times of an elastic job are kept as if it had trained at its largest width.
        return max(at_width(expected.predicted, width, widths.largest) - trained, _NO_TIME)
    return _NO_TIME if expected.at_most is None else max(expected.at_most - trained, _NO_TIME)


def _time_text(time: timedelta) -> str:
    minutes = round(time / timedelta(minutes=1))
    if time < _HOUR or minutes % 60:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if hours else f"{rest} min"
    return f"{minutes // 60} h"
