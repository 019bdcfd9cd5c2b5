"""Changes from the screen: only where allowed, after the consequence was read, and never lost silently."""

import pytest
from trainmaster_client.cli.full_screen.job_changes import NO_JOB, READ_ONLY, Dialog
from trainmaster_client.errors import ApiUnreachableError, ConflictError, Problem

from tests.integration.client.fake_api import view
from tests.unit.client.cli.full_screen.queue_screen import FakeApi, shown
from tests.unit.client.cli.full_screen.test_queue_app import played


@pytest.mark.parametrize("key", ["k", "ctrl+d", "p", "h"])
@played
async def test_without_the_option_nothing_can_be_changed(key: str) -> None:
    async with shown(may_change=False) as screen:
        await screen.press(key, "y", "enter")
        assert screen.notes[0] == READ_ONLY
        assert screen.api.changes == []


@pytest.mark.parametrize("key", ["k", "ctrl+d"])
@played
async def test_a_cancel_says_what_is_lost_and_needs_a_y(key: str) -> None:
    async with shown() as screen:
        await screen.press(key)
        dialog = screen.app.screen
        assert isinstance(dialog, Dialog)
        assert dialog.text == (
            "It is running for 1h00m on 1x ml.p5.48xlarge. SageMaker stops it; it is not requeued. "
            "Its newest checkpoint is 12m00s old; later work is lost."
        )
        await screen.press("enter", "k", "q")
        assert screen.api.changes == []
        await screen.press("y")
        assert screen.api.changes == [("llama-7b-b", "cancel")]
        assert screen.notes == ["llama-7b-b: stopping"]


@pytest.mark.parametrize("key", ["n", "escape"])
@played
async def test_a_cancel_that_is_refused_sends_nothing(key: str) -> None:
    async with shown() as screen:
        await screen.press("k", key)
        assert screen.api.changes == []
        assert not isinstance(screen.app.screen, Dialog)


@played
async def test_a_priority_is_a_number_from_0_to_1000() -> None:
    async with shown() as screen:
        lines = await screen.press("p", *"9999", "enter")
        assert any("'9999' is not a priority: 0 to 1000." in line for line in lines)
        await screen.press(*["backspace"] * 4, *"+5", "enter")
        assert isinstance(screen.app.screen, Dialog)
        await screen.press(*["backspace"] * 2, *"50", "enter")
        assert screen.api.changes == [("llama-7b-b", "change", 50, None)]
        assert screen.app.wanted == "", "the number is no filter of the queue"


@played
async def test_a_waiting_job_is_held_and_a_held_one_released() -> None:
    api = FakeApi(queue=[view("job1", position=1)])
    async with shown(api) as screen:
        await screen.press("h", "y")
        assert api.changes == [("job1", "change", None, True)]
        api.queue = [view("job1", state="held", position=None)]
        await screen.later(5)
        await screen.press("h", "y")
        assert api.changes[1:] == [("job1", "change", None, False)]


@played
async def test_what_cannot_be_done_is_said_without_a_question() -> None:
    async with shown() as screen:
        await screen.press("h")
        assert screen.notes == ["It is running: only a waiting job can be held."]
        await screen.press("end", "k")
        assert screen.notes[1:] == [NO_JOB]


@played
async def test_the_question_is_about_the_job_as_it_is_now() -> None:
    async with shown() as screen:
        screen.api.queue = [{**screen.api.queue[0], "state": "completed"}]
        await screen.press("k")
        assert screen.notes == ["It has ended: it is completed. There is nothing to cancel."]


@played
async def test_a_change_that_got_no_answer_or_was_refused_is_said() -> None:
    async with shown() as screen:
        screen.api.refuse = ApiUnreachableError("https://api", why="no route.")
        await screen.press("k", "y")
        assert screen.notes[0].startswith("Not confirmed: No answer from trainmaster's API")
        screen.api.refuse = ConflictError(Problem(status=409, title="Conflict", detail="[b]it[/b] is over"))
        await screen.press("k", "y")
        assert screen.notes[1] == "Not confirmed: Conflict (409): [b]it[/b] is over"
        screen.api.fail = screen.api.refuse
        await screen.press("k")
        assert screen.notes[2].startswith("Nothing was changed: ")


@played
async def test_the_job_that_is_seen_is_the_one_that_is_changed() -> None:
    async with shown() as screen:
        await screen.press("down", "d", "k", "y")
        assert screen.api.changes == [("pytorch-training-2026-11-21-10-03-55-123", "cancel")]
