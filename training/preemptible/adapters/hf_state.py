"""Reads and sets what Trainer holds only in memory: the running call and its callbacks' counters."""

import json
import sys
from types import FrameType
from typing import Any

import torch
from transformers import Trainer
from transformers.trainer_callback import ExportableState

_FLAGS = ("should_training_stop", "should_epoch_stop")
"""Flags of Trainer's control that outlive a step; it sets the others again at each step."""


def training_call() -> dict[str, Any]:
    """Find the values of Trainer's call of ``train`` that this runs in; a callback is not given its Trainer.

    Raises:
        RuntimeError: No such call is under way.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        values = frame.f_locals
        if isinstance(values.get("self"), Trainer) and "num_update_steps_per_epoch" in values:
            return dict(values)
        frame = frame.f_back
    raise RuntimeError("PreemptionCallback must be called by Trainer.train()")


def plain_state(state: Any) -> dict[str, Any]:
    """Trainer's state without what its callbacks give out."""
    return {name: value for name, value in vars(state).items() if name != "stateful_callbacks"}


def taken_callbacks(trainer: Trainer) -> str:
    """Read the states that callbacks give out, and whether they asked the training to end, as JSON."""
    states = [[type(part).__name__, part.state()] for part in _stateful(trainer)]
    flags = {name: getattr(trainer.control, name) for name in _FLAGS}
    return json.dumps([*states, ["", {"attributes": flags}]])


def set_callbacks(trainer: Trainer, taken: str) -> None:
    """Set what Trainer would forget: EarlyStopping's patience would begin again."""
    *states, (_, control) = json.loads(taken)
    vars(trainer.control).update(control["attributes"])
    for part in _stateful(trainer):
        state = next((state for state in states if state[0] == type(part).__name__), None)
        if state is not None:
            states.remove(state)
            vars(part).update(state[1]["attributes"])


def as_number(value: Any) -> float | None:
    """Read a number that may be a tensor on the device; gradient norms are."""
    return value.item() if isinstance(value, torch.Tensor) else value


def _stateful(trainer: Trainer) -> list[Any]:
    return [part for part in trainer.callback_handler.callbacks if isinstance(part, ExportableState)]
