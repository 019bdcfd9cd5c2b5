"""Group K: teams that do what their limits allow, and more."""

from typing import Any

import pytest
from trainmaster.core.errors import PolicyViolationError
from trainmaster.core.policy import parse_policy
from trainmaster.core.request.request import read_request
from trainmaster.core.submission.admission import Submission, judge

from tests.bodies import body

BLUES = "arn:aws:iam::111122223333:role/blue-training"
PREFIX = "s3://red-data/"


def answer(
    whole: dict[str, Any], *, rules: dict[str, Any] | None = None, **team: Any
) -> tuple[list[tuple[str | None, str]], list[tuple[str | None, str]]]:
    """Rule and field of what is refused and of what is warned of, for team red."""
    document = {
        "pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}],
        "teams": [{"name": "red", **team}],
        "rules": rules or {},
    }
    submission = Submission(body=whole, ask=read_request(whole), team="red", submitted_by="me")
    verdict = judge(submission, parse_policy(document))
    return (
        [(one.rule, one.field) for one in verdict.violations],
        [(one.rule, one.field) for one in verdict.audited],
    )


NOTHING: tuple[list[Any], list[Any]] = ([], [])


def test_K9_a_team_without_roles_may_use_none() -> None:
    whole = body(RoleArn=BLUES)
    assert answer(whole) == ([("teams.red.roles", "RoleArn")], [])
    assert answer(whole, roles=["arn:aws:iam::111122223333:role/red"]) == (
        [("teams.red.roles", "RoleArn")],
        [],
    )
    assert answer(whole, roles=[BLUES]) == NOTHING
    assert answer(whole, roles="any") == NOTHING


def test_K9_a_word_that_is_not_any_is_refused() -> None:
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy({"pools": [], "teams": [{"name": "red", "roles": "all"}]})
    assert [one.field for one in caught.value.errors] == ["teams[0].roles"]


CHAINING = {"SessionChainingConfig": {"EnableSessionTagChaining": True}}
REMOTE = {"RemoteDebugConfig": {"EnableRemoteDebug": True}}


@pytest.mark.parametrize(
    ("changed", "rule", "field"),
    [
        (CHAINING, "session_chaining", "SessionChainingConfig.EnableSessionTagChaining"),
        (REMOTE, "remote_debug", "RemoteDebugConfig.EnableRemoteDebug"),
    ],
    ids=["session chaining", "remote debug"],
)
def test_K10_with_teams_session_chaining_and_remote_debug_need_their_rule(
    changed: dict[str, Any], rule: str, field: str
) -> None:
    whole = body(**changed)
    assert answer(whole, roles="any") == ([(rule, field)], [])
    assert answer(whole, roles="any", rules={rule: {"mode": "audit"}}) == ([], [(rule, field)])
    assert answer(whole, roles="any", rules={rule: {"mode": "allow"}}) == NOTHING
    without_teams = parse_policy({"pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}]})
    submission = Submission(body=whole, ask=read_request(whole), team="default", submitted_by="me")
    assert judge(submission, without_teams).violations == ()


def channel(source: dict[str, Any]) -> dict[str, Any]:
    return {"InputDataConfig": [{"ChannelName": "train", "DataSource": source}]}


def s3(uri: str, data_type: str) -> dict[str, Any]:
    return channel({"S3DataSource": {"S3DataType": data_type, "S3Uri": uri}})


FSX = {
    "FileSystemId": "fs-1",
    "FileSystemType": "FSxLustre",
    "FileSystemAccessMode": "ro",
    "DirectoryPath": "/x",
}
_SOURCE = "InputDataConfig[0].DataSource"
MLFLOW = "arn:aws:sagemaker:us-east-1:{}:mlflow-tracking-server/main"
BACK_DOORS = {
    "the code": (
        {"HyperParameters": {"sagemaker_submit_directory": '"s3://blue/code.tar.gz"'}},
        "HyperParameters.sagemaker_submit_directory",
    ),
    "the code, as a variable": (
        {"Environment": {"SAGEMAKER_SUBMIT_DIRECTORY": "s3://blue/code.tar.gz"}},
        "Environment.SAGEMAKER_SUBMIT_DIRECTORY",
    ),
    "a manifest": (s3(f"{PREFIX}m", "ManifestFile"), f"{_SOURCE}.S3DataSource.S3Uri"),
    "an augmented manifest": (s3(f"{PREFIX}m", "AugmentedManifestFile"), f"{_SOURCE}.S3DataSource.S3Uri"),
    "a file system": (channel({"FileSystemDataSource": FSX}), f"{_SOURCE}.FileSystemDataSource"),
    "a tracking server": (
        {"MlflowConfig": {"MlflowResourceArn": MLFLOW.format("999988887777")}},
        "MlflowConfig.MlflowResourceArn",
    ),
}
OWN = {
    "the code": {"HyperParameters": {"sagemaker_submit_directory": f'"{PREFIX}code.tar.gz"'}},
    "code in the image": {"HyperParameters": {"sagemaker_submit_directory": "/opt/ml/input/data/code"}},
    "data": s3(f"{PREFIX}train/", "S3Prefix"),
    "a tracking server": {"MlflowConfig": {"MlflowResourceArn": MLFLOW.format("111122223333")}},
}


def inside(**changed: Any) -> dict[str, Any]:
    return body(OutputDataConfig={"S3OutputPath": f"{PREFIX}out/"}, RoleArn=BLUES, **changed)


@pytest.mark.parametrize(("changed", "field"), BACK_DOORS.values(), ids=BACK_DOORS)
def test_K11_data_and_code_have_no_way_around_s3_prefixes(changed: dict[str, Any], field: str) -> None:
    assert answer(inside(**changed), roles="any", s3_prefixes=[PREFIX]) == (
        [("teams.red.s3_prefixes", field)],
        [],
    )


@pytest.mark.parametrize("changed", OWN.values(), ids=OWN)
def test_K11_what_lies_inside_is_taken(changed: dict[str, Any]) -> None:
    assert answer(inside(**changed), roles="any", s3_prefixes=[PREFIX]) == NOTHING
