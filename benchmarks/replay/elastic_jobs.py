"""Makes a share of a trace's jobs elastic: each can also use two and four times the instances it had."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainmaster.core.jobs.widths import LEAST_WIDTHS, Widths
from trainmaster_client.simulate.histories.trace_draws import draw

from benchmarks.replay.elasticity import Elasticity
from benchmarks.replay.jobs import WIDEST, TraceJob

TIMES = (1, 2, 4)
"""Widths as multiples of what the trace has."""
PER_DOUBLING = (1.6, 1.8, 1.9)
"""Speed-ups by twice the instances, one drawn for each job; the planner assumes 1.8 until it sees more."""
SAVES_EVERY_S = 1800
"""Seconds between checkpoints of an elastic job that saved nothing in the trace: without them it is none."""


def with_widths(
    jobs: Sequence[TraceJob], capacity: Mapping[str, int], *, share: float, seed: int
) -> list[TraceJob]:
    """Return the jobs, a share of them elastic; a pool with no room for a second width has none.

    Args:
        jobs: Of a trace.
        capacity: Instances of each pool.
        share: Part of the jobs that is drawn.
        seed: Draws which, and how well each scales.
    """
    return [
        _elastic(job, capacity[job.pool], seed) if draw(seed, "e", job.job_id) < share else job
        for job in jobs
    ]


def _elastic(job: TraceJob, most: int, seed: int) -> TraceJob:
    widths = tuple(count for times in TIMES if (count := job.instances * times) <= min(most, WIDEST))
    if len(widths) < LEAST_WIDTHS:
        return job
    place = int(draw(seed, "s", job.job_id) * len(PER_DOUBLING))
    elasticity = Elasticity(widths=Widths(counts=widths), per_doubling=PER_DOUBLING[place])
    return replace(job, elastic=elasticity, checkpoint_every_s=job.checkpoint_every_s or SAVES_EVERY_S)
