"""Run time that a job has left and has had; when the instances of an attempt are certain to be free."""

from datetime import datetime, timedelta

from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.elastic_state import NEVER_RAN, at_largest, run_time_at
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import Job, JobSpec
from trainmaster.core.jobs.observations import Observation

END_SLACK = timedelta(minutes=10)
"""SageMaker's own time around Training: start-up is not counted, stopping and upload come after."""
LEAST_RUNTIME = timedelta(minutes=30)
"""Shortest time an attempt gets even if less is left of the job's MaxRuntimeInSeconds: less is useless."""
MAX_EXTENSIONS = 3
"""Most attempts that get more than what is left; later ones get what is left."""
SHORTEST_RUNTIME = timedelta(minutes=1)


def runtime_left(job: Job) -> tuple[timedelta, bool]:
    """Return MaxRuntime of the next attempt, and whether that is more than what is left of the job's.

    The run time is the job's: training that is kept in checkpoints is used up.
    """
    left = job.spec.max_runtime - job.checkpointed
    if left >= min(LEAST_RUNTIME, job.spec.max_runtime):
        return left, False
    if job.extensions < MAX_EXTENSIONS:
        return min(LEAST_RUNTIME, job.spec.max_runtime), True
    return max(left, SHORTEST_RUNTIME), False


def attempt_run_time(job: Job, shape: Shape) -> timedelta:
    """Return MaxRuntime of the next attempt in a shape: an elastic job's is what is left at that width."""
    left, _ = runtime_left(job)
    if job.spec.widths is None:
        return left
    limits = (job.elastic or NEVER_RAN).limits
    return run_time_at(shape.instances, left, job.spec.widths, limits) or left


def counted_time(spec: JobSpec, live: Attempt, trained: timedelta) -> timedelta:
    """Return an attempt's time as the job counts it: an elastic job's as if at the largest width."""
    if spec.widths is None:
        return trained
    return at_largest(trained, live.shape.instances, spec.widths.largest)


def ends_by(job: Job) -> datetime | None:
    """Return when the live attempt's instances are free at the latest; None before it trains.

    Spot counts MaxWait from creation, on-demand MaxRuntime from the start of Training.
    """
    live = job.live
    if live is None:
        return None
    if live.max_wait is not None:
        return live.claim.at + live.max_wait + END_SLACK
    return None if live.training_since is None else live.training_since + live.max_runtime + END_SLACK


def trained_by(instant: datetime, live: Attempt, seen: Observation | None) -> timedelta:
    """Return an attempt's time in status Training, by SageMaker or else since it was first seen there.

    Args:
        instant: End of the time that counts.
        live: The attempt.
        seen: SageMaker's report on it; None: there is none.
    """
    if seen is not None and seen.training_since is not None:
        return seen.trained_by(instant)
    since = live.training_since
    return timedelta() if since is None else max(instant - since, timedelta())


def least_length(job: Job) -> timedelta | None:
    """Return the least that it is known to train: what is safe, plus what one attempt lost on average."""
    if not job.attempt:
        return None
    return job.checkpointed + timedelta(seconds=sum(job.spent.wasted.values()) // job.attempt)


def likely_length(spec: JobSpec) -> timedelta | None:
    """Predict its whole training at submission; None: no job like it has ended."""
    if spec.likely is not None:
        return spec.likely.remaining(timedelta(), at_most=spec.max_runtime)
    return None if spec.predicted is None else min(spec.predicted, spec.max_runtime)


def likely_left(job: Job) -> timedelta | None:
    """Predict what is left of its training; None where nothing is known.

    Among the lengths of jobs like it, those that it has outlasted already are ruled out.
    """
    likely, known = job.spec.likely, least_length(job)
    if likely is None or known is None:
        whole = job.spec.predicted if likely is None else likely_length(job.spec)
        return None if whole is None else max(whole - job.checkpointed, timedelta())
    most = max(job.spec.max_runtime - job.checkpointed, timedelta())
    # ``remaining`` counts from what it has outlasted, so both together are the whole; what checkpoints keep
    # of that is not trained again.
    return min(likely.remaining(known, at_most=most) + known - job.checkpointed, most)
