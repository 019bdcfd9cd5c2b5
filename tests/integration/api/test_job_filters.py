"""GET /jobs: filters, longer pages, names that there are not, and entity tags."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode

from tests.integration.api.conftest import ADA, ADMIN, BOB, BOTH, DOCUMENT, ON_G5, OWN, Answer, Api

GRACE = f"arn:aws:sts::{OWN}:assumed-role/vision-lead/grace"
NAMELESS = f"arn:aws:sts::{OWN}:assumed-role/vision-lead/botocore-session-17"
NAMELESS_LATER = f"arn:aws:sts::{OWN}:assumed-role/vision-lead/botocore-session-99"


def unless(api: Api, tag: str, *, user: str = ADA, **query: Any) -> Answer:
    return api.call("GET", "/jobs", user=user, query=query, headers={"If-None-Match": tag})


def tag_of(api: Api, *, user: str = ADA, **query: Any) -> str:
    return api.get("/jobs", user=user, **query).headers["ETag"]


# ---- filters


def test_mine_are_those_that_the_caller_submitted(api: Api) -> None:
    api.submit("by-ada")
    api.submit("by-grace", user=GRACE)
    api.submit("by-bob", user=BOB)
    assert api.names(mine="true") == ["by-ada"]
    assert api.names(mine="true", user=GRACE) == ["by-grace"]
    assert api.names(mine="true", user=ADMIN) == []
    assert api.names(mine="false", user=ADMIN) == ["by-ada", "by-bob", "by-grace"]


def test_a_session_that_got_no_name_is_known_by_its_role(api: Api) -> None:
    api.submit("a", user=NAMELESS)
    api.submit("b")
    assert api.names(mine="true", user=NAMELESS_LATER) == ["a"]


def test_an_owner_can_be_asked_for(api: Api) -> None:
    api.submit("by-ada")
    api.submit("by-grace", user=GRACE)
    assert api.names(submitted_by=GRACE) == ["by-grace"]
    api.end("by-grace")
    assert api.names(submitted_by=GRACE, state="completed") == ["by-grace"]


def test_jobs_of_other_teams_match_neither_an_owner_nor_a_prefix(api: Api) -> None:
    api.submit("secret-plan")
    assert api.names(user=BOB) == [None]
    assert api.names(user=BOB, name_prefix="secret") == []
    assert api.names(user=BOB, submitted_by=ADA) == []
    assert api.names(user=ADMIN, name_prefix="secret") == ["secret-plan"]


def test_a_prefix_selects_names_and_positions_stay_those_of_the_pool(api: Api) -> None:
    for name in ("vit-1", "bert-1", "vit-2"):
        api.submit(name)
    answer = api.get("/jobs", name_prefix="vit-")
    assert [(job["name"], job["position"]) for job in answer.json["jobs"]] == [("vit-1", 2), ("vit-2", 3)]


def test_changes_since_an_instant_are_submissions_starts_and_ends(api: Api) -> None:
    for name in ("early", "started", "ended"):
        api.submit(name)
    api.now += timedelta(minutes=1)
    since = api.now.isoformat()
    api.now += timedelta(minutes=1)
    api.start("started")
    api.end("ended")
    api.submit("late", ResourceConfig=ON_G5)
    assert api.names(changed_since=since) == ["started", "late"]
    assert api.names(changed_since=since, state="completed") == ["ended"]
    assert api.names(changed_since=(api.now + timedelta(seconds=1)).isoformat()) == []


def test_a_reason_to_wait_is_no_change_and_a_row_without_an_instant_may_have_changed(api: Api) -> None:
    api.submit("a")
    key = {"pk": {"S": "J#a"}, "sk": {"S": "job"}}
    later = (api.now + timedelta(hours=1)).isoformat()
    assert api.names(changed_since=later) == []
    api.client.update_item(TableName=api.table, Key=key, UpdateExpression="REMOVE changed_at")
    assert api.names(changed_since=later) == ["a"]


def test_pages_of_a_filtered_list_have_every_job_once(api: Api) -> None:
    for number in range(7):
        api.submit(f"{'vit' if number % 2 else 'bert'}-{number}")
    seen: list[str] = []
    token = None
    for _ in range(5):
        query = {"mine": "true", "name_prefix": "vit", "limit": "2"} | (
            {"next_token": token} if token else {}
        )
        page = api.get("/jobs", **query).json
        seen += [job["name"] for job in page["jobs"]]
        token = page["next_token"]
        if token is None:
            break
    assert seen == ["vit-1", "vit-3", "vit-5"]


def test_a_token_is_for_the_filters_of_its_page(api: Api) -> None:
    for name in ("vit-1", "vit-2"):
        api.submit(name)
    token = api.get("/jobs", limit="1", name_prefix="vit").json["next_token"]
    assert api.get("/jobs", limit="1", name_prefix="v", next_token=token).fields == ["query.next_token"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"mine": "yes"}, "query.mine", id="mine"),
        pytest.param({"limit": "0"}, "query.limit", id="a limit of none"),
        pytest.param({"limit": "1001"}, "query.limit", id="a limit above 1,000"),
        pytest.param({"limit": "²"}, "query.limit", id="a digit that is not ASCII"),
        pytest.param({"changed_since": "yesterday"}, "query.changed_since", id="no instant"),
        pytest.param({"changed_since": "0001-01-01T00:00:00+23:59"}, "query.changed_since", id="before time"),
        pytest.param({"owner": "ada"}, "query.owner", id="unknown"),
    ],
)
def test_a_parameter_that_is_not_valid_is_named(api: Api, query: dict[str, str], field: str) -> None:
    assert api.get("/jobs", **query).fields == [field]


def test_a_page_takes_a_thousand(api: Api) -> None:
    api.submit("a")
    assert api.names(limit="1000") == ["a"]


# ---- names that there are not


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        pytest.param({"pool": "p55"}, 'no pool "p55"', "did you mean p5? use one of: p5, g5", id="pool"),
        pytest.param(
            {"pool": "x", "state": "completed"}, 'no pool "x"', "use one of: p5", id="of ended jobs"
        ),
        pytest.param(
            {"team": "vison"}, 'no team "vison"', "did you mean vision? use one of: vision, speech", id="team"
        ),
        pytest.param(
            {"team": "x", "state": "failed"}, 'no team "x"', "use one of: vision", id="team of ended jobs"
        ),
        pytest.param({"state": "runing"}, '"runing" is not a state', "did you mean running?", id="state"),
    ],
)
def test_an_unknown_name_is_an_error_that_says_the_nearest(
    api: Api, query: dict[str, str], message: str, hint: str
) -> None:
    answer = api.get("/jobs", **query)
    assert answer.fields == [f"query.{next(iter(query))}"]
    assert message in answer.json["errors"][0]["message"]
    assert answer.json["errors"][0]["hint"].startswith(hint)


def test_a_team_that_left_the_policy_is_known_as_long_as_it_has_jobs(api: Api) -> None:
    api.submit("a", user=BOB)
    api.submit("b", user=BOB)
    api.end("b")
    api.call("PUT", "/policy", DOCUMENT | {"teams": DOCUMENT["teams"][:1]}, user=ADMIN)
    assert api.names(user=ADMIN, team="speech") == ["a"]
    assert api.names(user=ADMIN, team="speech", state="completed") == ["b"]
    assert api.get("/jobs", user=ADMIN, team="sound").status == 400


# ---- entity tags


def test_an_answer_that_is_known_comes_without_a_body(api: Api) -> None:
    api.submit("a")
    tag = tag_of(api)
    answer = unless(api, tag)
    assert (answer.status, answer.text, answer.headers["ETag"]) == (304, "", tag)
    assert unless(api, f'"else", {tag.removeprefix("W/")}').status == 304
    assert unless(api, '"else"').json["jobs"][0]["name"] == "a"


@pytest.mark.parametrize(
    "news",
    [
        pytest.param(lambda api: api.submit("b"), id="a submission"),
        pytest.param(lambda api: api.start("a"), id="a start"),
        pytest.param(lambda api: api.start("other"), id="a start of another team's job"),
        pytest.param(lambda api: api.call("PATCH", "/jobs/a", {"priority": 5}), id="a priority"),
        pytest.param(lambda api: api.call("PATCH", "/jobs/a", {"held": True}), id="a hold"),
        pytest.param(lambda api: api.call("DELETE", "/jobs/a"), id="a cancel"),
        pytest.param(lambda api: api.call("PUT", "/policy", DOCUMENT, user=ADMIN), id="a policy"),
        pytest.param(
            lambda api: api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN), id="a pause"
        ),
    ],
)
def test_a_change_of_what_is_stored_is_never_hidden(api: Api, news: Any) -> None:
    api.submit("a")
    api.submit("other", user=BOB)
    tag = tag_of(api)
    news(api)
    assert unless(api, tag).status == 200


def test_steps_of_a_live_job_are_never_hidden(api: Api) -> None:
    api.submit("a")
    api.start("a")
    tags = [tag_of(api)]
    api.end("a", becomes=JobState.PREEMPTED)
    tags.append(tag_of(api))
    api.put_back("a")
    tags.append(tag_of(api))
    assert len(set(tags)) == 3


def test_what_is_computed_is_a_minute_old_at_most(api: Api) -> None:
    api.submit("a")
    tag = tag_of(api)
    api.now += timedelta(seconds=59)
    assert unless(api, tag).status == 304
    api.now += timedelta(seconds=1)
    assert unless(api, tag).status == 200


def test_a_tag_is_for_one_sight_and_one_question(api: Api) -> None:
    api.submit("a")
    tag = tag_of(api)
    assert unless(api, tag, user=BOB).status == 200
    assert unless(api, tag, user=BOTH).status == 200
    assert unless(api, tag, user=ADMIN).status == 200
    assert unless(api, tag, limit="1000").status == 200
    assert unless(api, tag, name_prefix="a").status == 200


def test_a_known_answer_reads_no_job_and_asks_no_planner(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.submit("a")
    tag = tag_of(api)

    def unread(*_: object, **__: object) -> None:
        raise AssertionError("was read")

    monkeypatch.setattr(api.reader, "jobs", unread)
    monkeypatch.setattr(api.reader, "overview", unread)
    assert unless(api, tag).status == 304


def test_a_304_counts_as_a_read(api: Api) -> None:
    document = DOCUMENT | {
        "pools": [pool | {"limits": {"max_reads_per_minute": 2}} for pool in DOCUMENT["pools"]]
    }
    api.call("PUT", "/policy", document, user=ADMIN)
    tag = tag_of(api)
    assert [unless(api, tag).status for _ in range(2)] == [304, 429]


def test_a_reason_to_wait_that_was_noted_may_be_a_minute_old(api: Api) -> None:
    api.submit("a")
    tag = tag_of(api)
    job = api.job("a")
    noted = Reason(code=ReasonCode.CAPACITY, message="needs 1, free 0")
    api.change("a", replace(job, waiting=noted))
    assert unless(api, tag).status == 304
