"""Draws what a trace lacks of a job, from a hash of seed and name: its class and its checkpoints."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import IntEnum
from hashlib import blake2b

CHECKPOINT_SHARE = 0.7
"""Share of the jobs that save; a stop costs the others everything."""
CHECKPOINT_EVERY_S = (600, 1800, 3600)
HIGH_SHARE, NORMAL_SHARE = 0.1, 0.5
"""Shares of the jobs by class; the rest is low."""
RUNTIME_LIMITS = (timedelta(days=1), timedelta(days=5), timedelta(days=28))
"""MaxRuntime: SageMaker's default of a day, or the first of these above the run time; the last is its most.

Source: SageMaker API reference, StoppingCondition.
"""


class Klass(IntEnum):
    """Worth of a job; also its order."""

    LOW = 0
    NORMAL = 1
    HIGH = 2


PRIORITIES: Mapping[Klass, int] = {Klass.LOW: 0, Klass.NORMAL: 100, Klass.HIGH: 200}


def draw(seed: int, kind: str, job_id: str) -> float:
    """Draw uniformly from [0, 1); always the same for the same job."""
    digest = blake2b(f"{seed}:{kind}:{job_id}".encode(), digest_size=7).hexdigest()
    return int(digest, 16) / 2**56


def drawn_class(seed: int, job_id: str) -> Klass:
    drawn = draw(seed, "c", job_id)
    if drawn < HIGH_SHARE:
        return Klass.HIGH
    return Klass.NORMAL if drawn < HIGH_SHARE + NORMAL_SHARE else Klass.LOW


def drawn_checkpoints_s(seed: int, job_id: str) -> int | None:
    """Draw the seconds between checkpoints; None if the job saves nothing."""
    if draw(seed, "k", job_id) >= CHECKPOINT_SHARE:
        return None
    return CHECKPOINT_EVERY_S[int(len(CHECKPOINT_EVERY_S) * draw(seed, "i", job_id))]


def usual_limit(trains_for: timedelta, limits: Sequence[timedelta] = RUNTIME_LIMITS) -> timedelta:
    """Return the first limit above the run time, else the last, which is SageMaker's own."""
    return next((limit for limit in limits if trains_for < limit), limits[-1])
