import signal
from typing import Any

import pytest

from training.proof.schedule import Kill, Schedule, ScheduleError


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
            "--kill-at has '7:HUP'; wanted is STEP:SIGNAL with one of TERM, KILL, INT",
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
    assert schedule(worlds=worlds).batch_size == batch


def test_what_it_is_compared_with_runs_on_the_first_world() -> None:
    read = schedule()
    assert read.uninterrupted() == Schedule(steps=30, kills=(), worlds=(2,))
    assert read.in_one_world() == Schedule(steps=30, kills=read.kills, worlds=(2, 2, 2))
    assert (read.is_of_one_world, read.in_one_world().is_of_one_world) == (False, True)
