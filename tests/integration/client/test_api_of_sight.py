"""The client's methods for timeline, money, rules and events: paths, queries, pages, entity tags, CSV."""

from collections.abc import Callable

import boto3
import pytest
from trainmaster_client import errors
from trainmaster_client.api import ApiClient, etag_of

from tests.integration.client.fake_api import FakeApi, Scripted, problem

CSV = {"content-type": "text/csv; charset=utf-8"}


@pytest.fixture
def client(api: FakeApi, boto_session: boto3.Session) -> ApiClient:
    return ApiClient(api.url, boto_session, pause=lambda _: None)


@pytest.mark.parametrize(
    ("call", "path", "query"),
    [
        pytest.param(lambda one: one.me(), "/me", {}, id="me"),
        pytest.param(lambda one: one.rules(), "/rules", {}, id="rules"),
        pytest.param(lambda one: one.estimates(pool="p5"), "/estimates", {"pool": ["p5"]}, id="estimates"),
        pytest.param(
            lambda one: one.timeline(pool="p5", start="2026-11-01", end="2026-11-02"),
            "/timeline",
            {"pool": ["p5"], "from": ["2026-11-01"], "to": ["2026-11-02"]},
            id="timeline",
        ),
        pytest.param(
            lambda one: one.pool_history(start="2026-11-01", step=300),
            "/pools/history",
            {"from": ["2026-11-01"], "step": ["300"]},
            id="history of pools",
        ),
        pytest.param(
            lambda one: one.events(since="2026-11-01", team="vision", kind="JobFailed", next_token="n"),
            "/events",
            {"since": ["2026-11-01"], "team": ["vision"], "kind": ["JobFailed"], "next_token": ["n"]},
            id="events",
        ),
        pytest.param(
            lambda one: one.usage_by("day", team="*", start="2026-11-01"),
            "/usage",
            {"group_by": ["day"], "team": ["*"], "from": ["2026-11-01"]},
            id="usage by day",
        ),
        pytest.param(
            lambda one: one.jobs(mine="true", name_prefix="vit", changed_since="2026-11-01", limit="1000"),
            "/jobs",
            {"mine": ["true"], "name_prefix": ["vit"], "changed_since": ["2026-11-01"], "limit": ["1000"]},
            id="jobs",
        ),
    ],
)
def test_a_method_asks_its_route_for_what_is_given_and_nothing_else(
    call: Callable[[ApiClient], object],
    path: str,
    query: dict[str, list[str]],
    client: ApiClient,
    api: FakeApi,
) -> None:
    api.script("GET", path, Scripted(document={"answer": 1}))
    assert call(client) == {"answer": 1}
    assert [one.query for one in api.received] == [query]


def test_a_dry_run_can_name_a_team(client: ApiClient, api: FakeApi) -> None:
    api.script("POST", "/add-job", Scripted(document={"valid": True}))
    client.try_job({}, team="vision")
    client.try_job({})
    assert [one.query for one in api.received] == [
        {"dry_run": ["true"], "team": ["vision"]},
        {"dry_run": ["true"]},
    ]


def test_a_timeline_is_put_together_from_its_pages(client: ApiClient, api: FakeApi) -> None:
    first = {"attempts": [1], "capacity": ["c"], "warm": ["w"], "since": None, "next_token": "n"}
    second = {"attempts": [2], "capacity": [], "warm": [], "since": None, "next_token": None}
    api.script("GET", "/timeline", Scripted(document=first), Scripted(document=second))
    whole = {"attempts": [1, 2], "capacity": ["c"], "warm": ["w"], "since": None, "next_token": None}
    assert client.timeline() == whole


def test_an_entity_tag_comes_with_a_page_and_goes_with_the_next_question(
    client: ApiClient, api: FakeApi
) -> None:
    page = Scripted(document={"jobs": []}, headers={"ETag": '"v1"'})
    api.script("GET", "/jobs", page, Scripted(status=304, raw=b""), page)
    etag = etag_of(client.jobs(pool="p5"))
    assert etag == '"v1"'
    assert client.jobs_unless(etag, pool="p5") is None
    assert client.jobs_unless(etag, pool="p5") == {"jobs": []}
    assert [one.headers.get("if-none-match") for one in api.received] == [None, etag, etag]
    assert api.received[1].query == {"pool": ["p5"]}


def test_without_an_entity_tag_the_page_is_asked_for_whole(client: ApiClient, api: FakeApi) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": []}))
    answer = client.jobs_unless("")
    assert answer == {"jobs": []}
    assert etag_of(answer) == ""
    assert "if-none-match" not in api.received[0].headers


def test_csv_is_put_together_from_its_pages_under_one_head_line(client: ApiClient, api: FakeApi) -> None:
    first = Scripted(raw=b"key,usd\r\nada,1.0\r\n", headers=CSV | {"trainmaster-next-token": "n"})
    api.script("GET", "/usage", first, Scripted(raw=b"key,usd\r\nbob,2.0\r\n", headers=CSV))
    assert client.usage_csv("user", team="vision") == "key,usd\r\nada,1.0\r\nbob,2.0\r\n"
    assert [one.headers["accept"] for one in api.received] == ["text/csv", "text/csv"]
    assert api.received[1].query == {"group_by": ["user"], "team": ["vision"], "next_token": ["n"]}


def test_a_refusal_of_csv_is_the_apis_own_words(client: ApiClient, api: FakeApi) -> None:
    api.script("GET", "/usage", problem(400, "Bad request", "no such team"))
    with pytest.raises(errors.InvalidRequestError, match="no such team"):
        client.usage_csv("user")


def test_json_from_something_that_knows_no_csv_is_not_passed_off_as_csv(
    client: ApiClient, api: FakeApi
) -> None:
    api.script("GET", "/usage", Scripted(document={"jobs": []}))
    with pytest.raises(errors.UnexpectedAnswerError, match="application/json"):
        client.usage_csv("user")
