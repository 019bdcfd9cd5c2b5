import itertools
from dataclasses import dataclass, field

import pytest

from training.loop import LoopEnd, LoopParts, LoopPlan, StepEnd, run_steps
from training.preempt.agreement import Decision


@dataclass
class Recorder:
    """Plays every part of the loop."""

    stop_after: int | None = None
    stop_within: int | None = None
    save_after: tuple[int, ...] = ()
    trained: list[int] = field(default_factory=list)
    reported: list[int] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)

    def parts(self) -> LoopParts:
        return LoopParts(
            agree=lambda: self._decision(0),
            train_step=self._train,
            report=self.reported.append,
            save=self.saved.append,
        )

    def _train(self, step: int) -> StepEnd:
        trained = step != self.stop_within
        if trained:
            self.trained.append(step)
        return StepEnd(decision=self._decision(step), trained=trained)

    def _decision(self, step: int) -> Decision:
        stop = step in {self.stop_after, self.stop_within}
        return Decision(stop=stop, save=step in self.save_after, seconds_left=90.0 if stop else 110.0)


def _plan(*, log_every: int = 1, checkpoint_every: int = 4) -> LoopPlan:
    return LoopPlan(steps=10, log_every=log_every, checkpoint_every=checkpoint_every, min_step_seconds=0.0)


def _completed() -> LoopEnd:
    return LoopEnd(step=10, stopped=False, seconds_left=110.0)


def test_it_trains_and_reports_each_step_and_saves_at_intervals_and_at_the_end() -> None:
    loop = Recorder()
    assert run_steps(_plan(), loop.parts(), done=0) == _completed()
    assert loop.trained == loop.reported == list(range(1, 11))
    assert loop.saved == [4, 8, 10]


def test_it_goes_on_after_the_step_of_the_checkpoint() -> None:
    loop = Recorder()
    assert run_steps(_plan(), loop.parts(), done=8) == _completed()
    assert loop.trained == [9, 10]


def test_without_an_interval_it_saves_when_that_is_decided_and_at_the_end() -> None:
    loop = Recorder(save_after=(3, 7))
    run_steps(_plan(checkpoint_every=0), loop.parts(), done=0)
    assert loop.saved == [3, 7, 10]


def test_a_step_at_which_a_save_is_due_twice_is_saved_once() -> None:
    loop = Recorder(save_after=(4,))
    run_steps(_plan(), loop.parts(), done=0)
    assert loop.saved == [4, 8, 10]


def test_asked_to_stop_it_finishes_and_reports_the_step_and_leaves_the_saving_to_the_caller() -> None:
    loop = Recorder(stop_after=6, save_after=(6,))
    end = run_steps(_plan(log_every=5), loop.parts(), done=0)
    assert end == LoopEnd(step=6, stopped=True, seconds_left=90.0)
    assert loop.trained == [1, 2, 3, 4, 5, 6]
    assert (loop.reported, loop.saved) == ([5, 6], [4])


def test_a_step_that_was_dropped_was_not_trained() -> None:
    loop = Recorder(stop_within=6)
    end = run_steps(_plan(), loop.parts(), done=0)
    assert end == LoopEnd(step=5, stopped=True, seconds_left=90.0)
    assert loop.reported == [1, 2, 3, 4, 5]


def test_asked_to_stop_before_the_first_step_it_trains_none() -> None:
    loop = Recorder(stop_after=0)
    assert run_steps(_plan(), loop.parts(), done=3) == LoopEnd(step=3, stopped=True, seconds_left=90.0)
    assert loop.trained == loop.saved == loop.reported == []


def test_asked_to_stop_in_the_last_step_it_says_so() -> None:
    loop = Recorder(stop_after=10)
    assert run_steps(_plan(), loop.parts(), done=8) == LoopEnd(step=10, stopped=True, seconds_left=90.0)
    assert loop.saved == []


def test_a_finished_job_trains_and_saves_nothing() -> None:
    loop = Recorder()
    assert run_steps(_plan(), loop.parts(), done=10) == _completed()
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
