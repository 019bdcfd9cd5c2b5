"""The API client against a server: what goes over the wire, what is tried again, what becomes which error."""

import json
import re
import socket
from collections.abc import Callable
from dataclasses import replace

import boto3
import pytest
from trainmaster_client import errors
from trainmaster_client.api import ApiClient
from trainmaster_client.cli.exit_codes import ExitCode, exit_code
from trainmaster_client.cli.silences import is_passing
from trainmaster_client.http.transport import ATTEMPTS

from tests.integration.client.fake_api import FakeApi, Scripted, problem, view

REQUEST = {"TrainingJobName": "job1", "Tags": [{"Key": "note", "Value": "Grüße \U0001f600"}]}


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def client(api: FakeApi, boto_session: boto3.Session, pauses: list[float]) -> ApiClient:
    return ApiClient(api.url, boto_session, pause=pauses.append)


def test_a_job_is_sent_exactly_as_given_and_signed(client: ApiClient, api: FakeApi) -> None:
    answer = {"job": view(), "warnings": []}
    api.script("POST", "/add-job", Scripted(status=201, document=answer))
    assert client.add_job(REQUEST) == answer
    assert json.loads(api.received[0].body) == REQUEST
    assert api.received[0].headers["content-type"] == "application/json"


def test_a_body_does_not_wait_until_its_headers_are_acknowledged(
    client: ApiClient, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[int] = []
    connect = socket.socket.connect

    def noting(one: socket.socket, address: tuple[str, int]) -> None:
        connected.append(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        connect(one, address)

    monkeypatch.setattr(socket.socket, "connect", noting)
    api.script("POST", "/add-job", Scripted(status=201, document={"job": {}}))
    client.add_job(REQUEST)
    assert connected == [1]


def test_filters_arrive_as_written_whatever_characters_they_hold(client: ApiClient, api: FakeApi) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": [], "next_token": None}))
    client.jobs(team="a b/ü+&=~", state=None, next_token="x==")
    assert api.received[0].query == {"team": ["a b/ü+&=~"], "next_token": ["x=="]}


def test_a_forked_process_has_a_connection_of_its_own(
    client: ApiClient, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.script("GET", "/jobs/job1", Scripted(document=view()))
    for process in (100, 100, 101, 101):
        monkeypatch.setattr("os.getpid", lambda process=process: process)
        client.job("job1")
    first, second, forked, again = (one.port for one in api.received)
    assert (first, forked) == (second, again)
    assert first != forked


def test_a_session_token_is_signed_and_sent(api: FakeApi, aws_environment: None) -> None:
    session = boto3.Session("AKIDEXAMPLE", "wJalrXUtnFEMI", "the-token", region_name="eu-west-1")
    api.script("GET", "/policy", Scripted(document={"revision": 1}))
    assert ApiClient(api.url + "/", session).policy() == {"revision": 1}
    assert api.received[0].headers["x-amz-security-token"] == "the-token"


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda client: client.policy(), id="GET is repeated"),
        pytest.param(lambda client: client.policy(revision=3), id="GET with a parameter too"),
        pytest.param(lambda client: client.add_job(REQUEST), id="add-job is repeated, it is idempotent"),
        pytest.param(lambda client: client.try_policy({}), id="a dry run is repeated, it changes nothing"),
        pytest.param(lambda client: client.try_job(REQUEST), id="so is a dry run of a job"),
        pytest.param(
            lambda client: client.change("job1", held=True), id="a change is repeated, twice is once"
        ),
        pytest.param(lambda client: client.set_paused(True), id="a pause is repeated, twice is once"),
    ],
)
def test_a_failing_server_is_asked_again(
    call: Callable[[ApiClient], object], client: ApiClient, api: FakeApi, pauses: list[float]
) -> None:
    busy = problem(503, "Try again", "DynamoDB is throttled")
    api.script("GET", "/policy", busy, busy, Scripted(document={"job": {}}))
    api.script("POST", "/add-job", busy, busy, Scripted(document={"job": {}}))
    api.script("PUT", "/policy", busy, busy, Scripted(document={"job": {}}))
    api.script("PATCH", "/jobs/job1", busy, busy, Scripted(document={"job": {}}))
    api.script("PUT", "/policy/paused", busy, busy, Scripted(document={"job": {}}))
    assert call(client) == {"job": {}}
    assert len(api.received) == 3
    assert len(pauses) == 2
    assert 0 <= pauses[0] <= 0.5
    assert 0 <= pauses[1] <= 1.0


def test_after_the_last_try_the_servers_own_words_are_raised(client: ApiClient, api: FakeApi) -> None:
    api.script("GET", "/policy", problem(503, "Try again", "DynamoDB is throttled"))
    with pytest.raises(errors.ApiFailedError, match="DynamoDB is throttled"):
        client.policy()
    assert len(api.received) == ATTEMPTS


@pytest.mark.parametrize(
    ("status", "title"), [(503, "Repair needed"), (500, "Row not understood")], ids=["team", "row"]
)
def test_O18_what_only_an_admin_can_repair_is_asked_once(
    status: int, title: str, client: ApiClient, api: FakeApi
) -> None:
    broken = problem(status, title, "trying again does not help")
    kind = f"urn:trainmaster:problem:{title.lower().replace(' ', '-')}"
    api.script("POST", "/add-job", replace(broken, document={**(broken.document or {}), "type": kind}))
    with pytest.raises(errors.RepairNeededError, match="trying again does not help") as caught:
        client.add_job(REQUEST)
    assert len(api.received) == 1
    assert exit_code(caught.value) is ExitCode.REFUSED
    assert not is_passing(caught.value), "no watch waits for it"


@pytest.mark.parametrize(
    ("method", "path", "call"),
    [
        pytest.param("DELETE", "/jobs/job1", lambda client: client.cancel("job1"), id="DELETE"),
        pytest.param("PUT", "/policy", lambda client: client.put_policy({}), id="PUT"),
    ],
)
def test_what_is_not_safe_to_repeat_is_sent_once(
    method: str, path: str, call: Callable[[ApiClient], object], client: ApiClient, api: FakeApi
) -> None:
    api.script(method, path, problem(500, "Internal error", "boom"))
    with pytest.raises(errors.ApiFailedError):
        call(client)
    assert len(api.received) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, errors.InvalidRequestError),
        (403, errors.ForbiddenError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (413, errors.InvalidRequestError),
        (418, errors.RefusedError),
        (422, errors.PolicyViolationError),
        (429, errors.TooManyRequestsError),
    ],
)
def test_a_refusal_is_its_own_error_and_never_repeated(
    status: int, error: type[errors.RefusedError], client: ApiClient, api: FakeApi
) -> None:
    api.script("POST", "/add-job", problem(status, "No", "because"))
    with pytest.raises(error) as caught:
        client.add_job(REQUEST)
    assert type(caught.value) is error
    assert caught.value.problem.status == status
    assert len(api.received) == 1


def test_a_refusal_lists_every_field_what_is_wrong_and_what_to_do(client: ApiClient, api: FakeApi) -> None:
    count = {
        "field": "ResourceConfig.InstanceCount",
        "message": "asks for 9, the pool has 2",
        "hint": "ask for at most 2",
        "rule": "never-fits",
    }
    tags = {"field": "Tags[priority]", "message": "is above your team's 500", "hint": "lower it"}
    api.script("POST", "/add-job", problem(422, "Not allowed by the policy", "2 problems", count, tags))
    with pytest.raises(errors.PolicyViolationError) as caught:
        client.add_job(REQUEST)
    assert str(caught.value).splitlines() == [
        "Not allowed by the policy (422): 2 problems",
        "  ResourceConfig.InstanceCount: asks for 9, the pool has 2 [never-fits]; ask for at most 2",
        "  Tags[priority]: is above your team's 500; lower it",
    ]


def test_a_refusal_for_one_reason_says_it_once(client: ApiClient, api: FakeApi) -> None:
    error = {"field": "TrainingJobName", "message": "is in use by a job", "hint": "choose another"}
    api.script("POST", "/add-job", problem(409, "Conflict", "the name is in use by a job", error))
    with pytest.raises(errors.ConflictError) as caught:
        client.add_job(REQUEST)
    assert str(caught.value) == "Conflict (409): TrainingJobName: is in use by a job; choose another"


def test_one_field_of_another_reason_is_said_beside_it(client: ApiClient, api: FakeApi) -> None:
    error = {"field": "RoleArn", "message": "is missing"}
    api.script("POST", "/add-job", problem(400, "Invalid request", "not a request", error))
    with pytest.raises(errors.InvalidRequestError) as caught:
        client.add_job(REQUEST)
    assert str(caught.value) == "Invalid request (400): not a request\n  RoleArn: is missing"


def test_too_many_requests_says_when_to_try_again(client: ApiClient, api: FakeApi) -> None:
    answer = problem(429, "Too many requests", "100 submissions a minute")
    api.script(
        "POST", "/add-job", Scripted(status=429, document=answer.document, headers={"Retry-After": "77"})
    )
    with pytest.raises(errors.TooManyRequestsError, match="; try again in 77 s"):
        client.add_job(REQUEST)


def test_the_gateways_own_refusal_is_shown_in_its_words(api: FakeApi, aws_environment: None) -> None:
    stranger = boto3.Session("AKIDEXAMPLE", "wrong", region_name="eu-west-1")
    with pytest.raises(errors.ForbiddenError, match="signature does not match"):
        ApiClient(api.url, stranger).policy()
    assert api.received == []


def test_an_escape_sequence_in_an_answer_is_disarmed(client: ApiClient, api: FakeApi) -> None:
    api.script("GET", "/policy", problem(403, "For\x1bbidden", "no \x1b[2Jteam\r\n"))
    with pytest.raises(errors.ForbiddenError, match=r"^For bidden \(403\): no  \[2Jteam  $"):
        client.policy()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Scripted(raw=b"<html>sign in</html>", headers={"content-type": "text/html"}), id="html"),
        pytest.param(Scripted(raw=b"[1]"), id="a list"),
        pytest.param(Scripted(raw=b""), id="nothing"),
        pytest.param(
            Scripted(status=302, raw=b"", headers={"location": "https://elsewhere/"}), id="redirect"
        ),
        pytest.param(Scripted(status=404, raw=b"<h1>nginx</h1>"), id="another server's 404"),
    ],
)
def test_what_is_not_the_api_is_called_so_and_named(
    answer: Scripted, client: ApiClient, api: FakeApi
) -> None:
    api.script("GET", "/policy", answer)
    with pytest.raises(errors.UnexpectedAnswerError, match=re.escape(api.url)):
        client.policy()


def test_no_server_is_an_error_that_names_the_url(boto_session: boto3.Session, pauses: list[float]) -> None:
    client = ApiClient("http://127.0.0.1:1/prod", boto_session, pause=pauses.append)
    with pytest.raises(errors.ApiUnreachableError, match=r"http://127\.0\.0\.1:1/prod"):
        client.add_job(REQUEST)
    assert len(pauses) == ATTEMPTS - 1


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a?b", "-a", "a" * 64, "job1\n", "ü", "a%2Fb"])
def test_what_is_no_job_name_never_becomes_a_path(name: str, client: ApiClient, api: FakeApi) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="not a job name"):
        client.cancel(name)
    assert api.received == []


def test_without_credentials_nothing_is_sent(
    api: FakeApi, aws_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(errors.CredentialsError, match="no AWS credentials found"):
        ApiClient(api.url, boto3.Session()).policy()
    assert api.received == []


def test_pools_and_usage_are_read_to_the_last_page(client: ApiClient, api: FakeApi) -> None:
    first, last = ({"name": name} for name in ("p5", "g5"))
    api.script(
        "GET",
        "/pools",
        Scripted(document={"pools": [first], "set_aside": 0, "next_token": "more"}),
        Scripted(document={"pools": [last], "set_aside": 1, "next_token": None}),
    )
    assert client.pools() == {"pools": [first, last], "set_aside": 1, "next_token": None}
    assert [call.query for call in api.received] == [{}, {"next_token": ["more"]}]
    api.script(
        "GET",
        "/usage",
        Scripted(document={"jobs": [first], "preemptions": [], "total": 2, "next_token": "more"}),
        Scripted(document={"jobs": [last], "preemptions": [1], "total": 2, "next_token": None}),
    )
    whole = client.usage(team="red")
    assert (whole["jobs"], whole["preemptions"], whole["total"]) == ([first, last], [1], 2)
    assert api.received[-1].query == {"team": ["red"], "next_token": ["more"]}


def test_an_older_api_has_all_pools_in_one_answer(client: ApiClient, api: FakeApi) -> None:
    api.script("GET", "/pools", Scripted(document={"pools": [], "set_aside": 0}))
    assert client.pools() == {"pools": [], "set_aside": 0}
