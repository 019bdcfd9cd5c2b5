"""The steps of one attempt: train, report, save, and leave when asked."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    steps: int
    log_every: int
    checkpoint_every: int
    min_step_seconds: float
    """Only to pace a demonstration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What the loop calls, each with the number of the step."""

    train_step: Callable[[int], None]
    report: Callable[[int], None]
    save: Callable[[int], None]
    stop_agreed: Callable[[], bool]


def run_steps(plan: LoopPlan, parts: LoopParts, *, done: int) -> int:
    """Go on after step ``done``; the last step trained, which has a checkpoint.

    It is below ``plan.steps`` when the attempt was asked to stop.
    """
    for step in range(done + 1, plan.steps + 1):
        ends_at = time.monotonic() + plan.min_step_seconds
        parts.train_step(step)
        time.sleep(max(0.0, ends_at - time.monotonic()))
        last = parts.stop_agreed() or step == plan.steps
        if last or step % plan.log_every == 0:
            parts.report(step)
        if last or step % plan.checkpoint_every == 0:
            parts.save(step)
        if last:
            return step
    return done
