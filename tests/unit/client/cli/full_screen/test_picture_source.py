"""Reading the whole queue: large pages, those of an older stack, and the errors between."""

import hashlib
import json
from typing import Any, cast

import pytest
from trainmaster_client.api import ApiClient
from trainmaster_client.cli.full_screen.picture_source import PictureSource
from trainmaster_client.cli.silences import Connection
from trainmaster_client.errors import CredentialsError, InvalidRequestError, MalformedViewError, Problem
from trainmaster_client.http.calls import AnsweredDocument, etag_of

from tests.integration.client.fake_api import view
from tests.unit.client.cli.full_screen.queue_screen import FakeApi, FakeLogs

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


def source(api: FakeApi) -> PictureSource:
    return PictureSource(connection=Connection(lambda: cast(ApiClient, api)), region="", logs_client=FakeLogs)


def test_an_older_stack_is_read_a_hundred_at_a_time_and_asked_for_more_once() -> None:
    api = PagedApi(queue=[view(f"job-{n}") for n in range(150)])
    reader = source(api)
    assert len(reader.queue().jobs) == 150
    assert len(reader.queue().jobs) == 150
    assert [limit for limit, _ in api.changes] == ["1000", "100", "100", "100", "100"]


def test_a_refusal_of_small_pages_too_is_an_error() -> None:
    api = PagedApi()
    api.largest = 10
    with pytest.raises(InvalidRequestError):
        source(api).queue()


def test_a_queue_of_another_shape_is_an_error_where_it_is_read() -> None:
    with pytest.raises(MalformedViewError):
        source(FakeApi(queue=[{"name": "job1"}])).queue()


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
    reader = source(api)
    first = [job.name for job in reader.queue().jobs]
    api.changes.clear()
    assert [job.name for job in reader.queue().jobs] == first
    assert api.changes == [("100", None, "unless"), ("100", "100", "unless")]
    api.queue[120] = view("another")
    assert [job.name for job in reader.queue().jobs] == [*first[:120], "another", *first[121:]]


def test_expired_credentials_lead_to_a_new_connection() -> None:
    made: list[FakeApi] = []

    def make() -> ApiClient:
        made.append(FakeApi(fail=CredentialsError("expired.") if not made else None))
        return cast(ApiClient, made[-1])

    reader = PictureSource(connection=Connection(make), region="", logs_client=FakeLogs)
    with pytest.raises(CredentialsError):
        reader.queue()
    assert len(reader.queue().jobs) == 3
    assert len(made) == 2
