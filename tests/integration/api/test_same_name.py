"""POST /add-job under a name that a job has: the same submission again, or another one."""

import dataclasses
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.adapters.dynamodb import layout
from trainmaster.api import build_api
from trainmaster.core.jobs.model import JobState

from tests.bodies import body
from tests.builders import NOON, claimed
from tests.integration.api.conftest import ADA, BOB, Answer, Api

NAME = "job1-2026-01-01"
ENDS = [JobState.COMPLETED, JobState.FAILED, JobState.STOPPED]
LATER = timedelta(seconds=61)


def add(
    api: Api, key: str | None = None, *, content: Any = None, dry_run: bool = False, user: str = ADA
) -> Answer:
    headers = {"content-type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
    query = {"dry_run": "true"} if dry_run else {}
    content = body() if content is None else content
    return api.call("POST", "/add-job", content, user=user, query=query, headers=headers)


def ended(api: Api, state: JobState, *, key: str | None, at: datetime = NOON) -> None:
    assert add(api, key).status == 201
    api.now = at
    if state is JobState.STOPPED:
        assert api.call("DELETE", f"/jobs/{NAME}").status == 202
    else:
        api.end(NAME, state)


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("first", [None, "monday"])
@pytest.mark.parametrize(
    ("again", "after"),
    [
        pytest.param("tuesday", timedelta(0), id="another key at once"),
        pytest.param("tuesday", timedelta(days=1), id="another key a day later"),
        pytest.param(None, LATER, id="no key after a minute"),
        pytest.param(None, timedelta(days=1), id="no key a day later"),
    ],
)
def test_O6_C2_the_same_request_after_the_end_is_another_submission(
    api: Api, state: JobState, first: str | None, again: str | None, after: timedelta
) -> None:
    ended(api, state, key=first)
    before = api.job(NAME)
    api.now += after
    api.wake_ups.pools.clear()
    answer = add(api, again)
    assert (answer.status, answer.fields) == (409, ["TrainingJobName"])
    assert answer.json["type"] == "urn:trainmaster:problem:name-taken"
    assert answer.json["errors"][0]["rule"] == "name-taken"
    said = "was stopped" if state is JobState.STOPPED else state.value
    assert answer.json["detail"] == f"a job of this name {said} on 2 Nov 12:00 UTC: choose another name"
    assert (api.job(NAME), api.wake_ups.pools) == (before, [])


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("again", [None, "tuesday"])
def test_O6_the_dry_run_says_what_the_submission_would_be_answered(
    api: Api, state: JobState, again: str | None
) -> None:
    ended(api, state, key="monday")
    api.now += LATER
    refused, foreseen = add(api, again), add(api, again, dry_run=True)
    assert foreseen.status == 200
    assert (foreseen.json["valid"], foreseen.json["estimated_start"]) == (False, None)
    assert foreseen.json["violations"] == refused.json["errors"]


def test_O6_an_end_of_last_year_is_said_with_its_year(api: Api) -> None:
    ended(api, JobState.COMPLETED, key="monday")
    api.now += timedelta(days=365)
    assert "completed on 2 Nov 2026 12:00 UTC" in add(api, "tuesday").json["detail"]


@pytest.mark.parametrize("first", [None, "monday"])
@pytest.mark.parametrize("again", [None, "monday", "tuesday"])
@pytest.mark.parametrize("state", ["pending", "running"])
def test_O7_F6_while_the_job_lives_the_same_request_is_the_job_whatever_its_key(
    api: Api, state: str, first: str | None, again: str | None
) -> None:
    assert add(api, first).status == 201
    if state == "running":
        api.start(NAME)
    api.now += timedelta(days=3)
    answer = add(api, again)
    assert (answer.status, answer.json["job"]["state"]) == (200, state)
    assert add(api, again, dry_run=True).json["valid"] is True
    assert len(api.names(state=state)) == 1


@pytest.mark.parametrize("state", ENDS)
def test_O7_A2_the_key_of_its_submission_gets_the_job_for_as_long_as_it_is_known(
    api: Api, state: JobState
) -> None:
    ended(api, state, key="monday")
    api.now += timedelta(days=30)
    answer = add(api, "monday")
    assert (answer.status, answer.json["job"]["state"]) == (200, state.value)


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("first", [None, "monday"])
def test_O7_a_request_without_a_key_gets_the_job_within_a_minute_of_its_submission(
    api: Api, state: JobState, first: str | None
) -> None:
    ended(api, state, key=first)
    api.now = NOON + timedelta(seconds=60)
    assert (add(api).status, add(api, dry_run=True).json["valid"]) == (200, True)
    api.now += timedelta(seconds=1)
    assert (add(api).status, add(api, dry_run=True).json["valid"]) == (409, False)


def test_O6_the_minute_begins_with_the_submission_not_with_the_end(api: Api) -> None:
    ended(api, JobState.COMPLETED, key=None, at=NOON + timedelta(hours=1))
    api.now += timedelta(seconds=1)
    assert add(api).status == 409


@pytest.mark.parametrize("state", [None, *ENDS])
def test_a_key_that_comes_again_with_another_body_is_said_so(api: Api, state: JobState | None) -> None:
    if state is None:
        add(api, "monday")
    else:
        ended(api, state, key="monday")
    other = body(HyperParameters={"epochs": "9"})
    answer = add(api, "monday", content=other)
    assert (answer.status, answer.fields) == (409, ["Idempotency-Key"])
    assert answer.json["type"] == "urn:trainmaster:problem:key-reused"
    assert answer.json["errors"][0]["rule"] == "key-reused"
    foreseen = add(api, "monday", content=other, dry_run=True)
    assert (foreseen.json["valid"], foreseen.json["violations"]) == (False, answer.json["errors"])
    assert add(api, "tuesday", content=other).json["type"] == "urn:trainmaster:problem:name-taken"


def test_a_key_counts_within_the_jobs_of_its_name(api: Api) -> None:
    assert add(api, "monday").status == 201
    assert add(api, "monday", content=body(TrainingJobName="another-job")).status == 201


def test_F6_another_body_is_told_the_state_in_the_dry_run_too(api: Api) -> None:
    add(api, "monday")
    other = body(HyperParameters={"epochs": "9"})
    assert add(api, "tuesday", content=other).json["detail"] == (
        "a job of this name is pending: choose another name"
    )
    assert add(api, content=other, dry_run=True).json["valid"] is False


def test_F6_another_team_learns_neither_state_nor_end_nor_that_a_key_is_known(api: Api) -> None:
    ended(api, JobState.FAILED, key="monday")
    for key in ("monday", "tuesday", None):
        answer = add(api, key, user=BOB)
        assert answer.status == 409
        assert answer.json["detail"] == "a job of another team has this name: choose another name"


def test_the_name_of_a_later_attempt_names_its_job(api: Api) -> None:
    add(api)
    again = api.end(NAME, JobState.PREEMPTED)
    api.change(NAME, claimed(again, "a-r1-0a1b2c", now=api.now))
    answer = add(api, "monday", content=body(TrainingJobName="a-r1-0a1b2c"))
    assert answer.json["detail"] == (
        f"{NAME}, which has an attempt of this name, is starting: choose another name"
    )


# ---- the key


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    "key",
    [
        pytest.param("", id="empty"),
        pytest.param("x" * 129, id="too long"),
        pytest.param("a\tb", id="a control character"),
        pytest.param("caf\N{LATIN SMALL LETTER E WITH ACUTE}", id="not ASCII"),
        pytest.param("a\x7f", id="delete"),
    ],
)
def test_a_key_that_is_none_is_refused_and_nothing_stored(api: Api, key: str, *, dry_run: bool) -> None:
    answer = add(api, key, dry_run=dry_run)
    assert (answer.status, answer.fields) == (400, ["Idempotency-Key"])
    assert api.reader.job(NAME) is None


@pytest.mark.parametrize("key", ["x", "x" * 128, 'a b!"~'])
def test_any_printable_ascii_is_a_key(api: Api, key: str) -> None:
    assert add(api, key).status == 201
    api.end(NAME)
    assert add(api, key).status == 200


@pytest.mark.parametrize("name", ["idempotency-key", "IDEMPOTENCY-KEY"])
def test_the_headers_name_is_found_however_a_proxy_writes_it(api: Api, name: str) -> None:
    add(api, "monday")
    api.end(NAME)
    headers = {"content-type": "application/json", name: "monday"}
    assert api.call("POST", "/add-job", body(), headers=headers).status == 200


def test_the_table_keeps_the_keys_hash_alone(api: Api) -> None:
    add(api, "a-secret-key")
    pk, sk = layout.job_key(NAME)
    row = api.client.get_item(TableName=api.table, Key={"pk": {"S": pk}, "sk": {"S": sk}})["Item"]
    assert "a-secret-key" not in json.dumps(row, default=str)
    assert len(api.job(NAME).spec.key_hash or "") == 64


def test_a_row_stored_before_keys_answers_as_long_as_its_job_lives(api: Api) -> None:
    add(api, "monday")
    job = api.job(NAME)
    api.change(NAME, dataclasses.replace(job, spec=dataclasses.replace(job.spec, key_hash=None)))
    pk, sk = layout.job_key(NAME)
    row = api.client.get_item(TableName=api.table, Key={"pk": {"S": pk}, "sk": {"S": sk}})["Item"]
    assert "key_hash" not in json.dumps(row, default=str)
    assert add(api, "monday").status == 200
    api.end(NAME)
    assert (add(api).status, add(api, "monday").status) == (200, 409)


# ---- crashes and races


def test_A2_G9_a_crash_after_the_write_is_repeated_with_its_key_even_after_the_end(api: Api) -> None:
    class Crash(BaseException):
        """As a killed process: no handler of ours sees it."""

    class Dying:
        def send(self, _: object) -> None:
            raise Crash

    whole, api.handle = api.handle, build_api(api.outside(wake_ups=Dying()))
    with pytest.raises(Crash):
        add(api, "monday")
    api.handle = whole
    api.end(NAME)
    api.now += timedelta(hours=1)
    assert (add(api, "monday").status, add(api, "tuesday").status) == (200, 409)


@pytest.mark.parametrize("ends_between", [False, True])
@pytest.mark.parametrize(("first", "second"), [("one", "two"), ("one", "one"), (None, None)])
def test_C11_of_two_at_once_the_loser_gets_the_winners_job(
    api: Api, first: str | None, second: str | None, *, ends_between: bool
) -> None:
    """The other request is stored between this one's reads and its write, and may have ended by then."""
    submit = api.store.submit

    def late(*arguments: Any) -> None:
        api.store.submit = submit  # type: ignore[method-assign]
        assert add(api, first).status == 201
        if ends_between:
            api.end(NAME)
        submit(*arguments)

    api.store.submit = late  # type: ignore[method-assign, assignment]
    is_another = ends_between and first != second
    assert add(api, second).status == (409 if is_another else 200)
    assert len(api.names(state="completed" if ends_between else "pending")) == 1
