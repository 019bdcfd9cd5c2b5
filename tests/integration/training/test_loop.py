"""The loop with a real model and played parts around it: votes, metric lines and saves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
import torch

from training import loop
from training.config import read_config
from training.data.batches import Batches
from training.data.corpus import SyntheticLanguage
from training.job import make_model
from training.loop import LoopEnd, Trainer
from training.monitoring.goodput import Meter
from training.monitoring.report import Reporter, Trace
from training.optim import make_optimizer
from training.preemptible.agreement import Agreement
from training.preemptible.checkpoint import Checkpointer
from training.preemptible.preempt import StopRequest
from training.ranks.world import World


@dataclass
class Recorder:
    """Plays the metric lines and the checkpoints."""

    reported: list[int] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    left: list[tuple[int, float]] = field(default_factory=list)
    """Asked to stop: the step to save, and the seconds for it."""
    ends: list[tuple[str, int]] = field(default_factory=list)

    def report(self, step: int, **_: float) -> None:
        self.reported.append(step)

    def save(self, step: int, *, carried: Mapping[str, float]) -> float:
        assert carried
        self.saved.append(step)
        return 0.0

    def save_within(self, step: int, seconds: float, *, carried: Mapping[str, float]) -> bool:
        assert carried
        self.left.append((step, round(seconds)))
        return True

    def seconds_to_save(self) -> float:
        return 10.0

    @property
    def newest_step(self) -> int:
        return max(self.saved + [step for step, _ in self.left], default=0)

    def end(self, state: str, *, step: int, reason: str) -> None:
        assert reason
        self.ends.append((state, step))


class StopWhen(StopRequest):
    """Asked when something is so, as if a signal had come then."""

    def __init__(self, is_time: Callable[[], bool]) -> None:
        super().__init__(seconds=100.0)
        self._is_time = is_time

    @property
    def asked(self) -> bool:
        return self._is_time()


def _trainer(
    world: World,
    recorder: Recorder | None = None,
    *,
    stop: Callable[[Trainer], bool] = lambda _: False,
    **options: object,
) -> Trainer:
    texts: dict[str, object] = {
        "steps": 10,
        "seed": 1,
        "batch_size": 2,
        "sequence_length": 16,
        "checkpoint_every": 4,
    }
    texts |= {"precision": "bf16"} | options
    config = read_config([f"--{name}={value}" for name, value in texts.items()], {})
    model = make_model(config, world)
    trainer = Trainer(
        config,
        world=world,
        model=model,
        optimizer=make_optimizer(model, config),
        batches=Batches(
            corpus=SyntheticLanguage(vocabulary=256, seed=1),
            sequence_length=config.shape.sequence_length,
            size=config.batch_size,
            rank=0,
            ranks=1,
            seed=1,
        ),
        agreement=Agreement(StopWhen(lambda: stop(trainer))),
        meter=Meter(None),
        checkpointer=cast("Checkpointer | None", recorder),
        reporter=cast("Reporter | None", recorder),
        trace=Trace(config, world=world, env={}),
    )
    return trainer


def _run(world: World, *, done: int = 0, **options: object) -> tuple[LoopEnd, Recorder]:
    recorder = Recorder()
    trainer = _trainer(world, recorder, **options)  # type: ignore[arg-type]
    return trainer.run(range(done + 1, 11)), recorder


def test_it_reports_each_step_and_saves_at_intervals_and_at_the_end(world: World) -> None:
    end, recorder = _run(world)
    assert end == LoopEnd(step=10, stopped=False)
    assert recorder == Recorder(reported=list(range(1, 11)), saved=[4, 8, 10])


def test_it_goes_on_after_the_step_of_the_checkpoint(world: World) -> None:
    end, recorder = _run(world, done=8)
    assert end == LoopEnd(step=10, stopped=False)
    assert recorder.reported == [9, 10]


def test_without_an_interval_it_saves_when_that_is_due_and_at_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Due:
        def __init__(self, _now: float) -> None:
            self.asked = 0

        def due(self, _now: float) -> bool:
            self.asked += 1
            return self.asked in {3, 7}

        def saved(self, _now: float, *, stall_seconds: float) -> None: ...

    monkeypatch.setattr(loop, "SaveTimer", Due)
    _, recorder = _run(world, checkpoint_every=0)
    assert recorder.saved == [3, 7, 10]


def test_asked_to_stop_it_finishes_and_reports_the_step_and_saves_it(world: World) -> None:
    end, recorder = _run(world, stop=lambda trainer: trainer.reached >= 5, log_every=4)
    assert end == LoopEnd(step=6, stopped=True)
    assert (recorder.reported, recorder.saved) == ([4, 6], [4])
    assert (recorder.left, recorder.ends) == ([(6, 100)], [("preempted", 6)])


def test_held_after_a_step_it_waits_there_and_leaves_when_it_is_asked_to(
    world: World, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    hold.write_text("6")
    looks: list[int] = []

    def stop(trainer: Trainer) -> bool:
        looks.append(trainer.reached)
        return looks.count(6) > 3

    end, recorder = _run(world, stop=stop, hold_file=hold)
    assert end == LoopEnd(step=6, stopped=True)
    assert (recorder.reported[-1], recorder.left) == (6, [(6, 100)])


def test_held_before_its_first_step_it_leaves_without_one(world: World, tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.write_text("3")
    asked = iter([False, False])  # at the start, and at the first look
    end, recorder = _run(world, done=3, stop=lambda _: next(asked, True), hold_file=hold)
    assert end == LoopEnd(step=3, stopped=True)
    assert (recorder.reported, recorder.saved, recorder.left) == ([], [], [])


def test_a_hold_that_is_gone_holds_nothing(world: World, tmp_path: Path) -> None:
    end, _ = _run(world, hold_file=tmp_path / "hold")
    assert end == LoopEnd(step=10, stopped=False)


def test_asked_to_stop_before_the_first_step_it_trains_and_saves_none(world: World) -> None:
    end, recorder = _run(world, done=3, stop=lambda _: True)
    assert end == LoopEnd(step=3, stopped=True)
    assert recorder == Recorder(ends=[("preempted", 3)])


def test_asked_to_stop_in_the_last_step_it_leaves_and_saves_it(world: World) -> None:
    end, recorder = _run(world, done=8, stop=lambda trainer: trainer.reached >= 9)
    assert end == LoopEnd(step=10, stopped=True)
    assert (recorder.left, recorder.saved) == ([(10, 100)], [])


def test_a_finished_job_trains_and_saves_nothing(world: World) -> None:
    assert _run(world, done=10) == (LoopEnd(step=10, stopped=False), Recorder())


def test_the_last_step_is_reported_whatever_the_interval(world: World) -> None:
    assert _run(world, log_every=4)[1].reported == [4, 8, 10]


def test_a_paced_loop_sleeps_what_is_left_of_each_step(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("training.loop.time.monotonic", lambda: 5.0)
    monkeypatch.setattr("training.loop.time.sleep", slept.append)
    _run(world, done=8, min_step_seconds=1.5)
    assert slept == [1.5, 1.5]


def test_random_numbers_follow_from_the_step_not_from_what_ran_before(world: World) -> None:
    trainer = _trainer(world)
    drawn = []
    for step in (5, 6, 5):
        trainer.run(range(step, step + 1))
        drawn.append(torch.rand(()).item())
    assert drawn[0] == drawn[2] != drawn[1]


def test_the_loss_begins_at_that_of_a_guess_and_falls(world: World) -> None:
    trainer = _trainer(world, sequence_length=128, steps=60)
    losses = []
    for step in range(1, 9):
        trainer.run(range(step, step + 1))
        losses.append(trainer.loss())
    assert abs(losses[0] - 5.55) < 0.1  # ln(256)
    assert losses[-1] < losses[0] - 0.5


def test_asking_twice_for_the_loss_gives_it_twice(world: World) -> None:
    trainer = _trainer(world)
    trainer.run(range(1, 2))
    assert trainer.loss() == trainer.loss()
