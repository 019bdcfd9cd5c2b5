"""How fast attempts of one kind of jobs trained: samples or tokens a second, by shape.

SageMaker keeps the last value of each metric of a training job. A few names say what they count; a metric of
any other name tells nothing here, because nobody knows whether more of it is better.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trainmaster.core.durations.decay import FORGOTTEN, HALF_LIFE

TOKENS, SAMPLES = "tokens", "samples"
UNITS: Mapping[str, str] = {
    # The training program of this project: training/metrics.py.
    "tok_s": TOKENS,
    "img_s": SAMPLES,
    # What scripts commonly call it.
    "tokens_per_second": TOKENS,
    "tokens_per_sec": TOKENS,
    "tokens/s": TOKENS,
    "tokens/sec": TOKENS,
    "samples_per_second": SAMPLES,
    "samples_per_sec": SAMPLES,
    "samples/s": SAMPLES,
    "samples/sec": SAMPLES,
    "images_per_second": SAMPLES,
    "images/s": SAMPLES,
}
"""Unit by name of a metric, without the prefix ``train:``; of several the first in this order counts.

What transformers prints of itself is left out: its tokens a second are those of one device, and its samples a
second count what was trained before a resume as well (``include_tokens_per_second``, ``speed_metrics``)."""
_PREFIX = "train:"
SHORTEST_TRAINING = timedelta(minutes=5)
"""Least time in status Training of an attempt whose speed counts: before that it compiles, fills its caches
and reads its first data. A preemption, too, counts a shorter attempt as one that did not train."""
SLOWEST, FASTEST = 0.001, 1e12
"""Work a second below and above which a value is taken for a mistake of the program."""
_SHAPE = re.compile(r"[a-z0-9.-]+(:spot)?=[1-9][0-9]{0,5}")
"""Shapes of runs: instances of one type. A later release may keep others, which are left out here."""
LATEST = 8
"""Number of runs that a row keeps of one shape: the next one takes the place of the oldest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSpeed:
    """Speed of one attempt."""

    unit: str
    """``TOKENS`` or ``SAMPLES``, or a unit of a later release."""
    per_1000_s: int
    """Work in 1,000 seconds, of all its instances together; whole, as rows hold no fractions."""


def speed_of(metrics: Mapping[str, object]) -> WorkSpeed | None:
    """Return the speed that the last values of a job's metrics tell; None if they tell none.

    Args:
        metrics: Values by name of the metric; other values than numbers of a credible size are ignored.
    """
    by_name = {name.removeprefix(_PREFIX).lower(): value for name, value in metrics.items()}
    for name, unit in UNITS.items():
        value = by_name.get(name)
        if isinstance(value, int | float) and math.isfinite(value) and SLOWEST <= value <= FASTEST:
            return WorkSpeed(unit=unit, per_1000_s=round(1000 * value))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One attempt whose speed counts."""

    shape: str
    """Its instances as ``vector_text`` writes them: ``ml.g5.4xlarge:spot=4``."""
    speed: WorkSpeed
    ended_at: datetime
    settings: str = ""
    """Digest of its hyperparameters; empty: it had none."""


def work_kind(team: str, program: str, image: str | None, settings: str | None) -> str:
    """Return the kind of work of a job: what must be equal for its speed to be compared, then its settings.

    Unlike lengths, speeds are of one program in all its shapes, so the shape is no part of it.

    Args:
        team: The job's team.
        program: ``base_name`` of the job.
        image: Image, or name of the algorithm.
        settings: Digest of its hyperparameters.
    """
    digest = hashlib.blake2b(json.dumps([team, program, image]).encode(), digest_size=8).hexdigest()
    return f"{digest}:{settings or ''}"


def run_text(kind: str, run: MeasuredRun) -> str:
    """Write a run as a row keeps it."""
    digest, _, settings = kind.partition(":")
    seconds = int(run.ended_at.timestamp())
    return " ".join(
        (digest, settings or "-", run.speed.unit, str(run.speed.per_1000_s), str(seconds), run.shape)
    )


def read_run(kind: str, text: object) -> MeasuredRun | None:
    """Read what ``run_text`` wrote; None if it is of another kind, or cannot be understood.

    Two kinds may share a row. A later release may write more, or other units.
    """
    match text.split(" ") if isinstance(text, str) else []:
        case [digest, settings, unit, work, seconds, shape, *_] if digest == kind.partition(":")[0]:
            pass
        case _:
            return None
    is_known = _SHAPE.fullmatch(shape) and work.isdecimal() and seconds.isdecimal()
    if not is_known or not 0 < int(work) <= 1000 * FASTEST:
        return None
    return MeasuredRun(
        shape=shape,
        speed=WorkSpeed(unit=unit, per_1000_s=int(work)),
        ended_at=datetime.fromtimestamp(int(seconds), UTC),
        settings="" if settings == "-" else settings,
    )


def counted(runs: Iterable[MeasuredRun], *, now: datetime) -> list[MeasuredRun]:
    """Return the runs that still count: none that is older than what is learned of lengths."""
    return [run for run in runs if run.ended_at > now - FORGOTTEN]


def usual_speed(runs: Sequence[MeasuredRun]) -> float:
    """Return the work a second of the middle run; a run a week older than the newest weighs half.

    Args:
        runs: Runs of one shape in one unit; at least one.
    """
    newest = max(run.ended_at for run in runs)
    weighted = sorted(
        (run.speed.per_1000_s, float(2 ** ((run.ended_at - newest) / HALF_LIFE))) for run in runs
    )
    half, reached = sum(weight for _, weight in weighted) / 2, 0.0
    middle: list[int] = []
    for work, weight in weighted:
        before, reached = reached, reached + weight
        if reached >= half and before <= half:
            middle.append(work)
    return sum(middle) / len(middle) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSpeed:
    """The usual speed of a kind of work in one shape."""

    shape: str
    """Its instances, as in ``MeasuredRun``."""
    unit: str
    per_second: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredWidths:
    """How fast earlier runs of a job's program were, at two widths or more, when the job was submitted."""

    counts: tuple[int, ...]
    """Instances of those runs in ascending order, each count once."""
    per_1000_s: tuple[int, ...]
    """Work in 1,000 seconds at each of them, in the unit in which they were measured."""
    runs: int
    """Number of runs that they come from."""
    other_settings: bool = False
    """Whether those runs had other hyperparameters than the job."""


def speeds_by_shape(runs: Iterable[MeasuredRun], *, settings: str, now: datetime) -> tuple[ShapeSpeed, ...]:
    """Return the speeds that can be compared: in the one unit in which most shapes were measured.

    Args:
        runs: What was measured of a kind of work.
        settings: Digest of the hyperparameters: runs with the same go first, if they tell of several shapes.
        now: The present instant.
    """
    known = counted(runs, now=now)
    own = _comparable([run for run in known if run.settings == settings])
    return own if len(own) > 1 else _comparable(known)


def _comparable(runs: Sequence[MeasuredRun]) -> tuple[ShapeSpeed, ...]:
    units = sorted({run.speed.unit for run in runs})
    return max((_in_unit(runs, unit) for unit in units), key=len, default=())


def _in_unit(runs: Sequence[MeasuredRun], unit: str) -> tuple[ShapeSpeed, ...]:
    by_shape: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        if run.speed.unit == unit:
            by_shape.setdefault(run.shape, []).append(run)
    return tuple(
        ShapeSpeed(shape=shape, unit=unit, per_second=usual_speed(alike), runs=len(alike))
        for shape, alike in sorted(by_shape.items())
    )
