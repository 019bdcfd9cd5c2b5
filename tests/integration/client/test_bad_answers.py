"""Everything that can be between a user and the API: one message, the right exit code, no traceback."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from types import ModuleType
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from trainmaster_client import errors
from trainmaster_client.api import ApiClient
from trainmaster_client.cli import main
from trainmaster_client.hook import install

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, FakeApi, Scripted, problem
from tests.integration.client.sdk_world import ROLE, World, estimator, running_world


def gateway(kind: str, message: str, status: int = 403, **headers: str) -> Scripted:
    """As API Gateway answers before it asks the function."""
    return Scripted(
        status=status,
        document={"message": message},
        headers={"content-type": "application/json", "x-amzn-ErrorType": kind, **headers},
    )


INVOKE = "User: arn:aws:iam::1:user/a is not authorized to perform: execute-api:Invoke on resource: r"
EXPIRED = "The security token included in the request is expired"
MISMATCH = "The request signature we calculated does not match the signature you provided."

ANSWERS = [
    pytest.param(
        gateway("ExpiredTokenException", EXPIRED), 1, "The AWS credentials have expired.", id="expired token"
    ),
    pytest.param(
        gateway("UnrecognizedClientException", "The security token included in the request is invalid."),
        1,
        "AWS does not know this access key",
        id="unknown key",
    ),
    pytest.param(
        gateway("InvalidSignatureException", MISMATCH),
        1,
        "Run trainmaster doctor",
        id="wrong secret",
    ),
    pytest.param(
        replace(gateway("InvalidSignatureException", "Signature expired"), minutes_ahead=-20),
        1,
        "This machine's clock is 20 minutes ahead of the API's.",
        id="clock ahead",
    ),
    pytest.param(
        replace(gateway("InvalidSignatureException", "Signature not yet current"), minutes_ahead=20),
        1,
        "This machine's clock is 20 minutes behind the API's.",
        id="clock behind",
    ),
    pytest.param(
        gateway("AccessDeniedException", f"{INVOKE} with an explicit deny"), 1, "VpcEndpointIds", id="denied"
    ),
    pytest.param(gateway("AccessDeniedException", INVOKE), 1, "CallerPrincipalArns", id="not a caller"),
    pytest.param(
        gateway("MissingAuthenticationTokenException", "Missing Authentication Token"),
        3,
        "its end must be the stage",
        id="wrong stage",
    ),
    pytest.param(
        gateway("ForbiddenException", "Forbidden"), 3, "the endpoint must be in", id="wrong endpoint"
    ),
    pytest.param(
        problem(403, "Forbidden", "no team of the policy lists this caller"),
        1,
        "Forbidden (403): no team of the policy lists this caller",
        id="no team",
    ),
    pytest.param(problem(404, "Not found", "there is no job job1"), 4, "there is no job job1", id="404"),
    pytest.param(problem(409, "Conflict", "job1 has ended: failed"), 1, "job1 has ended: failed", id="409"),
    pytest.param(gateway("LimitExceededException", "Too Many Requests", 429), 1, "Too Many", id="429"),
    pytest.param(gateway("X", "Endpoint request timed out", 504), 3, "Endpoint request timed out", id="504"),
    pytest.param(
        Scripted(status=302, raw=b"", headers={"location": "https://sign.in/\x1b[2J"}),
        3,
        "a redirect to https://sign.in/",
        id="redirect",
    ),
    pytest.param(
        Scripted(raw=b"<html>sign in</html>", headers={"content-type": "text/html"}),
        3,
        "status 200 with text/html, 20 bytes",
        id="web page",
    ),
]


@pytest.mark.parametrize(("answer", "code", "says"), ANSWERS)
def test_the_command_line_says_it_once_and_ends_with_its_code(
    answer: Scripted, code: int, says: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/jobs/job1", answer)
    ran = trainmaster("show", "job1")
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert ran.err.startswith("trainmaster: ")
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) <= 3


def test_a_short_wait_after_too_many_requests_is_waited_for(
    api: FakeApi, boto_session: boto3.Session
) -> None:
    busy = problem(429, "Too many requests", "100 a minute")
    soon = Scripted(status=429, document=busy.document, headers={"Retry-After": "3"})
    api.script("POST", "/add-job", soon, soon, Scripted(document={"job": {}}))
    pauses: list[float] = []
    client = ApiClient(api.url, boto_session, pause=pauses.append)
    assert client.add_job({}) == {"job": {}}
    assert pauses == [3.0, 3.0]


@pytest.mark.parametrize("retry_after", ["61", "3600", "-1", "soon", ""])
def test_a_long_one_is_said_at_once(api: FakeApi, boto_session: boto3.Session, retry_after: str) -> None:
    busy = problem(429, "Too many requests", "100 a minute")
    api.script(
        "POST",
        "/add-job",
        Scripted(status=429, document=busy.document, headers={"Retry-After": retry_after}),
    )
    pauses: list[float] = []
    with pytest.raises(errors.TooManyRequestsError):
        ApiClient(api.url, boto_session, pause=pauses.append).add_job({})
    assert pauses == []


def test_a_host_that_no_dns_knows_is_told_at_once(boto_session: boto3.Session) -> None:
    pauses: list[float] = []
    with pytest.raises(
        errors.ApiUnreachableError, match="Compare it with the stack's output ApiUrl"
    ) as caught:
        ApiClient("https://api.invalid/prod", boto_session, pause=pauses.append).pools()
    assert caught.value.trouble == "host-unknown"
    assert pauses == []  # RFC 6761: "invalid" is never in any DNS


@pytest.mark.parametrize(
    ("environment", "url", "trouble"),
    [
        pytest.param({}, "http://127.0.0.1:1/prod", "nothing-listens", id="nothing listens"),
        pytest.param(
            {"HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1"},
            "http://localhost:2/prod",
            "proxy",
            id="the proxy is gone",
        ),
    ],
)
def test_a_network_that_does_not_get_there_is_told_apart(
    environment: dict[str, str],
    url: str,
    trouble: str,
    boto_session: boto3.Session,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(errors.ApiUnreachableError) as caught:
        ApiClient(url, boto_session, pause=lambda _: None).pools()
    assert caught.value.trouble == trouble
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bundle", [None, "/nonexistent.pem"])
def test_https_to_a_port_without_tls_is_called_so_and_so_is_a_bundle_that_is_not_there(
    bundle: str | None, api: FakeApi, boto_session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bundle:
        monkeypatch.setenv("AWS_CA_BUNDLE", bundle)
    with pytest.raises(errors.ApiUnreachableError, match="AWS_CA_BUNDLE") as caught:
        ApiClient(api.url.replace("http:", "https:"), boto_session, pause=lambda _: None).pools()
    assert caught.value.trouble == "tls"


@contextmanager
def server_that_hangs_up() -> Iterator[int]:
    """Takes a connection and closes it without a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    connection.close()
            except OSError:
                return

        thread = Thread(target=hang_up, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_server_that_hangs_up_is_no_answer(boto_session: boto3.Session) -> None:
    with server_that_hangs_up() as port, pytest.raises(errors.ApiUnreachableError) as caught:
        ApiClient(f"http://127.0.0.1:{port}/prod", boto_session, pause=lambda _: None).pools()
    assert caught.value.trouble == "no-answer"


@pytest.mark.parametrize(
    "name", ["a/b", "%2e%2e", "..", "a" * 2048], ids=["slash", "encoded dots", "dots", "2 kB"]
)
@pytest.mark.parametrize("command", ["show", "cancel", "why"])
def test_what_is_no_job_name_is_one_short_line_and_nothing_is_sent(
    command: str, name: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    ran = trainmaster(command, name)
    assert (ran.code, ran.out, api.received) == (2, "", [])
    assert "not a job name" in ran.err
    assert len(ran.err) < 400


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_world() as running:
        yield running


@pytest.fixture(scope="module")
def sagemaker(world: World) -> Any:
    """boto3's client, with the hook."""
    session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    world.aws.attach(session)
    install(session, api_url=world.api.url)
    return session.client("sagemaker")


REFUSALS = [
    pytest.param(
        gateway("ExpiredTokenException", EXPIRED), "The AWS credentials have expired.", id="expired"
    ),
    pytest.param(
        gateway("InvalidSignatureException", "Signature expired", Date="Sat, 01 Jan 2000 00:00:00 GMT"),
        "ahead of the API's.",
        id="clock",
    ),
    pytest.param(gateway("AccessDeniedException", INVOKE), "CallerPrincipalArns", id="not a caller"),
    pytest.param(problem(409, "Conflict", "job1 is taken: running"), "job1 is taken: running", id="409"),
    pytest.param(Scripted(raw=b"<html>"), "Something else answers there", id="web page"),
]


@pytest.mark.long
@pytest.mark.parametrize(("answer", "says"), REFUSALS)
def test_fit_raises_the_same_sentences(answer: Scripted, says: str, world: World) -> None:
    world.forget()
    world.api.script("POST", "/add-job", answer)
    with pytest.raises(errors.TrainmasterClientError) as caught:
        estimator(world.session).fit(wait=False, job_name="job1")
    assert says in str(caught.value)
    assert "CreateTrainingJob" not in world.aws.operations()


@pytest.mark.parametrize(("answer", "says"), REFUSALS)
def test_and_the_hook_does_as_an_error_of_boto3(
    answer: Scripted, says: str, world: World, sagemaker: Any
) -> None:
    world.forget()
    world.api.script("POST", "/add-job", answer)
    with pytest.raises(ClientError) as caught:
        sagemaker.create_training_job(
            TrainingJobName="job1", RoleArn=ROLE, OutputDataConfig={"S3OutputPath": "s3://bucket/out"}
        )
    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["a/b", "%2e%2e"])
def test_what_is_no_job_name_never_becomes_a_path_of_the_api(name: str, world: World, sagemaker: Any) -> None:
    world.forget()
    world.aws.answers["DescribeTrainingJob"] = lambda _: {"__type": "ValidationException", "message": "no"}
    with pytest.raises(ClientError) as caught:
        sagemaker.describe_training_job(TrainingJobName=name)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert world.api.received == []


class Interrupted(ModuleType):
    """A module whose import takes so long that its user gives up."""

    def __getattr__(self, name: str) -> Any:
        raise KeyboardInterrupt


def test_ctrl_c_while_the_commands_are_imported_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trainmaster_client.cli.app", Interrupted("app"))
    with pytest.raises(SystemExit) as exited:
        main()
    assert exited.value.code == 130
