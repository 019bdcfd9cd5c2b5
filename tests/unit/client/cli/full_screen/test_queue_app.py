"""``trainmaster top``: pages, keys, staleness and hostile names, at 80 columns and 24 lines."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import wraps
from typing import Any, cast

import pytest
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import ApiUnreachableError, CredentialsError, MalformedViewError

from tests.integration.client.fake_api import view
from tests.unit.client.cli.full_screen.queue_screen import (
    HEIGHT,
    NOON,
    RUNNING,
    WAITING,
    WIDTH,
    FakeApi,
    FakeLogs,
    shown,
)


def played(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """On a loop of its own."""

    @wraps(test)
    def run(**arguments: Any) -> None:
        asyncio.run(test(**arguments))

    return run


@played
async def test_the_queue_fits_eighty_columns_with_teams_and_pools() -> None:
    async with shown() as screen:
        lines = await screen.lines()
        assert lines[:6] == [
            "trainmaster  eu-west-1  changes allowed  12:00:00 UTC  every 1e+09 s",
            "p5: 2/2 used, 0 free, 0 warm, 3 waiting",
            lines[2],
            lines[3],
            lines[4],
            lines[5],
        ]
        assert lines[2].split() == ["JOB", "TEAM", "POOL", "STATE", "N", "RAN", "REASON"]
        assert lines[3].split() == ["llama-7b-b", "vision", "p5", "running", "1x", "1h00m"]
        assert lines[4].split()[1:5] == ["language", "p5", "preempted", "1x"]
        assert lines[5].startswith("(other team's)")
        assert len(lines) == HEIGHT
        assert max(map(len, lines)) <= WIDTH


@played
async def test_likely_starts_are_a_column_where_the_stack_says_them() -> None:
    class Estimating(FakeApi):
        def estimates(self, **_pool: Any) -> dict[str, Any]:
            at = {"p50": "2026-11-22T12:40:00Z", "p90": "2026-11-22T14:00:00Z"}
            return {"estimates": [{"name": WAITING["name"], "position": 1, **at}]}

    async with shown(Estimating()) as screen:
        lines = await screen.lines()
        assert "STARTS" in lines[2].split()
        assert "40m" in lines[4].split()


@played
async def test_the_row_under_the_cursor_is_explained_at_the_bottom() -> None:
    async with shown() as screen:
        lines = await screen.press("down")
        detail = (
            "pytorch-training-2026-11-21-10-03-55-123: preempted, position 1, priority 1, 1x ml.p5.48xlarge"
        )
        assert " ".join(lines[-3:-1]).startswith(detail)
        lines = await screen.press("down")
        assert lines[-3] == "", "another team's job has no name to be explained by"


@played
async def test_the_cursor_stays_on_its_job_when_the_queue_moves() -> None:
    api = FakeApi(queue=[view(f"job-{n}", position=n) for n in range(2000)])
    async with shown(api) as screen:
        await screen.press("end")
        assert screen.app.chosen_job == "job-1999"
        api.queue = [view("urgent", position=1), *reversed(api.queue)]
        lines = await screen.later(5)
        assert screen.app.chosen_job == "job-1999"
        assert any(line.startswith("job-1999") for line in lines)
        api.queue = api.queue[:1]
        await screen.later(5)
        assert screen.app.chosen_job == "urgent"


@played
async def test_pools_are_a_page_and_escape_leads_back() -> None:
    async with shown() as screen:
        assert "  2x ml.p5.48xlarge on-demand: 2 used, 0 warm, 0 free" in await screen.press("2")
        lines = await screen.press("escape")
        assert lines[3].startswith("llama-7b-b")


@played
async def test_an_array_is_a_line_that_is_no_job() -> None:
    array = {"name": "sweep", "pool": "p5", "state": "pending", "tasks": {"total": 9, "waiting": 9}}
    async with shown(FakeApi(arrays=[array])) as screen:
        lines = await screen.press("end", "d")
        assert any(line.startswith("sweep") and line.endswith("9 of 9 wait") for line in lines)
        assert screen.notes == ["There is no job of yours under the cursor."]


@played
async def test_a_filter_is_applied_as_it_is_typed_and_escape_drops_it() -> None:
    async with shown() as screen:
        lines = await screen.press("slash", "L", "A", "N", "G")
        assert "1 of 3 jobs have 'LANG'; esc shows all" in lines
        lines = await screen.press("enter")
        assert screen.app.chosen_job == "pytorch-training-2026-11-21-10-03-55-123"
        lines = await screen.press("escape")
        assert not any("esc shows all" in line for line in lines)
        lines = await screen.press("slash", "q", "q", "q")
        assert "No jobs." in lines, "a letter is entered, not a key that quits"


@pytest.mark.parametrize("key", ["colon", "question_mark"])
@played
async def test_the_help_lists_the_keys_and_does_what_is_chosen(key: str) -> None:
    async with shown() as screen:
        await screen.press(key)
        await screen.settle()
        lines = await screen.lines()
        assert any("k ctrl-d" in line and "cancel the job" in line for line in lines)
        await screen.press(*"pools")
        await screen.settle()
        lines = await screen.press("enter")
        assert screen.app.page == "pools"
        assert any("on-demand: 2 used" in line for line in lines)


@played
async def test_q_quits() -> None:
    async with shown() as screen:
        await screen.press("q")
        assert not screen.app.is_running


@pytest.mark.parametrize("key", ["d", "enter"])
@played
async def test_a_job_is_described_as_show_does(key: str) -> None:
    async with shown() as screen:
        lines = await screen.press(key)
        assert lines[1:3] == ["llama-7b-b  (times: UTC)", "llama-7b-b: running"]
        assert "     newest checkpoint: 2026-11-22 11:48:00 (12m00s ago)" in lines
        assert (await screen.press("escape"))[1].startswith("p5: ")


@played
async def test_the_log_follows_the_job() -> None:
    logs = FakeLogs("step 1 loss [red]2.3[/red]", "\x1b[31mstep 2\x1b[0m")
    async with shown(logs=logs) as screen:
        lines = await screen.press("l")
        assert lines[2:4] == ["step 1 loss [red]2.3[/red]", "step 2"]
        logs.lines.append("step 3")
        assert (await screen.later(5))[2:5] == ["step 1 loss [red]2.3[/red]", "step 2", "step 3"]
        assert (await screen.press("d"))[2] == "llama-7b-b: running"


@played
async def test_a_log_without_lines_says_so() -> None:
    async with shown() as screen:
        assert (await screen.press("l"))[2] == "It has printed nothing yet."


@played
async def test_another_teams_job_is_not_opened() -> None:
    async with shown() as screen:
        await screen.press("end", "d")
        assert screen.notes == ["There is no job of yours under the cursor."]


TROUBLES = [
    pytest.param(ApiUnreachableError("https://api", why="no route."), "No answer", id="away"),
    pytest.param(CredentialsError("they have expired."), "they have expired", id="credentials"),
    pytest.param(MalformedViewError("KeyError: 'state'"), "a way this client does not know", id="malformed"),
]


@pytest.mark.parametrize(("error", "said"), TROUBLES)
@played
async def test_the_picture_is_kept_and_marked_stale_until_the_api_answers_again(
    error: Exception, said: str
) -> None:
    async with shown() as screen:
        screen.api.fail = error
        lines = await screen.later(20)
        assert lines[1].startswith("nothing new since 12:00:00 (20s): ")
        assert said in " ".join(lines[1:4])
        assert any(line.startswith("llama-7b-b") for line in lines)
        screen.api.fail = None
        lines = await screen.later(5)
        assert lines[1].startswith("p5: ")


@played
async def test_credentials_that_cannot_be_found_anew_end_nothing() -> None:
    api = FakeApi()
    connected: list[ApiClient | Exception] = [cast(ApiClient, api)]

    def connect() -> ApiClient:
        if isinstance(connected[-1], Exception):
            raise connected[-1]
        return connected[-1]

    async with shown(api, connect=connect) as screen:
        api.fail, expired = CredentialsError("they have expired."), CredentialsError("no profile.")
        connected.append(expired)
        await screen.later(5)
        assert "no profile." in " ".join((await screen.later(5))[1:4])
        api.fail = None
        connected.append(cast(ApiClient, api))
        assert (await screen.later(5))[1].startswith("p5: ")


@played
async def test_logs_that_cannot_be_asked_for_are_said_where_the_job_is() -> None:
    async with shown(logs_client=refuse) as screen:
        lines = await screen.press("l")
        assert "Cannot sign the request: no region." in " ".join(lines[1:4])


def refuse() -> None:
    raise CredentialsError("no region.")


@played
async def test_a_slow_answer_is_said_and_not_asked_for_twice() -> None:
    waiting: list[Callable[[], None]] = []
    async with shown(in_background=waiting.append) as screen:
        assert len(waiting) == 1
        waiting.pop()()
        await screen.lines()
        await screen.later(5)
        screen.clock[0] += timedelta(seconds=7)
        screen.app.action_refresh()
        lines = await screen.lines()
        assert lines[1] == "nothing new since 12:00:00 (12s): no answer for 7s"
        assert len(waiting) == 1
        waiting.pop()()
        assert (await screen.lines())[1].startswith("p5: ")


@played
async def test_an_answer_that_comes_after_the_end_is_for_nobody() -> None:
    waiting: list[Callable[[], None]] = []
    async with shown(in_background=waiting.append) as screen:
        await screen.press("q")
    waiting.pop()()


HOSTILE = ["[bold]x[/bold]", "[@click=app.quit]x[/]", "a\x1b[2Jb", "x\ny", "[/]", "$(x)", "\u202ex"]


@pytest.mark.parametrize("name", HOSTILE)
@played
async def test_a_hostile_name_is_text_everywhere(name: str) -> None:
    job = {**RUNNING, "name": name, "team": name, "pool": name, "waiting": {"code": name, "message": name}}
    as_text = "".join(char if char.isprintable() else " " for char in name).rstrip()
    async with shown(FakeApi(queue=[job])) as screen:
        lines = await screen.lines()
        assert lines[3].startswith(as_text)
        assert all("".join(lines).isprintable() for _ in lines)
        screen.app.say(name, is_wrong=True)
        screen.app.action_show_page("sheet", name)
        lines = await screen.lines()
        assert lines[1].startswith(as_text)
    assert NOON.tzinfo is not None
