"""Following events: each once, none missed, whatever fails in between, with a bounded memory."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from trainmaster_client.errors import ApiUnreachableError, InvalidRequestError, MalformedViewError, Problem
from trainmaster_client.jobs import event_feed
from trainmaster_client.jobs.event_feed import OVERLAP, EventFeed, queue_event

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def event(seconds: float, job: str = "job1", **detail: Any) -> dict[str, Any]:
    at = (NOON + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
    return {"at": at, "kind": "Job Preempted", "team": "vision", "job": job, "detail": detail}


class Journal:
    """An API of events, in pages of three; tokens are offsets, and the next call may fail."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.events = list(events)
        self.asked: list[tuple[str, str | None]] = []
        self.fail: Callable[[str | None], Exception | None] = lambda _token: None

    def __call__(self, since: str, token: str | None) -> dict[str, Any]:
        self.asked.append((since, token))
        if (error := self.fail(token)) is not None:
            raise error
        begin = datetime.fromisoformat(since)
        there = sorted(
            (one for one in self.events if datetime.fromisoformat(one["at"]) >= begin),
            key=lambda one: str(one["at"]),
        )
        offset = int(token or 0)
        more = offset + 3 < len(there)
        return {"events": there[offset : offset + 3], "next_token": str(offset + 3) if more else None}


def names(feed: EventFeed) -> list[str]:
    return [seen.job for seen, _ in feed.new_events()]


def test_every_page_is_read_and_no_event_comes_twice() -> None:
    journal = Journal(*(event(second, f"job{second}") for second in range(8)))
    feed = EventFeed(journal, since=NOON)
    assert names(feed) == [f"job{second}" for second in range(8)]
    assert names(feed) == []
    journal.events.append(event(9, "late"))
    assert names(feed) == ["late"]


def test_nothing_before_since_is_asked_for() -> None:
    feed = EventFeed(journal := Journal(event(0)), since=NOON)
    names(feed)
    assert journal.asked == [("2026-11-22T12:00:00.000000Z", None)]


def test_an_event_that_was_stored_after_a_younger_one_is_not_missed() -> None:
    journal = Journal(event(1000, "first"))
    feed = EventFeed(journal, since=NOON)
    assert names(feed) == ["first"]
    journal.events.append(event(1000 - OVERLAP.total_seconds() + 1, "older, stored later"))
    assert names(feed) == ["older, stored later"]
    assert names(feed) == []


def test_two_events_that_differ_only_in_their_detail_are_two() -> None:
    feed = EventFeed(Journal(event(0, id="a"), event(0, id="b")), since=NOON)
    assert names(feed) == ["job1", "job1"]


def test_after_a_failure_within_pages_it_reads_on_from_the_page_that_failed() -> None:
    journal = Journal(*(event(second, f"job{second}") for second in range(8)))
    feed = EventFeed(journal, since=NOON)
    journal.fail = lambda token: ApiUnreachableError("https://api", why="down.") if token == "3" else None
    seen: list[str] = []
    with pytest.raises(ApiUnreachableError):
        seen.extend(one.job for one, _ in feed.new_events())
    journal.fail = lambda _token: None
    seen += [f"job{second}" for second in range(3)] if not seen else []
    assert names(feed) == [f"job{second}" for second in range(3, 8)]
    assert [token for _, token in journal.asked] == [None, "3", "3", "6"]


def test_a_token_that_is_no_longer_valid_begins_the_walk_again_without_doubles() -> None:
    journal = Journal(*(event(second, f"job{second}") for second in range(8)))
    feed = EventFeed(journal, since=NOON)
    once = [InvalidRequestError(Problem(status=400, title="Bad request", detail="next_token"))]
    journal.fail = lambda token: once.pop() if token == "3" and once else None
    assert names(feed) == [f"job{second}" for second in range(8)]


def test_a_refusal_without_a_token_is_the_callers_mistake() -> None:
    journal = Journal()
    journal.fail = lambda _token: InvalidRequestError(Problem(status=400, title="Bad", detail="kind"))
    with pytest.raises(InvalidRequestError):
        names(EventFeed(journal, since=NOON))


def test_a_server_that_repeats_its_token_is_not_followed_for_ever() -> None:
    feed = EventFeed(lambda _since, _token: {"events": [], "next_token": "same"}, since=NOON)
    assert names(feed) == []


def test_memory_is_bounded_by_the_overlap() -> None:
    journal = Journal(*(event(10 * second, f"job{second}") for second in range(100)))
    feed = EventFeed(journal, since=NOON)
    assert len(names(feed)) == 100
    assert feed.remembered == OVERLAP.total_seconds() / 10 + 1


def test_a_flood_in_one_instant_is_bounded_too_and_comes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "MOST_REMEMBERED", 10)
    journal = Journal(*(event(0, f"job{number}") for number in range(40)))
    feed = EventFeed(journal, since=NOON)
    assert len(names(feed)) == 40
    assert feed.remembered == 10
    journal.events.append(event(1, "after the flood"))
    assert names(feed) == ["after the flood"]


def test_the_text_is_the_events_own_words_else_its_values() -> None:
    assert queue_event(event(0, what="job1 was preempted.", why="urgent came.", id="7")).text == (
        "job1 was preempted. urgent came."
    )
    assert queue_event(event(0, cause="spot", lost=[1, 2])).text == "cause spot, lost [1, 2]"


def test_an_event_of_another_shape_is_an_error_of_ours() -> None:
    with pytest.raises(MalformedViewError):
        queue_event({"kind": "x"})


def test_control_characters_are_blanks() -> None:
    assert queue_event(event(0, "a\x1b[2J", what="b\nc")).text == "b c"
