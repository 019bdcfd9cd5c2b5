"""Steps of a minute and more against the 110 seconds of a stop, by a clock that the model's passes move on.

Only the clock is played: the model, its shards, the votes, SIGTERM and the checkpoints are real.
"""

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

from tests.integration.training.worlds import in_world
from training import job
from training.config import TrainConfig, read_config
from training.monitoring.goodput import Meter
from training.preemptible.checkpoint import Checkpointer
from training.preemptible.preempt import STOP_SECONDS, StopRequest
from training.ranks.world import World

_STEPS = 6
_FORWARD = 1 / 3
"""Of the time of a part; the rest is its backward pass."""


class Clock:
    """Whoever takes time moves it on. The signal comes at its instant, within a pass or between two."""

    def __init__(self, signal_at: float | None) -> None:
        self.now = 0.0
        self._signal_at = signal_at

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        end = self.now + seconds
        if self._signal_at is not None and self._signal_at <= end:
            self.now, self._signal_at = self._signal_at, None
            os.kill(os.getpid(), signal.SIGTERM)
        self.now = end


def _attempt(
    world: World, /, place: Path, signal_at: float | None, *, step: float, save: float = 10.0, **options: Any
) -> tuple[int, float]:
    """With so many seconds a step and a save; the exit code, and the seconds from the signal to the exit."""
    texts = {
        "steps": _STEPS,
        "batch_size": 4,
        "sequence_length": 16,
        "precision": "fp32",
        "export": "false",
        "checkpoint_every": 100,
        "checkpoint_dir": place / "checkpoints",
        "model_dir": place / "model",
        "metrics_file": place / "metrics",
    } | options
    config = read_config([f"--{name}={value}" for name, value in texts.items()], {})
    clock = Clock(signal_at)
    part = step / config.gradient_accumulation_steps
    empty_model, save_within = job.empty_model, Checkpointer.save_within

    def passes(_model: nn.Module, _inputs: Any, logits: Tensor) -> None:
        clock.spend(part * _FORWARD)
        logits.register_hook(lambda _: clock.spend(part * (1 - _FORWARD)))

    def empty_slow_model(config: TrainConfig, world: World) -> nn.Module:
        model = empty_model(config, world)
        model.register_forward_hook(passes)
        return model

    def save_slowly(self: Checkpointer, number: int, seconds: float, **keywords: Any) -> bool:
        if save > seconds:
            return False
        clock.spend(save)
        return save_within(self, number, 1e6, **keywords)

    with pytest.MonkeyPatch.context() as patch, StopRequest(clock=clock) as stop:
        patch.setattr(job, "empty_model", empty_slow_model)
        patch.setattr(job, "Meter", partial(Meter, clock=clock))
        patch.setattr(Checkpointer, "save_within", save_slowly)
        patch.setattr(Checkpointer, "seconds_to_save", lambda _: save)
        return job.run_in(world, config, {}, stop), stop.seconds_since


def _losses(place: Path) -> dict[int, str]:
    """To the last bit; of a step that was trained twice the later one."""
    lines = (json.loads(line) for line in (place / "metrics").read_text().splitlines())
    return {line["step"]: line["loss_hex"] for line in lines}


def _status(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "checkpoints/status.json").read_bytes())
    return found


_JUST_AFTER = 1e-6
# Two steps are over when the third begins: it lasts from 2 T to 3 T, its backward pass from 2 1/3 T on.
_MOMENTS = {
    "at its start": 2 + _JUST_AFTER,
    "in the forward pass": 2.2,
    "as the backward pass begins": 2 + _FORWARD + _JUST_AFTER,
    "in the backward pass": 2.8,
    "at its end": 3.0,
}


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("moment", _MOMENTS)
def test_M4_a_step_of_a_minute_is_finished_and_saved_before_the_deadline(
    world: World, tmp_path: Path, moment: str, parts: int
) -> None:
    code, seconds = _attempt(
        world, tmp_path, 60 * _MOMENTS[moment], step=60, gradient_accumulation_steps=parts
    )
    assert (code, seconds <= STOP_SECONDS) == (143, True)
    assert (_status(tmp_path)["step"], _status(tmp_path)["lost_steps"]) == (3, 0)


@pytest.mark.parametrize(
    "strategy",
    ["full_shard", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("shard_grad_op", "no_shard"))],
)
@pytest.mark.parametrize("parts", [1, 4])
def test_M4_a_step_that_cannot_end_in_time_is_dropped_and_the_one_before_is_saved(
    world: World, tmp_path: Path, parts: int, strategy: str
) -> None:
    options: dict[str, Any] = {"step": 150, "gradient_accumulation_steps": parts, "strategy": strategy}
    code, seconds = _attempt(world, tmp_path, 150 * (2 + _JUST_AFTER), **options)
    assert (code, _status(tmp_path)["step"], _status(tmp_path)["lost_steps"]) == (143, 2, 0)
    # The part that was in its forward pass is all that was computed for nothing.
    assert seconds == pytest.approx(150 / parts * _FORWARD + 10, abs=1e-3)
    assert _attempt(world, tmp_path, None, **options)[0] == 0
    _attempt(world, tmp_path / "whole", None, **options)
    assert _losses(tmp_path) == _losses(tmp_path / "whole")


_TOO_LATE = ("as the backward pass begins", 80, 1)
"""A backward pass that has begun is not dropped: its 40 s and the save's 80 are more than there is."""
_ANY_SAVE = [
    pytest.param(moment, save, parts, id=f"{moment}, a save of {save} s, {parts} parts")
    for moment in _MOMENTS
    for save in (10, 35, 60, 80)
    for parts in (1, 4)
    if (moment, save, parts) != _TOO_LATE
]


@pytest.mark.thorough
@pytest.mark.parametrize(("moment", "save", "parts"), _ANY_SAVE)
def test_M4_however_long_a_save_takes_only_the_step_in_flight_may_be_lost(
    world: World, tmp_path: Path, moment: str, save: float, parts: int
) -> None:
    code, seconds = _attempt(
        world, tmp_path, 60 * _MOMENTS[moment], step=60, save=save, gradient_accumulation_steps=parts
    )
    assert (code, _status(tmp_path)["lost_steps"], seconds <= STOP_SECONDS) == (143, 0, True)
    assert _status(tmp_path)["step"] in {2, 3}


def test_M4_a_save_that_cannot_end_after_the_backward_pass_is_not_begun_and_the_loss_is_said(
    world: World, tmp_path: Path
) -> None:
    moment, save, parts = _TOO_LATE
    code, seconds = _attempt(
        world, tmp_path, 60 * _MOMENTS[moment], step=60, save=save, gradient_accumulation_steps=parts
    )
    assert code == 143
    assert seconds == pytest.approx(40, abs=1e-3)
    assert (_status(tmp_path)["step"], _status(tmp_path)["lost_steps"]) == (3, 3)
    assert _status(tmp_path)["checkpoint"] is None


@pytest.mark.thorough
def test_M4_all_ranks_drop_the_step_if_one_is_asked_to_stop(tmp_path: Path) -> None:
    ends = in_world(2, _one_is_asked, tmp_path)
    assert [code for code, _ in ends] == [143, 143]
    assert ends[1][1] <= STOP_SECONDS
    assert (_status(tmp_path)["step"], _status(tmp_path)["lost_steps"]) == (2, 0)
    assert in_world(2, _attempt, tmp_path, None, step=100)[0][0] == 0
    in_world(2, _attempt, tmp_path / "whole", None, step=100)
    assert _losses(tmp_path) == _losses(tmp_path / "whole")


def _one_is_asked(world: World, place: Path) -> tuple[int, float]:
    """Its clock runs alone, as those of two hosts do. Steps of 100 s leave no time for the save."""
    asked_at = None if world.is_first else 100 * (2 + _JUST_AFTER)
    return _attempt(world, place, asked_at, step=100, save=20)
