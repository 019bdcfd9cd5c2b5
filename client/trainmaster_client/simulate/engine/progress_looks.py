"""Reads the progress that elastic jobs print, as the product does: by it a plan judges another width."""

from collections.abc import Iterable
from dataclasses import replace

from trainmaster.core.jobs.elastic_state import NEVER_RAN, reported_progress
from trainmaster.core.jobs.model import JobState

from trainmaster_client.simulate.engine.pool_state import PoolState
from trainmaster_client.simulate.engine.runs import Course, Run, work_s
from trainmaster_client.simulate.engine.simulated_sagemaker import SimulatedSageMaker


def read_progress(names: Iterable[str], state: PoolState, sagemaker: SimulatedSageMaker) -> None:
    """Note the progress of those of the jobs that are elastic and train."""
    for name in names:
        entry = state.running[name]
        if entry.widths is None or entry.state is not JobState.RUNNING:
            continue
        course, run = sagemaker.courses[name], sagemaker.runs[name]
        second = sagemaker.event_queue.now
        if course.trains_s is None or run.since_s >= second:
            continue
        job, (width,) = state.jobs[name], run.vector.values()
        known = job.elastic or NEVER_RAN
        line = _line(course, run, width, second)
        progress = reported_progress([line], known.progress, width=width, at=sagemaker.now)
        state.changes_attempt(replace(job, elastic=replace(known, progress=progress)))


def _line(course: Course, run: Run, width: int, second: float) -> str:
    """Return the line that its program prints: a step takes a second at the largest width."""
    speed = course.speed_at(run.vector)
    step = int(course.done_s + work_s(run.trained_s(second), speed))
    steps = int(course.trains_s or 0)
    return f"progress step={step} steps={steps} width={width} step_ms={1000 / speed:.3f}"
