import signal
from typing import Any

import pytest

from benchmarks.training.proof.kill_schedule import (
    Kill,
    Schedule,
    ScheduleError,
    allowed_exits,
    kills_in_saves,
)


def schedule(*, steps: int = 30, kill_at: str = "7:TERM,13:KILL", worlds: str = "2,2,1") -> Schedule:
    return Schedule.read(steps=steps, kill_at=kill_at, worlds=worlds)


def test_a_schedule_is_read_from_two_lists() -> None:
    read = schedule(kill_at="7:TERM, 13:KILL,19:INT", worlds="2,2,1,4")
    assert read.worlds == (2, 2, 1, 4)
    assert read.kills == (
        Kill(step=7, signal=signal.SIGTERM),
        Kill(step=13, signal=signal.SIGKILL),
        Kill(step=19, signal=signal.SIGINT),
    )
    assert [str(kill) for kill in read.kills] == ["7:TERM", "13:KILL", "19:INT"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param(
            {"worlds": "2,2"},
            "--worlds has 2 and --kill-at 2: an attempt follows each kill, so give 3 numbers of ranks",
            id="one world too few",
        ),
        pytest.param({"worlds": "2,2,2,2"}, "--worlds has 4 and --kill-at 2", id="one world too many"),
        pytest.param({"worlds": "2,two,1"}, "--worlds has 'two'", id="a world that is not a number"),
        pytest.param({"worlds": "2,0,1"}, "--worlds has '0'", id="a world of nobody"),
        pytest.param(
            {"kill_at": "7:HUP,13:KILL"},
            "--kill-at has '7:HUP'; wanted is STEP:SIGNAL with one of TERM, KILL, INT, SAVE",
            id="a signal that it does not send",
        ),
        pytest.param({"kill_at": "7,13:KILL"}, "--kill-at has '7'", id="no signal"),
        pytest.param({"kill_at": "13:KILL,7:TERM"}, "steps 13, 7; each must be after", id="backwards"),
        pytest.param({"kill_at": "7:TERM,7:KILL"}, "steps 7, 7; each must be after", id="twice at a step"),
        pytest.param({"kill_at": "0:TERM,7:KILL"}, "between step 1 and the last but one", id="step 0"),
        pytest.param({"steps": 13}, "between step 1 and the last but one of --steps 13", id="the last step"),
        pytest.param({"steps": 0, "kill_at": "", "worlds": "1"}, "--steps is 0", id="no steps"),
    ],
)
def test_a_schedule_that_cannot_be_says_why(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        schedule(**given)
    assert problem in str(caught.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ScheduleError) as caught:
        schedule(kill_at="x,13:KILL", worlds="0,1,y")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("worlds", "batch"),
    [
        pytest.param("2,2,1", 8, id="of powers of two"),
        pytest.param("3,2,1", 12, id="of two and three"),
        pytest.param("3,5,1", 15, id="of three and five"),
    ],
)
def test_every_world_can_share_the_batch(worlds: str, batch: int) -> None:
    assert schedule(worlds=worlds).batch_size() == batch


def test_what_it_is_compared_with_runs_on_the_first_world() -> None:
    read = schedule()
    assert read.uninterrupted() == Schedule(steps=30, kills=(), worlds=(2,))
    assert read.in_one_world() == Schedule(steps=30, kills=read.kills, worlds=(2, 2, 2))
    assert (read.is_of_one_world, read.in_one_world().is_of_one_world) == (False, True)


def test_a_batch_divides_into_the_parts_of_a_step_too() -> None:
    assert schedule().batch_size(parts=3) == 12


def test_a_kill_may_be_meant_for_the_inside_of_a_save() -> None:
    (kill,) = schedule(kill_at="10:SAVE", worlds="2,2").kills
    assert kill == Kill(step=10, signal=signal.SIGKILL, in_save=True)
    assert str(kill) == "10:SAVE"


def test_kills_in_saves_are_where_a_save_and_another_follow() -> None:
    kills = kills_in_saves(40, steps=20, every=5, seed=1)
    assert len(kills) == 40
    assert {kill.step for kill in kills} == {5, 10}
    assert list(kills) == sorted(kills, key=lambda kill: kill.step)
    assert kills == kills_in_saves(40, steps=20, every=5, seed=1)
    assert kills_in_saves(0, steps=1, every=5, seed=1) == ()
    with pytest.raises(ScheduleError, match="--kill-in-save needs --steps of more than twice"):
        kills_in_saves(1, steps=10, every=5, seed=1)


@pytest.mark.parametrize(
    ("kill", "sent_at", "done", "allowed"),
    [
        pytest.param(None, None, 0, [0], id="left alone it completes"),
        pytest.param("7:TERM", 7, 0, [143], id="asked to stop it stops"),
        pytest.param("7:INT", 8, 0, [143], id="by Ctrl-C too"),
        pytest.param("7:KILL", 7, 0, [-9], id="killed it is dead"),
        pytest.param("5:SAVE", 5, 0, [-9], id="in a save it is killed"),
        pytest.param("27:TERM", 27, 20, [143], id="three steps are enough to agree"),
        pytest.param("27:TERM", 28, 20, [143, 0], id="two may not be"),
        pytest.param("29:KILL", 29, 20, [-9], id="a kill needs no agreement"),
        pytest.param("28:TERM", None, 30, [0], id="nothing was left to train"),
        pytest.param("28:KILL", None, 30, [0], id="nothing was left to kill"),
        pytest.param("7:TERM", None, 0, [143], id="a signal that was never sent is a mistake"),
    ],
)
def test_exit_codes(kill: str | None, sent_at: int | None, done: int, allowed: list[int]) -> None:
    assert allowed_exits(kill, sent_at=sent_at, done=done, steps=30) == allowed
