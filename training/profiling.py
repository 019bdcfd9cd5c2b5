"""A trace of one step, for chrome://tracing and Perfetto."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

from training.metrics import Event, event_line
from training.world import World

_DEFAULT_OUTPUT_DATA_DIR = "/opt/ml/output/data"

Outcome = TypeVar("Outcome")


def traced(
    train_step: Callable[[int], Outcome], *, at: int, world: World, env: Mapping[str, str]
) -> Callable[[int], Outcome]:
    """``train_step``, and the first rank writes a trace of step ``at`` to SM_OUTPUT_DATA_DIR; 0: no step.

    Where nothing is traced it is ``train_step`` itself.
    """
    if not at or not world.is_first:
        return train_step
    directory = Path(env.get("SM_OUTPUT_DATA_DIR", _DEFAULT_OUTPUT_DATA_DIR))

    def step_or_trace(step: int) -> Outcome:
        return _traced_step(train_step, step, world, directory) if step == at else train_step(step)

    return step_or_trace


def _traced_step(train_step: Callable[[int], Outcome], step: int, world: World, directory: Path) -> Outcome:
    activities = [ProfilerActivity.CPU]
    if world.device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities, record_shapes=True) as profiler:
        outcome = train_step(step)
        if world.device.type == "cuda":
            torch.cuda.synchronize(world.device)  # the trace is of this step's kernels, too
    path = directory / f"trace-step-{step:08d}.json"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        profiler.export_chrome_trace(str(path))
    except (OSError, RuntimeError) as error:  # a full disk must not end the training
        print(event_line(Event.PROFILE, step=step, error=str(error)), flush=True)
    else:
        print(event_line(Event.PROFILE, step=step, path=str(path)), flush=True)
    return outcome
