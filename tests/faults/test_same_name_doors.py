"""O6, O7: the same request again after the end of its job, and its repetition, at every door."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import boto3
import pytest
from botocore.exceptions import ClientError
from trainmaster_client import errors, handles
from trainmaster_client.api import ApiClient
from trainmaster_client.cli import main
from trainmaster_client.gateway.gateway_server import assembled
from trainmaster_client.hook import install

from tests.builders import A
from tests.faults.served_plane import ServedPlane, served
from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY
from tests.integration.client.fake_aws import FakeAws
from tests.integration.messages import request
from tests.integration.world import World

NAME = "nightly"
ENDS = ("completed", "failed", "stopped")
REQUEST = request(NAME)


class RefusedError(Exception):
    """The door's own kind of refusal, and what it says."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@pytest.fixture
def plane(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedPlane]:
    for name in [name for name in os.environ if name.startswith(("AWS_", "TRAINMASTER_"))]:
        monkeypatch.delenv(name)
    for name, value in (
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_CONFIG_FILE", os.devnull),
        ("AWS_SHARED_CREDENTIALS_FILE", os.devnull),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("SAGEMAKER_SUPPRESS_V2_WARNING", "1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    with served(world) as plane:
        monkeypatch.setenv("TRAINMASTER_API_URL", plane.api.url)
        yield plane


@pytest.fixture
def session() -> boto3.Session:
    """AWS refuses what is not scripted: nothing leaves this process."""
    session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    FakeAws().attach(session)
    return session


def by_api(plane: ServedPlane, session: boto3.Session) -> str:
    try:
        return str(ApiClient(plane.api.url, session).add_job(REQUEST)["job"]["state"])
    except errors.RefusedError as error:
        raise RefusedError(type(error).__name__, str(error)) from error


def by_handle(plane: ServedPlane, session: boto3.Session) -> str:
    try:
        return handles.submit(REQUEST, api_url=plane.api.url, boto_session=session).state
    except errors.RefusedError as error:
        raise RefusedError(type(error).__name__, str(error)) from error


def by_hook(plane: ServedPlane, session: boto3.Session) -> str:
    install(session, api_url=plane.api.url)
    client = session.client("sagemaker")
    try:
        client.create_training_job(**REQUEST)
    except ClientError as error:
        raise RefusedError(error.response["Error"]["Code"], error.response["Error"]["Message"]) from error
    return str(plane.world.job(NAME).state)


def by_gateway(plane: ServedPlane, session: boto3.Session, *, invocation: str = "") -> str:
    del session
    headers = {"x-amz-target": "SageMaker.CreateTrainingJob"}
    if invocation:
        headers["amz-sdk-invocation-id"] = invocation
    env = {"TRAINMASTER_API_URL": plane.api.url, "AWS_DEFAULT_REGION": REGION}
    parts = assembled(env, lambda: boto3.Session().get_credentials())
    _, reply = parts.calls.answer(headers, json.dumps(REQUEST).encode())
    assert isinstance(reply.body, bytes)
    if reply.status != 200:
        raise RefusedError(reply.code, json.loads(reply.body)["message"])
    return str(plane.world.job(NAME).state)


def by_sdk(plane: ServedPlane, session: boto3.Session) -> str:
    from trainmaster_client.session import QueueTrainingJobSession  # noqa: PLC0415  takes seconds

    from tests.integration.client.sdk_world import TELEMETRY, estimator  # noqa: PLC0415

    with patch(TELEMETRY):
        own = QueueTrainingJobSession(session, api_url=plane.api.url, poll_seconds=0.001)
        job = estimator(
            own,
            instance_type=A,
            instance_count=1,
            role=REQUEST["RoleArn"],
            image_uri=REQUEST["AlgorithmSpecification"]["TrainingImage"],
            checkpoint_s3_uri="s3://bucket/checkpoints/nightly",
        )
        try:
            job.fit(wait=False, job_name=NAME)
        except errors.RefusedError as error:
            raise RefusedError(type(error).__name__, str(error)) from error
    return str(plane.world.job(NAME).state)


DOORS = {
    "api": (by_api, "ConflictError"),
    "handle": (by_handle, "ConflictError"),
    "boto3 with hooks": (by_hook, "ResourceInUse"),
    "gateway": (by_gateway, "ResourceInUse"),
    "sdk v2": (by_sdk, "ConflictError"),
}
each_door = pytest.mark.parametrize("door", DOORS)


@pytest.fixture
def command(
    plane: ServedPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """``trainmaster submit`` of the request: the exit code and all that it said."""
    file = tmp_path / "request.json"
    file.write_text(json.dumps(REQUEST))

    def run(*options: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["trainmaster", "submit", str(file), *options])
        with pytest.raises(SystemExit) as exited:
            main()
        said = capsys.readouterr()
        return int(exited.value.code or 0), said.out + said.err

    return run


def unwrapped(text: str) -> str:
    """Undo the line breaks for a screen, whose width is the machine's."""
    return " ".join(text.split())


def refusal(plane: ServedPlane, state: str) -> str:
    verb = "was stopped" if state == "stopped" else state
    ended = plane.world.job(NAME).ended_at
    assert ended is not None
    return f"a job of this name {verb} on {ended.day} {ended:%b %H:%M} UTC: choose another name"


@pytest.mark.parametrize(
    ("door", "state", "later"),
    [
        *((door, state, timedelta(seconds=70)) for door in DOORS for state in ENDS),
        *((door, "completed", timedelta(0)) for door in DOORS if door != "gateway"),
    ],
)
def test_O6_C2_an_ended_job_is_no_answer_to_a_new_submission(
    door: str, state: str, later: timedelta, plane: ServedPlane, session: boto3.Session
) -> None:
    submit, kind = DOORS[door]
    submit(plane, session)
    plane.end(NAME, state)
    plane.world.now += later
    with pytest.raises(RefusedError) as refused:
        submit(plane, session)
    assert refused.value.kind == kind
    assert str(refused.value).count(refusal(plane, state)) == 1
    assert str(refused.value).count("choose another name") == 1
    assert plane.world.states(NAME) == [state]


@pytest.mark.parametrize("state", ENDS)
def test_O6_C2_the_command_ends_with_1_and_the_dry_run_says_why(
    state: str, plane: ServedPlane, command: Callable[..., tuple[int, str]]
) -> None:
    assert command()[0] == 0
    plane.end(NAME, state)
    code, said = command()
    assert (code, refusal(plane, state) in unwrapped(said)) == (1, True), said
    code, said = command("--dry-run")
    assert code == 1
    assert said.startswith("Not valid: it would be refused.")
    assert refusal(plane, state).partition(":")[0] in unwrapped(said)
    assert "starts now" not in said
    code, said = command("--dry-run", "--json")
    assert (code, json.loads(said)["valid"]) == (1, False)


@each_door
def test_O7_while_the_job_lives_the_same_request_is_that_job(
    door: str, plane: ServedPlane, session: boto3.Session
) -> None:
    submit, _ = DOORS[door]
    assert submit(plane, session) == "pending"
    plane.world.now += timedelta(days=1)
    assert submit(plane, session) == "pending"
    plane.world.schedule()
    assert submit(plane, session) in {"starting", "running"}
    assert plane.world.sagemaker.creates == [NAME]


@each_door
@pytest.mark.parametrize("lost", [1, 2])
def test_O7_A2_a_lost_answer_is_repeated_with_the_key_of_its_call(
    door: str, lost: int, plane: ServedPlane, session: boto3.Session
) -> None:
    submit, _ = DOORS[door]
    plane.lost = lost
    assert submit(plane, session) == "pending"
    assert len(plane.keys) == lost + 1
    assert len(set(plane.keys)) == 1
    if door != "gateway":
        submit(plane, session)
        assert len(set(plane.keys)) == 2, "each call has a key of its own"


def test_O7_L11_the_gateway_takes_the_id_of_the_call_for_its_key(
    plane: ServedPlane, session: boto3.Session
) -> None:
    by_gateway(plane, session, invocation="call-1")
    plane.end(NAME, "completed")
    assert by_gateway(plane, session, invocation="call-1") == "completed"
    with pytest.raises(RefusedError) as refused:
        by_gateway(plane, session, invocation="call-2")
    assert refused.value.kind == "ResourceInUse"
    assert plane.keys == ["call-1", "call-1", "call-2"]


@pytest.mark.parametrize("invocation", ["", "x" * 129, "a\tb"])
def test_a_call_whose_id_is_no_key_is_submitted_without(
    invocation: str, plane: ServedPlane, session: boto3.Session
) -> None:
    assert by_gateway(plane, session, invocation=invocation) == "pending"
    assert plane.keys == [None]


def test_O6_fit_replays_no_log_of_the_old_job(
    plane: ServedPlane, session: boto3.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    by_sdk(plane, session)
    plane.end(NAME, "completed")
    capsys.readouterr()
    with pytest.raises(RefusedError):
        by_sdk(plane, session)
    assert "already there" not in capsys.readouterr().out
