"""Sessions of launcher roles: asked for once, kept until nearly over, refused with the remedy."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from trainmaster.adapters.launcher_sessions import LauncherSessions
from trainmaster.adapters.sagemaker import SageMakerTraining
from trainmaster.adapters.turn_taking import TurnTaking
from trainmaster.core.errors import LauncherRefusedError, TrainingRefusedError, UnavailableError
from trainmaster.core.request.request import Launcher

from tests.builders import NOON, minutes

RED = Launcher(role_arn="arn:aws:iam::111122223333:role/ml/launcher-red", team="red/vision:1", stack="prod")
BLUE = Launcher(role_arn="arn:aws:iam::111122223333:role/launcher-blue", team="blue", stack="prod")


@dataclass(slots=True)
class Aws:
    """STS and SageMaker; each session's client is a client of its own."""

    now: datetime = NOON
    asked: list[dict[str, Any]] = field(default_factory=list)
    made: list[str | None] = field(default_factory=list)
    """Whose keys each client of SageMaker was made with; None: the function's own."""
    created: list[str | None] = field(default_factory=list)
    refusal: Exception | None = None
    """Of the next AssumeRole calls."""
    objection: Exception | None = None
    """Of the next CreateTrainingJob."""

    def sts(self) -> "Client":
        return Client(aws=self, key=None)

    def client(self, **keys: str) -> "Client":
        self.made.append(keys.get("aws_access_key_id"))
        return Client(aws=self, key=keys.get("aws_access_key_id"))

    def sessions(self) -> LauncherSessions:
        return LauncherSessions(self.sts, client_with=self.client, clock=lambda: self.now)

    def training(self) -> SageMakerTraining:
        return SageMakerTraining(self.client(), calls=TurnTaking(), launchers=self.sessions())


@dataclass(frozen=True, slots=True)
class Client:
    aws: Aws
    key: str | None

    def assume_role(self, **asked: Any) -> dict[str, Any]:
        self.aws.asked.append(asked)
        if self.aws.refusal is not None:
            raise self.aws.refusal
        keys = {"AccessKeyId": f"ASIA{len(self.aws.asked)}", "SecretAccessKey": "s", "SessionToken": "t"}
        lasting = timedelta(seconds=asked["DurationSeconds"])
        return {"Credentials": keys | {"Expiration": self.aws.now + lasting}}

    def create_training_job(self, **request: Any) -> dict[str, str]:
        self.aws.created.append(self.key)
        if self.aws.objection is not None:
            objection, self.aws.objection = self.aws.objection, None
            raise objection
        return {"TrainingJobArn": f"arn:{request['TrainingJobName']}"}


def refused(code: str, status: int = 403) -> ClientError:
    error = {"Code": code, "Message": "User: me is not authorized"}
    answer: Any = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "AssumeRole")


@pytest.fixture
def aws() -> Aws:
    return Aws()


def test_the_session_says_team_and_stack_and_is_as_short_as_sts_allows(aws: Aws) -> None:
    aws.sessions().client(RED)
    (asked,) = aws.asked
    assert asked == {
        "RoleArn": RED.role_arn,
        "RoleSessionName": "trainmaster-red-vision-1",
        "DurationSeconds": 900,
        "Tags": [
            {"Key": "trainmaster:team", "Value": "red/vision:1"},
            {"Key": "trainmaster:stack", "Value": "prod"},
        ],
    }


@pytest.mark.parametrize("team", ["x" * 63, "a=b", "a+b@c.d", "a:/b"])
def test_a_session_s_name_is_one_that_sts_takes(aws: Aws, team: str) -> None:
    aws.sessions().client(Launcher(role_arn=BLUE.role_arn, team=team, stack="prod"))
    assert re.fullmatch(r"[\w+=,.@-]{2,64}", aws.asked[0]["RoleSessionName"], re.ASCII)


def test_one_session_serves_a_team_until_a_minute_before_its_end(aws: Aws) -> None:
    sessions = aws.sessions()
    first = sessions.client(RED)
    aws.now += minutes(13)
    assert sessions.client(RED) is first
    assert sessions.client(BLUE) is not first
    aws.now += minutes(1)
    assert sessions.client(RED) is not first
    assert [one["RoleArn"] for one in aws.asked] == [RED.role_arn, BLUE.role_arn, RED.role_arn]
    assert aws.made == ["ASIA1", "ASIA2", "ASIA3"]


def test_create_training_job_is_called_with_the_session_and_nothing_else_is(aws: Aws) -> None:
    training = aws.training()
    assert training.create({"TrainingJobName": "a"}, launcher=RED) == "arn:a"
    assert training.create({"TrainingJobName": "b"}) == "arn:b"
    assert aws.created == ["ASIA1", None]


def test_a_role_that_is_not_to_be_had_is_named_with_the_remedy_and_nothing_is_sent(aws: Aws) -> None:
    aws.refusal = refused("AccessDenied")
    with pytest.raises(LauncherRefusedError) as caught:
        aws.training().create({"TrainingJobName": "a"}, launcher=RED)
    for part in (
        RED.role_arn,
        RED.team,
        "LauncherRoleArns",
        "trust policy",
        "sts:TagSession",
        "AccessDenied",
    ):
        assert part in str(caught.value)
    assert aws.created == []


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(refused("Throttling", 400), id="too many calls"),
        pytest.param(refused("InternalFailure", 500), id="a fault of STS"),
        pytest.param(EndpointConnectionError(endpoint_url="https://sts"), id="out of reach"),
    ],
)
def test_what_passes_is_tried_again_and_counts_against_nobody(aws: Aws, trouble: Exception) -> None:
    aws.refusal = trouble
    training = aws.training()
    with pytest.raises(UnavailableError):
        training.create({"TrainingJobName": "a"}, launcher=RED)
    aws.refusal = None
    assert training.create({"TrainingJobName": "a"}, launcher=RED) == "arn:a"


def test_a_session_that_was_ended_early_is_not_used_again(aws: Aws) -> None:
    training = aws.training()
    training.create({"TrainingJobName": "a"}, launcher=RED)
    aws.objection = refused("AccessDeniedException", 400)
    with pytest.raises(TrainingRefusedError):
        training.create({"TrainingJobName": "b"}, launcher=RED)
    training.create({"TrainingJobName": "c"}, launcher=RED)
    assert aws.created == ["ASIA1", "ASIA1", "ASIA2"]


def test_a_function_without_sessions_starts_nothing_with_its_own_rights(aws: Aws) -> None:
    training = SageMakerTraining(aws.client())
    with pytest.raises(LauncherRefusedError):
        training.create({"TrainingJobName": "a"}, launcher=RED)
    assert aws.created == []
