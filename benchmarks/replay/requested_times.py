"""Draws the run time that a job requests, its MaxRuntime, from a hash that does not know how long it runs.

A request that follows the run time would tell deciders what no user knows: every job that asks for more
than a day would be a long one.
"""

import argparse
from collections.abc import Sequence
from enum import StrEnum

from trainmaster_client.simulate.histories.trace_draws import draw

DEFAULT_S = 86_400
"""SageMaker's default MaxRuntimeInSeconds: a day."""
MOST_S = 28 * DEFAULT_S
"""SageMaker's longest MaxRuntimeInSeconds, in seconds."""
REQUESTS: Sequence[tuple[float, int]] = (
    (0.7, DEFAULT_S),
    (0.8, 2 * DEFAULT_S),
    (0.9, 5 * DEFAULT_S),
    (1.0, MOST_S),
)
"""Seconds by cumulative share: most keep SageMaker's default of a day, the others write a round value."""


class Requests(StrEnum):
    """Ways in which the jobs of a trace get their requested times."""

    DRAWN = "drawn"
    """The time that the trace tells, else one drawn independently of the run time."""
    DAY = "day"
    """A day for every job; run times are cut to it, as SageMaker would."""


def requests_of(text: str) -> tuple[Requests, ...]:
    """Parse the option: ``drawn``, ``day`` or both with a comma. Raises ArgumentTypeError."""
    words = text.split(",")
    if wrong := [word for word in words if word not in [request.value for request in Requests]]:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is no way to request; use {' or '.join(Requests)}")
    return tuple(request for request in Requests if request.value in words)


def requested_s(seed: int, job_id: str, *, duration_s: float, told_s: float | None = None) -> int:
    """Return the seconds that a job requests: never fewer than it runs, so that no job is cut short.

    A job that would outlast its request gets the most that SageMaker allows. So do a tenth of all jobs, which
    keeps that from giving the long ones away.

    Args:
        seed: Draws the request where the trace does not tell it.
        job_id: Id of the job in the trace.
        duration_s: Run time in seconds; it decides nothing but whether the job would outlast its request.
        told_s: Requested seconds by the trace, if it tells.
    """
    request_s = drawn_s(seed, job_id) if told_s is None else min(int(told_s), MOST_S)
    return request_s if duration_s < request_s else MOST_S


def drawn_s(seed: int, job_id: str) -> int:
    """Draw the seconds that a user would write, always the same for the same seed and job."""
    drawn = draw(seed, "r", job_id)
    return next(seconds for upto, seconds in REQUESTS if drawn < upto)
