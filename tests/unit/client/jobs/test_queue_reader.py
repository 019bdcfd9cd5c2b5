"""Reading the whole queue: large pages, those of an older stack, and what did not change."""

import hashlib
import json
from typing import Any, cast

import pytest
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import CredentialsError, InvalidRequestError, Problem
from trainmaster_client.http.calls import AnsweredDocument, etag_of
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.queue_reader import QueueReader

from tests.integration.client.fake_api import view
from tests.unit.client.cli.full_screen.queue_screen import FakeApi

REFUSED = InvalidRequestError(Problem(status=400, title="Bad request", detail="limit"))


class PagedApi(FakeApi):
    """Gives so many jobs at once, and refuses to give more."""

    largest = 100

    def jobs(self, **filters: Any) -> dict[str, Any]:
        self.changes.append((filters["limit"], filters["next_token"]))
        if int(filters["limit"]) > self.largest:
            raise REFUSED
        begin = int(filters["next_token"] or 0)
        end = begin + int(filters["limit"])
        more = end < len(self.queue)
        return {"jobs": self.queue[begin:end], "next_token": str(end) if more else None}


def reader_of(api: FakeApi) -> QueueReader:
    return QueueReader(lambda: cast(ApiClient, api))


def names(reader: QueueReader) -> list[str]:
    return [job["name"] for job in reader.whole({})["jobs"]]


def test_an_older_stack_is_read_a_hundred_at_a_time_and_asked_for_more_once() -> None:
    api = PagedApi(queue=[view(f"job-{n}") for n in range(150)])
    reader = reader_of(api)
    assert len(names(reader)) == 150
    assert len(names(reader)) == 150
    assert [limit for limit, _ in api.changes] == ["1000", "100", "100", "100", "100"]


def test_a_refusal_of_small_pages_too_is_an_error() -> None:
    api = PagedApi()
    api.largest = 10
    with pytest.raises(InvalidRequestError):
        reader_of(api).whole({})


class TaggedApi(PagedApi):
    """Says with each page what it is, and nothing where that is known."""

    def jobs(self, **filters: Any) -> dict[str, Any]:
        page = AnsweredDocument(super().jobs(**filters))
        page.etag = hashlib.sha256(json.dumps(page).encode()).hexdigest()
        return page

    def jobs_unless(self, etag: str, **filters: Any) -> dict[str, Any] | None:
        page = self.jobs(**filters)
        self.changes[-1] += ("unless",)
        return None if etag_of(page) == etag else page


def test_pages_that_did_not_change_are_not_sent_again_and_those_that_did_are() -> None:
    api = TaggedApi(queue=[view(f"job-{n}") for n in range(150)])
    reader = reader_of(api)
    first = names(reader)
    api.changes.clear()
    assert names(reader) == first
    assert api.changes == [("100", None, "unless"), ("100", "100", "unless")]
    api.queue[120] = view("another")
    assert names(reader) == [*first[:120], "another", *first[121:]]


def test_arrays_of_all_pages_come_together_and_a_stack_without_them_has_no_key() -> None:
    api = PagedApi(queue=[view(f"job-{n}") for n in range(150)])
    assert "arrays" not in reader_of(api).whole({})

    class WithArrays(PagedApi):
        def jobs(self, **filters: Any) -> dict[str, Any]:
            return {**super().jobs(**filters), "arrays": [{"name": f"sweep-{filters['next_token']}"}]}

    arrays = reader_of(WithArrays(queue=api.queue)).whole({})["arrays"]
    assert [array["name"] for array in arrays] == ["sweep-None", "sweep-100"]


def test_a_token_that_leads_nowhere_ends_the_read() -> None:
    class Stuck(PagedApi):
        def jobs(self, **filters: Any) -> dict[str, Any]:
            return {**super().jobs(**{**filters, "next_token": None}), "next_token": "again"}

    assert len(names(reader_of(Stuck()))) == 2 * len(FakeApi().queue)


def test_likely_starts_are_asked_for_once_a_minute() -> None:
    clock = [0.0]
    asked: list[str | None] = []

    class Estimating(FakeApi):
        def estimates(self, *, pool: str | None = None) -> dict[str, Any]:
            asked.append(pool)
            return {"estimates": []}

    api = Estimating()
    reader = QueueReader(lambda: cast(ApiClient, api), monotonic=lambda: clock[0])
    jobs = [job_view(view("job1", position=1))]
    for second in (0.0, 59.0, 60.0):
        clock[0] = second
        assert reader.starts(jobs) == {}
    assert asked == ["p5", "p5"]


def test_pools_that_are_not_to_be_had_are_none() -> None:
    assert reader_of(FakeApi(fail=CredentialsError("expired."))).pools() == ()
