"""What a handle does with its job: the calls of the command line, in Python's types."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
import trainmaster_client
from moto import mock_aws
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import ConflictError, InvalidArgumentError
from trainmaster_client.handles import Job, jobs

from tests.integration.client.fake_api import ACCESS_KEY, REGION, REQUEST, SECRET_KEY, FakeApi, Scripted, view
from tests.unit.client.cloudwatch_logs import TrainingLogs

SESSION = boto3.Session(aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=REGION)


@pytest.fixture
def job(api: FakeApi) -> Job:
    return Job(ApiClient(api.url, SESSION), view(), make_logs=lambda: None)


def test_C10_a_bool_is_a_bool(api: FakeApi) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": [view()], "next_token": None}))
    for mine in (True, "true"):
        assert [one.name for one in jobs(api_url=api.url, boto_session=SESSION, mine=mine)] == ["job1"]
    assert [one.query["mine"] for one in api.received] == [["true"], ["true"]]


def test_C10_numbers_and_instants_are_taken_as_python_has_them(api: FakeApi) -> None:
    client = ApiClient(api.url, SESSION)
    for path in ("/jobs", "/events", "/pools/history"):
        api.script("GET", path, Scripted(document={}))
    since = datetime(2026, 11, 27, 9, 30, 0, 5, tzinfo=UTC)
    client.jobs(mine=False, limit=7)
    client.events(since=since)
    client.pool_history(start=since.astimezone(None), step=60)
    assert [one.query for one in api.received] == [
        {"mine": ["false"], "limit": ["7"]},
        {"since": ["2026-11-27T09:30:00Z"]},
        {"from": ["2026-11-27T09:30:00Z"], "step": ["60"]},
    ]


@pytest.mark.parametrize(
    ("act", "call", "body"),
    [
        (lambda job: job.cancel(), "DELETE /jobs/job1", None),
        (lambda job: job.priority(9), "PATCH /jobs/job1", {"priority": 9}),
        (lambda job: job.hold(), "PATCH /jobs/job1", {"held": True}),
        (lambda job: job.release(), "PATCH /jobs/job1", {"held": False}),
    ],
)
def test_C10_a_change_is_made_and_the_view_follows(
    act: Any, call: str, body: object, api: FakeApi, job: Job
) -> None:
    method, _, path = call.partition(" ")
    api.script(method, path, Scripted(document=view(state="stopping", priority=9)))
    assert act(job) is job, "so that a notebook shows the job after it"
    assert api.calls() == [call]
    assert (json.loads(api.received[0].body) if api.received[0].body else None) == body
    assert (job.state, job.view.priority) == ("stopping", 9)


def test_C10_a_change_keeps_the_attempts_that_were_seen(api: FakeApi) -> None:
    attempt = {"attempt": 0, "training_job_name": "job1", "status": "InProgress"}
    job = Job(ApiClient(api.url, SESSION), {**view(), "attempts": [attempt]}, make_logs=lambda: None)
    api.script("PATCH", "/jobs/job1", Scripted(document=view(priority=9)))
    assert [one.number for one in job.priority(9).view.attempts] == [0]


def test_C10_a_refused_change_raises_and_changes_nothing(api: FakeApi, job: Job) -> None:
    api.script("DELETE", "/jobs/job1", Scripted(status=409, document={"title": "No", "detail": "has ended"}))
    with pytest.raises(ConflictError):
        job.cancel()
    assert job.state == "pending"


def test_C10_why_is_the_text_of_the_command(api: FakeApi, job: Job) -> None:
    api.script("GET", "/jobs/job1", Scripted(document=view()))
    api.script("GET", "/jobs", Scripted(document={"jobs": [view("urgent", position=1, priority=9)]}))
    said = job.why()
    assert repr(said) == str(said), "a notebook shows lines, not one quoted text"
    lines = said.splitlines()
    assert lines[0].startswith("job1: Waiting, position 3 in pool p5")
    assert "  Ahead: urgent (priority 9, 1x ml.p5.48xlarge)" in lines
    assert lines[-1].startswith("  What would help: ")


@mock_aws  # type: ignore[untyped-decorator]
def test_C10_logs_are_lines_that_print_as_text(api: FakeApi) -> None:
    logs = TrainingLogs()
    logs.write("job1/algo-1-1", (1, "one"), (2, "two\x1b[31m!"), (3, "three"))
    logs.write("job1/algo-2-1", (2, "other host"))
    attempt = {"attempt": 0, "training_job_name": "job1", "status": "InProgress"}
    api.script("GET", "/jobs/job1", Scripted(document={**view(state="running"), "attempts": [attempt]}))
    job = Job(ApiClient(api.url, SESSION), view(), make_logs=lambda: logs.client)
    assert str(job.logs(host=1)) == "one\ntwo!\nthree"
    assert repr(job.logs(host=1, tail=1)) == "three"
    assert "algo-2 | other host" in str(job.logs()).splitlines()
    assert len(job.logs(attempt=1)) == 0
    assert len(job.logs(since=timedelta(seconds=1))) == 0
    assert [line.host for line in job.logs(since=datetime(1970, 1, 1, tzinfo=UTC), host=2)] == ["algo-2"]
    with pytest.raises(InvalidArgumentError, match="since: 'soon' is not a valid time"):
        job.logs(since="soon")
    assert job.state == "running"


def test_C10_a_job_is_resubmitted_under_a_name_of_its_own(api: FakeApi, job: Job) -> None:
    api.script("GET", "/jobs/job1", Scripted(document={**view(state="failed"), "request": REQUEST}))
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view("job2")}))
    again = job.resubmit("job2")
    assert (again.name, again.state, job.name) == ("job2", "pending", "job1")
    assert json.loads(api.received[1].body) == {**REQUEST, "TrainingJobName": "job2"}
    job.resubmit()
    name = json.loads(api.received[-1].body)["TrainingJobName"]
    assert name.startswith("job1-20")
    assert len(name) == len("job1-20261127-093000")
    with pytest.raises(InvalidArgumentError, match="name of the job itself"):
        job.resubmit("job1")


def test_C10_a_job_without_a_request_cannot_be_resubmitted(api: FakeApi, job: Job) -> None:
    api.script("GET", "/jobs/job1", Scripted(document=view()))
    with pytest.raises(InvalidArgumentError, match="has no request of job1"):
        job.resubmit()


def test_C10_the_package_and_a_handle_show_what_there_is() -> None:
    assert {"job", "jobs", "submit"} <= set(dir(trainmaster_client)) & set(trainmaster_client.__all__)
    assert all(callable(getattr(trainmaster_client, name)) for name in trainmaster_client.__all__)
    actions = {"cancel", "hold", "release", "priority", "logs", "why", "resubmit", "wait", "refresh"}
    assert actions <= set(dir(Job))
