"""The queue painted again and again: on a terminal, into a pipe, and while the API does not answer."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from rich.console import Console
from trainmaster_client.api import ApiClient
from trainmaster_client.cli.queue import QueueFilters, QueueForm, QueueLooks
from trainmaster_client.cli.queue_watch import QueueWatch
from trainmaster_client.errors import ApiUnreachableError, ForbiddenError, Problem
from trainmaster_client.http.calls import AnsweredDocument
from trainmaster_client.views.queue_model import QueueAnswers

AWAY = ApiUnreachableError("https://api", why="connection refused.")
RUNNING = {
    "name": "job1",
    "team": "vision",
    "pool": "p5",
    "state": "running",
    "instances": {"ml.p5.48xlarge": 1},
}


def page(*states: str) -> dict[str, Any]:
    return {"jobs": [{**RUNNING, "name": f"job{n}", "state": one} for n, one in enumerate(states, start=1)]}


class Watched:
    """A queue whose looks a test scripts; behind the last one Ctrl-C is pressed."""

    def __init__(
        self,
        *looks: dict[str, Any] | Exception,
        terminal: bool = False,
        as_json: bool = False,
        size: tuple[int, int] = (60, 25),
    ) -> None:
        self.looks = list(looks)
        self.out = io.StringIO()
        self.now = datetime(2026, 11, 21, 12, tzinfo=UTC)
        self.slept: list[float] = []
        width, height = size
        to = Console(
            file=self.out,
            force_terminal=terminal,
            width=width,
            height=height,
            no_color=True,
            legacy_windows=False,
        )
        self.watch = QueueWatch(
            look=self.look, seconds=5, to=to, as_json=as_json, sleep=self.sleep, now=lambda: self.now
        )

    def look(self) -> QueueAnswers:
        found = self.looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return QueueAnswers(document=found)

    def sleep(self, seconds: float) -> None:
        if not self.looks:
            raise KeyboardInterrupt
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)

    def run(self) -> str:
        with pytest.raises(KeyboardInterrupt):
            self.watch.run()
        return self.out.getvalue()


@pytest.fixture(autouse=True)
def a_terminal_that_can_paint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def clock(watched: Watched, second: int) -> str:
    at = datetime(2026, 11, 21, 12, 0, second, tzinfo=UTC).astimezone()
    return f"{at:%H:%M:%S}"


def test_a_pipe_gets_one_picture_a_period_without_escape_codes() -> None:
    watched = Watched(page("running"), page("running", "stopped"))
    lines = [line.rstrip() for line in watched.run().splitlines()]
    assert lines == [
        f"{clock(watched, 0)}  every 5 s, Ctrl-C to quit",
        "job1",
        "    vision in p5, running, priority 0, 1x ml.p5.48xlarge",
        f"{clock(watched, 5)}  every 5 s, Ctrl-C to quit",
        "job1",
        "    vision in p5, running, priority 0, 1x ml.p5.48xlarge",
        "job2",
        "    vision in p5, stopped, priority 0, 1x ml.p5.48xlarge",
    ]
    assert watched.slept == [5]


def test_a_terminal_is_painted_over_and_keeps_the_last_picture() -> None:
    shown = Watched(page("running"), page("completed"), terminal=True).run()
    assert "\x1b[1A" in shown, "goes up to paint over"
    last = shown.rpartition("\x1b[2K")[2]
    assert "completed" in last
    assert "running" not in last
    assert shown.endswith("\x1b[?25h"), "the cursor is back"


def test_a_silence_of_the_api_is_told_with_its_beginning_and_the_last_picture_stays() -> None:
    watched = Watched(page("running"), AWAY, AWAY, page("completed"))
    text = watched.run()
    silent = text[text.rindex("nothing new since") :]
    assert " ".join(silent.split()).startswith(f"nothing new since {clock(watched, 0)} (10s): No answer from")
    assert text.count("running") == 3
    assert "nothing new" not in text[text.index(clock(watched, 15)) :]


def test_json_is_one_document_a_line_and_nothing_while_the_api_is_silent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Watched(page("running"), AWAY, page("completed"), as_json=True).run()
    states = [json.loads(line)["jobs"][0]["state"] for line in capsys.readouterr().out.splitlines()]
    assert states == ["running", "completed"]


def test_more_than_a_page_says_how_to_see_it_all() -> None:
    assert "--all" in Watched({**page("running"), "next_token": "t"}).run()


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([AWAY], id="the first look"),
        pytest.param([page(), ForbiddenError(Problem(status=403, title="", detail=""))], id="no silence"),
    ],
)
def test_what_does_not_pass_by_itself_ends_the_watch(looks: list[Any]) -> None:
    with pytest.raises((ApiUnreachableError, ForbiddenError)):
        Watched(*looks, page()).watch.run()


def test_a_terminal_that_is_too_low_counts_what_it_does_not_show() -> None:
    shown = Watched(page(*["running"] * 40), terminal=True, size=(80, 24)).run()
    assert "... 19 more" in shown
    assert "job21" in shown
    assert "job22" not in shown


def test_a_pipe_gets_the_whole_queue() -> None:
    shown = Watched(page(*["running"] * 40), size=(80, 24)).run()
    assert "job40" in shown
    assert "more" not in shown


def test_a_queue_that_has_become_empty_says_where_its_jobs_are() -> None:
    shown = Watched(page("running"), page()).run().splitlines()
    assert shown[-1].startswith("No jobs in the queue.")
    assert "trainmaster history" in shown[-1]


class TaggedApi:
    """Has one page, and does not send it to who has it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.put("running")

    def put(self, *states: str) -> None:
        self.page = AnsweredDocument(page(*states))
        self.page.etag = " ".join(states)

    def jobs(self, **_filters: Any) -> AnsweredDocument:
        self.asked.append("whole")
        return self.page

    def jobs_unless(self, etag: str, **_filters: Any) -> AnsweredDocument | None:
        self.asked.append(etag)
        return None if etag == self.page.etag else self.page


def test_a_page_that_did_not_change_is_not_sent_again() -> None:
    api = TaggedApi()
    looks = QueueLooks(cast(ApiClient, api), QueueFilters(), everything=False, form=QueueForm(as_json=True))
    assert looks.look().document == looks.look().document == page("running")
    api.put("running", "pending")
    assert looks.look().document == page("running", "pending")
    assert looks.look().document == page("running", "pending")
    assert api.asked == ["whole", "running", "running", "running pending"]
