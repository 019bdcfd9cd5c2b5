import itertools
from dataclasses import dataclass, field

import pytest

from training.loop import LoopParts, LoopPlan, run_steps


@dataclass
class Recorder:
    """Plays every part of the loop."""

    stop_after: int = 0
    trained: list[int] = field(default_factory=list)
    reported: list[int] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)

    def parts(self) -> LoopParts:
        return LoopParts(
            train_step=self.trained.append,
            report=self.reported.append,
            save=self.saved.append,
            stop_agreed=lambda: self.trained[-1] == self.stop_after,
        )


def _plan(*, log_every: int = 1, checkpoint_every: int = 4) -> LoopPlan:
    return LoopPlan(steps=10, log_every=log_every, checkpoint_every=checkpoint_every, min_step_seconds=0.0)


def test_it_trains_and_reports_each_step_and_saves_at_intervals_and_at_the_end() -> None:
    loop = Recorder()
    assert run_steps(_plan(), loop.parts(), done=0) == 10
    assert loop.trained == loop.reported == list(range(1, 11))
    assert loop.saved == [4, 8, 10]


def test_it_goes_on_after_the_step_of_the_checkpoint() -> None:
    loop = Recorder()
    assert run_steps(_plan(), loop.parts(), done=8) == 10
    assert loop.trained == [9, 10]


def test_asked_to_stop_it_finishes_the_step_and_saves() -> None:
    loop = Recorder(stop_after=6)
    assert run_steps(_plan(), loop.parts(), done=0) == 6
    assert loop.trained == [1, 2, 3, 4, 5, 6]
    assert loop.saved == [4, 6]


def test_asked_to_stop_at_a_checkpoint_it_saves_once() -> None:
    loop = Recorder(stop_after=4)
    assert run_steps(_plan(), loop.parts(), done=0) == 4
    assert loop.saved == [4]


def test_a_finished_job_trains_and_saves_nothing() -> None:
    loop = Recorder()
    assert run_steps(_plan(), loop.parts(), done=10) == 10
    assert loop.trained == loop.saved == []


def test_the_last_step_is_reported_whatever_the_interval() -> None:
    loop = Recorder()
    run_steps(_plan(log_every=4), loop.parts(), done=0)
    assert loop.reported == [4, 8, 10]


def test_a_paced_loop_sleeps_what_is_left_of_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    slept: list[float] = []
    monkeypatch.setattr("training.loop.time.monotonic", lambda: float(next(ticks)))
    monkeypatch.setattr("training.loop.time.sleep", slept.append)
    plan = LoopPlan(steps=2, log_every=1, checkpoint_every=9, min_step_seconds=1.5)
    run_steps(plan, Recorder().parts(), done=0)
    assert slept == [0.5, 0.5]
