"""C18: ListTrainingJobs through the hooks: the jobs that DescribeTrainingJob describes, as at the gateway."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from trainmaster_client.hook import install
from trainmaster_client.hooks import training_job_lists
from trainmaster_client.hooks.training_job_calls import hooks_of

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    REQUEST,
    SECRET_KEY,
    FakeApi,
    Received,
    Scripted,
    problem,
    view,
)
from tests.integration.client.fake_aws import FakeAws
from tests.integration.client.gateway_world import GatewayWorld, running_gateway

ARN = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Queue:
    """Jobs as the API lists and describes them, two on a page."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.listed = 0

    def has(self, name: str, state: str, minute: int, **fields: Any) -> None:
        at = f"2026-11-21T12:{minute:02}:00Z"
        self.jobs[name] = view(name, state=state, submitted_at=at, **fields)

    def answer(self, received: Received) -> Scripted:
        if received.path == "/add-job":
            self.has("job1", "pending", 59)
            return Scripted(status=201, document={"job": self.jobs["job1"], "warnings": []})
        if received.path == "/jobs":
            self.listed += 1
            unfinished = [one for one in self.jobs.values() if one["state"] != "completed"]
            begin = int(received.query.get("next_token", ["0"])[0])
            more = str(begin + 2) if begin + 2 < len(unfinished) else None
            return Scripted(document={"jobs": unfinished[begin : begin + 2], "next_token": more})
        found = self.jobs.get(received.path.removeprefix("/jobs/"))
        if found is None:
            return problem(404, "Not found", "no such job")
        if received.method == "DELETE":
            found["state"] = "stopping"
        return Scripted(document={**found, "request": REQUEST})


class Account:
    """What SageMaker lists: pages, orders and filters as far as the tests need them."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []

    def has(self, name: str, status: str, minute: int) -> None:
        at = NOON.timestamp() + 60 * minute
        times = {"CreationTime": at, "LastModifiedTime": at}
        self.entries.append(
            {"TrainingJobName": name, "TrainingJobArn": ARN + name, "TrainingJobStatus": status, **times}
        )

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(body)
        found = [
            one
            for one in self.entries
            if body.get("NameContains", "") in one["TrainingJobName"]
            and body.get("StatusEquals") in {None, one["TrainingJobStatus"]}
            and one["CreationTime"] > body.get("CreationTimeAfter", 0)
        ]
        is_descending = body.get("SortOrder", "Descending") == "Descending"
        key = "TrainingJobName" if body.get("SortBy") == "Name" else "CreationTime"
        found.sort(key=lambda one: one[key], reverse=is_descending)
        begin, size = int(body.get("NextToken", "0")), body.get("MaxResults", 10)
        more = {"NextToken": str(begin + size)} if begin + size < len(found) else {}
        return {"TrainingJobSummaries": found[begin : begin + size], **more}


@pytest.fixture
def queue() -> Queue:
    """Two wait, one came back after its first attempt was stopped, one runs."""
    queue = Queue()
    queue.has("waits-1", "pending", 1)
    queue.has("waits-2", "held", 3)
    queue.has("came-back", "preempted", 5)
    queue.has("runs", "running", 7, training_job_name="runs", training_job_arn=ARN + "runs")
    return queue


@pytest.fixture
def account() -> Account:
    account = Account()
    account.has("of-nobody", "Completed", 0)
    account.has("of-nobody-2", "Stopped", 4)
    account.has("came-back", "Stopped", 5)
    account.has("runs", "InProgress", 7)
    return account


@pytest.fixture
def hooked(queue: Queue, account: Account, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(api, "answer", queue.answer)
    session, aws = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION), FakeAws()
    aws.attach(session)
    aws.answers["ListTrainingJobs"] = account.answer
    install(session, api_url=api.url)
    return session.client("sagemaker")


@pytest.fixture
def gateway(queue: Queue, account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[GatewayWorld]:
    with running_gateway() as world:
        monkeypatch.setattr(world.api, "answer", queue.answer)
        world.sagemaker.answers["ListTrainingJobs"] = account.answer
        yield world


@pytest.fixture(params=["hooks", "gateway"])
def client(request: pytest.FixtureRequest) -> Any:
    """One implementation behind both doors."""
    if request.param == "hooks":
        return request.getfixturevalue("hooked")
    return request.getfixturevalue("gateway").client()


def names(client: Any, **asked: Any) -> list[str]:
    pages = client.get_paginator("list_training_jobs").paginate(**asked)
    return [one["TrainingJobName"] for page in pages for one in page["TrainingJobSummaries"]]


NEWEST_FIRST = ["runs", "came-back", "of-nobody-2", "waits-2", "waits-1", "of-nobody"]


def test_C18_a_list_has_each_job_once_as_it_is_described(client: Any) -> None:
    found = client.list_training_jobs()["TrainingJobSummaries"]
    assert [one["TrainingJobName"] for one in found] == NEWEST_FIRST
    statuses = {one["TrainingJobName"]: one["TrainingJobStatus"] for one in found}
    assert statuses == {
        "runs": "InProgress",
        "came-back": "InProgress",
        "of-nobody-2": "Stopped",
        "waits-2": "InProgress",
        "waits-1": "InProgress",
        "of-nobody": "Completed",
    }
    waits = next(one for one in found if one["TrainingJobName"] == "waits-1")
    assert waits["CreationTime"] == datetime(2026, 11, 21, 12, 1, tzinfo=UTC)
    assert waits["TrainingJobArn"] == f"{ARN}waits-1"
    described = client.describe_training_job(TrainingJobName="waits-1")
    assert {key: described[key] for key in ("TrainingJobArn", "TrainingJobStatus", "CreationTime")} == {
        key: waits[key] for key in ("TrainingJobArn", "TrainingJobStatus", "CreationTime")
    }


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("order", ["Ascending", "Descending"])
def test_C18_pages_of_any_size_have_the_same_list(client: Any, size: int, order: str) -> None:
    found = names(client, SortBy="CreationTime", SortOrder=order, PaginationConfig={"PageSize": size})
    assert found == (NEWEST_FIRST if order == "Descending" else NEWEST_FIRST[::-1])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"NameContains": "waits"}, ["waits-2", "waits-1"]),
        ({"StatusEquals": "InProgress"}, ["runs", "came-back", "waits-2", "waits-1"]),
        ({"StatusEquals": "Stopped"}, ["of-nobody-2"]),
        ({"StatusEquals": "Completed"}, ["of-nobody"]),
        ({"CreationTimeAfter": datetime(2026, 11, 21, 12, 2, tzinfo=UTC)}, NEWEST_FIRST[:4]),
        (
            {
                "LastModifiedTimeBefore": datetime(2026, 11, 21, 12, 1, 30, tzinfo=UTC),
                "NameContains": "waits",
            },
            ["waits-1"],
        ),
        ({"SortBy": "Name", "SortOrder": "Ascending"}, sorted(NEWEST_FIRST)),
        ({"MaxResults": 2, "NameContains": "w"}, ["waits-2", "waits-1"]),
    ],
)
def test_C18_filters_and_orders_are_those_of_sagemaker(
    client: Any, asked: dict[str, Any], expected: list[str]
) -> None:
    found = client.list_training_jobs(**{"SortOrder": "Descending"} | asked)["TrainingJobSummaries"]
    assert [one["TrainingJobName"] for one in found] == expected


def test_C18_what_was_just_submitted_or_stopped_is_in_the_next_list(client: Any) -> None:
    assert "job1" not in names(client)
    client.create_training_job(**REQUEST)
    assert "job1" in names(client)
    client.stop_training_job(TrainingJobName="job1")
    found = client.list_training_jobs(NameContains="job1")["TrainingJobSummaries"]
    assert [one["TrainingJobStatus"] for one in found] == ["Stopping"]


def test_C18_what_the_sdks_own_session_submitted_is_in_the_next_list(
    queue: Queue, account: Account, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "answer", queue.answer)
    session, aws = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION), FakeAws()
    aws.attach(session)
    aws.answers["ListTrainingJobs"] = account.answer
    hooks = hooks_of(session, api_url=api.url)
    client = session.client("sagemaker")
    hooks.register(client.meta.events)
    assert "job1" not in names(client)
    hooks.submit(REQUEST)
    assert "job1" in names(client)


def test_C18_a_reader_of_many_pages_asks_the_queue_once(
    hooked: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_job_lists, "LISTED_SECONDS", 1000.0)
    names(hooked, PaginationConfig={"PageSize": 1})
    assert queue.listed == 2, "four jobs on pages of two"


def test_a_job_that_was_stopped_on_its_way_is_listed_as_it_ended(client: Any, queue: Queue) -> None:
    queue.has("came-back", "completed", 5)
    found = client.list_training_jobs(NameContains="came-back")["TrainingJobSummaries"]
    assert [one["TrainingJobStatus"] for one in found] == ["Completed"]


@pytest.mark.parametrize("asked", [{"WarmPoolStatusEquals": "Available"}])
def test_filters_that_no_waiting_job_passes_are_sagemakers_alone(
    client: Any, account: Account, asked: dict[str, Any]
) -> None:
    assert names(client, **asked) == ["runs", "came-back", "of-nobody-2", "of-nobody"]
    assert account.asked == [asked]


def test_who_is_of_no_team_has_sagemakers_list(
    hooked: Any, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "answer", lambda _: problem(403, "Forbidden", "no team lists you"))
    assert names(hooked) == ["runs", "came-back", "of-nobody-2", "of-nobody"]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (problem(503, "Try again", "later"), "InternalFailure"),
        (problem(429, "Too many requests", "reads"), "ThrottlingException"),
    ],
)
def test_a_list_that_the_queue_does_not_give_hides_no_job_that_waits(
    said: Scripted, code: str, hooked: Any, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    monkeypatch.setattr(api, "answer", lambda _: said)
    with pytest.raises(ClientError) as refused:
        hooked.list_training_jobs()
    assert refused.value.response["Error"]["Code"] == code


def test_a_token_that_is_none_is_refused(client: Any) -> None:
    with pytest.raises(ClientError) as refused:
        client.list_training_jobs(NextToken="?")
    assert refused.value.response["Error"]["Code"] == "ValidationException"


def test_the_gateway_passes_on_a_filter_that_it_does_not_know(
    gateway: GatewayWorld, account: Account
) -> None:
    client = gateway.client()
    shape = client.meta.service_model.operation_model("ListTrainingJobs").input_shape
    assert "Newer" not in shape.members
    client.meta.events.register(
        "before-call.sagemaker.ListTrainingJobs",
        lambda params, **_: params.update(body=b'{"Newer": "x"}'),
        unique_id="newer",
    )
    assert len(client.list_training_jobs()["TrainingJobSummaries"]) == 4
    assert account.asked == [{"Newer": "x"}]


# ---- UpdateTrainingJob, which both doors answer, too


def test_a_job_that_waits_has_nothing_to_update(client: Any) -> None:
    with pytest.raises(ClientError, match="waits in the queue") as refused:
        client.update_training_job(TrainingJobName="waits-1", ProfilerConfig={"DisableProfiler": True})
    assert refused.value.response["Error"]["Code"] == "ValidationException"


def test_a_job_that_runs_is_updated_under_the_name_of_its_attempt(
    hooked: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.has("came-back", "running", 5, training_job_name="came-back-r1")
    sent: list[Any] = []
    hooked.meta.events.register(
        "before-send.sagemaker.UpdateTrainingJob", lambda request, **_: sent.append(request)
    )
    with pytest.raises(AssertionError):  # nobody scripted an answer
        hooked.update_training_job(TrainingJobName="came-back", ProfilerConfig={"DisableProfiler": True})
    assert b'"TrainingJobName": "came-back-r1"' in sent[0].body
