"""L4: jobs of the queue through aiobotocore and aioboto3, in a process whose every session queues."""

import asyncio
import gc
import json
from collections.abc import Callable, Coroutine
from typing import Any

import aioboto3
import boto3
import pytest
from aiobotocore.client import AioBaseClient
from aiobotocore.session import get_session
from botocore.exceptions import ClientError, EndpointConnectionError
from trainmaster_client.bypasses import RoundTheQueueWarning
from trainmaster_client.hook import install, uninstall

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    ARN,
    REQUEST,
    SECRET_KEY,
    FakeApi,
    Scripted,
    history,
    problem,
    view,
)

Client = Callable[[], Any]


def of_aiobotocore() -> Any:
    return get_session().create_client("sagemaker")


def of_aioboto3() -> Any:
    return aioboto3.Session().client("sagemaker")


def of_keys_of_its_own() -> Any:
    return get_session().create_client(
        "sagemaker", aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY
    )


each_kind = pytest.mark.parametrize("made", [of_aiobotocore, of_aioboto3, of_keys_of_its_own])


def accept(api: FakeApi) -> None:
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))


def known(api: FakeApi, **fields: Any) -> None:
    api.script("GET", "/jobs/job1", Scripted(document={**view(**fields), "request": REQUEST}))


def within(made: Client, use: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    """What the use of a client answers, on a loop of its own."""

    async def run() -> Any:
        async with made() as client:
            return await use(client)

    return asyncio.run(run())


def create(client: Any) -> Coroutine[Any, Any, Any]:
    found: Coroutine[Any, Any, Any] = client.create_training_job(**REQUEST)
    return found


def describe(client: Any) -> Coroutine[Any, Any, Any]:
    found: Coroutine[Any, Any, Any] = client.describe_training_job(TrainingJobName="job1")
    return found


@each_kind
def test_a_client_made_after_install_queues(made: Client, api: FakeApi) -> None:
    accept(api)
    install(api_url=api.url)
    assert within(made, create)["TrainingJobArn"] == ARN
    assert [json.loads(one.body) for one in api.received] == [REQUEST]


@each_kind
def test_a_client_made_before_install_queues(made: Client, api: FakeApi) -> None:
    accept(api)

    async def use(client: Any) -> Any:
        install(api_url=api.url)
        install(api_url=api.url)
        return await create(client)

    assert within(made, use)["TrainingJobArn"] == ARN
    assert api.calls() == ["POST /add-job"]


@each_kind
def test_describe_of_a_waiting_job_is_pending(made: Client, api: FakeApi) -> None:
    known(api, history=history(("pending", 0, "")))
    install(api_url=api.url)
    answer = within(made, describe)
    assert (answer["TrainingJobStatus"], answer["SecondaryStatus"]) == ("InProgress", "Pending")
    assert answer["TrainingJobArn"] == ARN


def test_describe_of_a_preempted_job_is_pending_though_sagemaker_stopped_its_attempt(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = {
        "attempt": 0,
        "training_job_name": "job1",
        "training_job_arn": ARN,
        "ended_at": "2026-11-21T02:00:00Z",
    }
    steps = history(("pending", 0, ""), ("preempted", 60, "for job2"))
    known(api, state="preempted", attempts=[attempt], history=steps)
    stopped = {
        "TrainingJobName": "job1",
        "TrainingJobArn": ARN,
        "TrainingJobStatus": "Stopped",
        "SecondaryStatus": "Stopped",
        "ResourceConfig": REQUEST["ResourceConfig"],
        "StoppingCondition": REQUEST["StoppingCondition"],
    }
    asked: list[tuple[str, str]] = []

    class Plain:
        def describe_training_job(self, *, TrainingJobName: str) -> dict[str, Any]:  # noqa: N803  boto3's
            asked.append((TrainingJobName, ""))
            return stopped

    monkeypatch.setattr("trainmaster_client.hooks.botocore_events.PlainClients.of", lambda *_: Plain())
    install(api_url=api.url)
    answer = within(of_aiobotocore, describe)
    assert (answer["TrainingJobStatus"], answer["SecondaryStatus"]) == ("InProgress", "Pending")
    assert asked == [("job1", "")]


def test_a_name_that_the_queue_does_not_know_goes_to_sagemaker(api: FakeApi) -> None:
    install(api_url=api.url)
    with pytest.raises(EndpointConnectionError):
        within(of_aiobotocore, describe)
    assert api.calls() == ["GET /jobs/job1"]


def test_a_refusal_is_the_clients_own_error(api: FakeApi) -> None:
    api.script("POST", "/add-job", problem(409, "Conflict", "another request has this name"))
    install(api_url=api.url)

    async def use(client: Any) -> Any:
        with pytest.raises(client.exceptions.ResourceInUse) as caught:
            await create(client)
        return caught.value

    assert isinstance(within(of_aiobotocore, use), ClientError)


def test_twenty_coroutines_share_the_loop_while_the_queue_is_asked(api: FakeApi) -> None:
    known(api)
    install(api_url=api.url)

    async def use(client: Any) -> Any:
        return await asyncio.gather(*(describe(client) for _ in range(20)))

    answers = within(of_aioboto3, use)
    assert {one["SecondaryStatus"] for one in answers} == {"Pending"}


def test_a_client_that_could_not_be_found_warns_before_its_job_leaves(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(client: Any) -> None:
        monkeypatch.setattr(gc, "get_objects", list)
        install(api_url=api.url)
        with (
            pytest.warns(RoundTheQueueWarning, match="job1 bypasses"),
            pytest.raises(EndpointConnectionError),
        ):
            await create(client)

    within(of_aiobotocore, use)
    assert api.calls() == []


def test_uninstalled_aiobotocore_is_as_it_was(api: FakeApi) -> None:
    send = AioBaseClient.__dict__["_make_request"]
    install(api_url=api.url)
    assert AioBaseClient.__dict__["_make_request"] is not send
    uninstall()
    assert AioBaseClient.__dict__["_make_request"] is send
    with pytest.raises(EndpointConnectionError):
        within(of_aiobotocore, create)


def test_sync_sessions_queue_beside_them_with_the_oldest_boto3_that_the_client_is_for(api: FakeApi) -> None:
    assert boto3.__version__.startswith("1.40.")
    accept(api)
    install(api_url=api.url)
    assert boto3.client("sagemaker").create_training_job(**REQUEST)["TrainingJobArn"] == ARN


@each_kind
def test_a_submission_has_a_key_and_a_name_that_ended_is_in_use(made: Client, api: FakeApi) -> None:
    accept(api)
    install(api_url=api.url)
    within(made, create)
    within(made, create)
    keys = [one.headers["idempotency-key"] for one in api.received]
    assert len(set(keys)) == 2
    ended = "a job of this name completed on 26 Nov 02:10 UTC: choose another name"
    api.script("POST", "/add-job", problem(409, "Name taken", ended))
    with pytest.raises(ClientError, match=ended) as refused:
        within(made, create)
    assert refused.value.response["Error"]["Code"] == "ResourceInUse"


def test_a_lost_answer_is_repeated_with_the_key_of_its_call(api: FakeApi) -> None:
    lost = Scripted(status=504, document={"message": "Endpoint request timed out"})
    api.script("POST", "/add-job", lost, Scripted(status=201, document={"job": view(), "warnings": []}))
    install(api_url=api.url)
    assert within(of_aiobotocore, create)["TrainingJobArn"] == ARN
    assert len({one.headers["idempotency-key"] for one in api.received}) == 1
    assert len(api.received) == 2


@each_kind
def test_C18_a_list_has_the_jobs_that_wait(
    made: Client, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(api)
    api.script("GET", "/jobs", Scripted(document={"jobs": [view()], "next_token": None}))
    monkeypatch.setattr(
        "trainmaster_client.hooks.training_job_lists.TrainingJobLists._listed",
        lambda *_: {"TrainingJobSummaries": []},
    )
    install(api_url=api.url)

    async def names(client: Any) -> list[str]:
        pages = client.get_paginator("list_training_jobs").paginate(NameContains="job")
        return [one["TrainingJobName"] async for page in pages for one in page["TrainingJobSummaries"]]

    assert within(made, names) == ["job1"]


@pytest.mark.parametrize("made", [of_aiobotocore, of_aioboto3])
def test_expired_credentials_are_said_as_such(
    made: Client, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.refusal = Scripted(
        status=403,
        document={"message": "The security token included in the request is expired"},
        headers={"content-type": "application/json", "x-amzn-ErrorType": "ExpiredTokenException"},
    )
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ASIAOLD")
    install(api_url=api.url)
    with pytest.raises(ClientError, match="To log in again") as refused:
        within(made, describe)
    assert refused.value.response["Error"]["Code"] == "ExpiredTokenException"
