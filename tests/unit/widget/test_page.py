"""The widget's page: every text is text, nothing is loaded, nothing grows without end."""

import re
from dataclasses import replace

import pytest
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import LIVE, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.row_words import HAPPENS, WAITS_FOR
from trainmaster.widget.page import MOST_TYPES, html, notice
from trainmaster.widget.queue_picture import PoolPicture, QueueLine, QueuePicture

from tests.builders import NOON, minutes, of

WAITS = QueueLine(
    position=1,
    job=None,
    team=None,
    state=JobState.PENDING,
    instances=of(2, "ml.p5.48xlarge"),
    priority=5,
    since=NOON - minutes(130),
    why=ReasonCode.CAPACITY,
)
POOL = PoolPicture(
    name="p5",
    capacity=of(2, "ml.p5.48xlarge"),
    used=of(1, "ml.p5.48xlarge"),
    warm=of(1, "ml.p5.48xlarge"),
    running=1,
    waiting=1,
    lines=(replace(WAITS, position=None, state=JobState.PREEMPTING, why=""), WAITS),
)
QUEUE = QueuePicture(at=NOON, paused=False, pools=(POOL,), left_out=0)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a&lt;b",
    "\x1b[31mred\x00",
    "\u202ertl",
    "{{7*7}}",
)


def rows(page: str) -> list[list[str]]:
    found = re.findall(r"<tr>(.*?)</tr>", page)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in found]


def test_a_pool_with_its_counts_and_its_jobs() -> None:
    page = html(QUEUE, stack="prod")
    assert "prod at 2026-11-02 12:00:00 UTC" in page
    assert "<h3>p5</h3><p>ml.p5.48xlarge: 1 of 2 used, 1 warm</p><p>1 running, 1 waiting</p>" in page
    assert rows(page) == [
        ["position", "state", "instances", "priority", "for", "reason"],
        ["", "preempting", "2x ml.p5.48xlarge", "5", "2h10m", "stops for another job, and comes back"],
        ["1", "pending", "2x ml.p5.48xlarge", "5", "2h10m", "waits for free instances"],
    ]


def test_names_have_columns_where_they_are_known() -> None:
    named = replace(POOL, lines=(replace(WAITS, job="llama", team="vision"),))
    heads, row = rows(html(replace(QUEUE, pools=(named,)), stack="prod"))
    assert heads[1:3] == ["job", "team"]
    assert row[1:3] == ["llama", "vision"]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_name_holds_is_text(text: str) -> None:
    line = replace(WAITS, job=text, team=text, why=text, instances={Capacity(text): 1})
    pool = replace(POOL, name=text, capacity={Capacity(text): 1}, used={}, warm={}, lines=(line,))
    page = html(replace(QUEUE, pools=(pool,)), stack=text)
    allowed = {"style", "div", "p", "h3", "table", "tr", "th", "td", "strong"}
    assert set(re.findall(r"</?([a-z0-9]+)", page)) <= allowed
    assert page.isprintable()
    assert set(re.findall(r"<[a-z0-9]+ ([^>]*)>", page)) <= {'class="tm"', 'class="n"'}
    assert notice(text).count("<p>") == 1


def test_nothing_on_the_page_is_loaded_or_runs() -> None:
    page = html(QUEUE, stack="prod")
    assert re.search(r"https?:|url\(|src=|href=|@import|<script|on\w+=", page) is None


def test_what_is_left_out_is_counted() -> None:
    crowded = replace(POOL, running=30, waiting=2000)
    page = html(replace(QUEUE, pools=(crowded,), left_out=3), stack="prod")
    assert "Jobs not shown: 2028." in page
    assert "Pools not shown: 3." in page


def test_types_have_a_bound() -> None:
    types = {Capacity(f"ml.t{number:03}.xlarge"): 1 for number in range(MOST_TYPES + 7)}
    line = replace(WAITS, instances=types)
    page = html(replace(QUEUE, pools=(replace(POOL, capacity=types, lines=(line,)),)), stack="prod")
    assert "; 8 more types</p>" in page, "that of the pool's own use is one more"
    assert page.count("1x ml.t") == MOST_TYPES


def test_what_is_wrong_with_a_pool_is_said_in_its_place() -> None:
    unread = PoolPicture(name="p5", capacity={}, is_known=False)
    page = html(replace(QUEUE, pools=(unread, replace(POOL, nothing_starts=True)), paused=True), stack="prod")
    assert "<h3>p5</h3><p>This pool could not be read; the next refresh tries again.</p>" in page
    assert "Nothing starts: an admin has to recount the pool: trainmaster repair." in page
    assert "An admin paused starts and preemptions." in page
    assert "The policy has no pool" in html(replace(QUEUE, pools=()), stack="prod")


def test_every_reason_to_wait_has_words_and_a_newer_one_is_shown_as_it_is() -> None:
    newer = replace(POOL, lines=(replace(WAITS, why="phase-of-the-moon"),))
    assert rows(html(replace(QUEUE, pools=(newer,)), stack="prod"))[1][-1] == "phase-of-the-moon"
    assert set(HAPPENS) == LIVE
    spoken = " ".join([*WAITS_FOR.values(), *HAPPENS.values()])
    assert "{" not in spoken
