"""What the twin answers of IAM itself: roles that nobody has to make, and what policies allow."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from local.doors.iam_roles import IamRoles
from local.identity.authorizer import Authorizer
from local.identity.identities import Identities
from local.wire import AwsError, Principal

ACCOUNT = "123456789012"
IAM = f"arn:aws:iam::{ACCOUNT}"
CALLER = Principal(arn=f"{IAM}:user/local-admin", account_id=ACCOUNT, access_key_id="AKIA")
LIMITS = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::mine/*"},
        {"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "*"},
    ],
}


def roles(*made: str) -> IamRoles:
    identities = Identities(ACCOUNT)
    identities.add_role(f"{IAM}:role/limited", [LIMITS])
    return IamRoles(
        authorizer=Authorizer(identities),
        account_id=ACCOUNT,
        arns=(f"{IAM}:role/ml/training",),
        is_made=lambda arn: arn in made,
    )


def decisions(source: str, actions: list[str], **more: Any) -> list[str]:
    asked = {"PolicySourceArn": f"{IAM}:{source}", "ActionNames": actions, **more}
    answer = roles().call("SimulatePrincipalPolicy", asked, CALLER)
    return [one["EvalDecision"] for one in answer["EvaluationResults"]]


def test_a_role_of_the_twin_is_there_and_sagemaker_may_assume_it() -> None:
    asked = {"RoleName": "training"}
    assert roles().owns("GetRole", asked)
    role = roles().call("GetRole", asked, CALLER)["Role"]
    assert (role["Arn"], role["Path"], role["RoleName"]) == (f"{IAM}:role/ml/training", "/ml/", "training")
    trust = json.loads(unquote(role["AssumeRolePolicyDocument"]))
    assert trust["Statement"][0]["Principal"] == {"Service": "sagemaker.amazonaws.com"}


def test_other_roles_and_one_of_the_name_that_somebody_made_are_the_engine_s() -> None:
    assert not roles().owns("GetRole", {"RoleName": "limited"})
    assert not roles(f"{IAM}:role/ml/training").owns("GetRole", {"RoleName": "training"})


@pytest.mark.parametrize("source", ["role/ml/training", "role/any", "user/local-admin"])
def test_whom_nobody_limited_may_do_all(source: str) -> None:
    assert decisions(source, ["s3:PutObject", "iam:CreateRole"]) == ["allowed", "allowed"]


def test_a_limited_role_may_do_what_its_policies_say_of_each_resource() -> None:
    resources = ["arn:aws:s3:::mine/a", "arn:aws:s3:::other/a"]
    actions = ["s3:PutObject", "s3:DeleteObject"]
    found = decisions("role/limited", actions, ResourceArns=resources)
    assert found == ["allowed", "implicitDeny", "explicitDeny", "explicitDeny"]
    assert decisions("role/limited", ["s3:PutObject"]) == ["implicitDeny"]


def test_further_policies_and_context_of_the_call_count() -> None:
    more = {"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}
    more["Condition"] = {"StringEquals": {"aws:RequestedRegion": "us-east-1"}}  # type: ignore[assignment]
    document = json.dumps({"Version": "2012-10-17", "Statement": [more]})
    for region, decision in (("us-east-1", "allowed"), ("eu-west-1", "implicitDeny")):
        entry = {"ContextKeyName": "aws:RequestedRegion", "ContextKeyValues": [region]}
        entry["ContextKeyType"] = "string"
        options = {"PolicyInputList": [document], "ContextEntries": [entry]}
        assert decisions("role/limited", ["ec2:RunInstances"], **options) == [decision]


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ({"PolicySourceArn": "arn:aws:iam::999999999999:role/a"}, "NoSuchEntity", "999"),
        ({"PolicySourceArn": f"{IAM}:group/people"}, "NoSuchEntity", "group"),
        ({"PolicyInputList": ["{"]}, "InvalidInput", "PolicyInputList"),
        ({"CallerArn": f"{IAM}:user/ann"}, "InvalidInput", "CallerArn"),
        ({"ActionNames": None}, "ValidationError", "actionNames"),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_its_name(asked: dict[str, Any], code: str, said: str) -> None:
    limited = {"PolicySourceArn": f"{IAM}:role/limited", "ActionNames": ["a:b"]}
    with pytest.raises(AwsError) as refused:
        roles().call("SimulatePrincipalPolicy", limited | asked, CALLER)
    assert refused.value.code == code
    assert said in refused.value.message
