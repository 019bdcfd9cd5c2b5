"""The steps of one attempt: train, report, save, and leave when asked."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from training.preempt.agreement import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    steps: int
    log_every: int
    checkpoint_every: int
    """0: saved when the decision of a step says so."""
    min_step_seconds: float
    """Only to pace a demonstration."""

    def saves_at(self, step: int) -> bool:
        return step == self.steps or (self.checkpoint_every > 0 and step % self.checkpoint_every == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    decision: Decision
    trained: bool
    """False: the stop came before the last part of the step, whose gradients were dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What the loop calls, with the number of the step."""

    agree: Callable[[], Decision]
    train_step: Callable[[int], StepEnd]
    report: Callable[[int], None]
    save: Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopEnd:
    step: int
    """The last one trained."""
    stopped: bool
    """Asked to stop: the step may have no checkpoint yet."""
    seconds_left: float


def run_steps(plan: LoopPlan, parts: LoopParts, *, done: int) -> LoopEnd:
    """Go on after step ``done``, until the last one or until all ranks agree to stop."""
    step, decision = done, parts.agree()
    while not decision.stop and step < plan.steps:
        ends_at = time.monotonic() + plan.min_step_seconds
        end = parts.train_step(step + 1)
        decision = end.decision
        if not end.trained:
            break
        step += 1
        time.sleep(max(0.0, ends_at - time.monotonic()))
        if decision.stop or step == plan.steps or step % plan.log_every == 0:
            parts.report(step)
        if not decision.stop and (decision.save or plan.saves_at(step)):
            parts.save(step)
    return LoopEnd(step=step, stopped=decision.stop, seconds_left=decision.seconds_left)
