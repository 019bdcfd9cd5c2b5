"""Callers, their teams, and who is an admin."""

from typing import Any

import pytest
from trainmaster.core.errors import ForbiddenError, InvalidRequestError, MissingIdentityError
from trainmaster.core.policy import Policy, PrincipalKind, parse_policy
from trainmaster.core.submission.identity import caller_of, is_admin, team_for, teams_of

OWN = "111122223333"
OTHER = "444455556666"


def role_session(name: str, *, account: str = OWN, session: str = "s1", partition: str = "aws") -> str:
    return f"arn:{partition}:sts::{account}:assumed-role/{name}/{session}"


def role(name: str, *, account: str = OWN, partition: str = "aws") -> str:
    return f"arn:{partition}:iam::{account}:role/{name}"


def user(name: str, *, account: str = OWN) -> str:
    return f"arn:aws:iam::{account}:user/{name}"


def teams(**principals: str) -> Policy:
    lines: list[dict[str, Any]] = [{"name": name, "principals": [arn]} for name, arn in principals.items()]
    return parse_policy({"teams": lines})


def found(caller_arn: str, policy: Policy) -> tuple[str, ...]:
    return teams_of(caller_of(caller_arn), policy, OWN)


def test_a_session_is_reduced_to_account_and_role() -> None:
    caller = caller_of(role_session("vision-lead", session="ada@example.com"))
    assert (caller.account_id, caller.kind, caller.name) == (OWN, PrincipalKind.ROLE, "vision-lead")
    assert caller.arn == f"arn:aws:sts::{OWN}:assumed-role/vision-lead/ada@example.com"
    assert caller.path is None


def test_a_user_stays_as_it_is() -> None:
    caller = caller_of(user("research/eng/ada"))
    assert (caller.kind, caller.path, caller.name) == (PrincipalKind.USER, "research/eng/", "ada")


@pytest.mark.parametrize("user_arn", [None, ""])
def test_G4_no_caller_is_our_own_misconfiguration(user_arn: str | None) -> None:
    with pytest.raises(MissingIdentityError):
        caller_of(user_arn)


@pytest.mark.parametrize(
    "user_arn",
    [
        pytest.param(f"arn:aws:iam::{OWN}:root", id="root"),
        pytest.param(f"arn:aws:sts::{OWN}:federated-user/ada", id="a federated user"),
        pytest.param(f"arn:aws:iam::{OWN}:role/vision", id="a role that is no session"),
        pytest.param(f"arn:aws:sts::{OWN}:assumed-role/vision", id="a session without a name"),
        pytest.param(f"arn:aws:sts::{OWN}:assumed-role/a/b/c", id="a role name with a slash"),
        pytest.param(f"arn:aws:sts::{OWN}:assumed-role/vision/s\n", id="a newline at the end"),
        pytest.param("arn:aws:sts::1111:assumed-role/vision/s", id="a short account"),
        pytest.param("arn:evil:sts::111122223333:assumed-role/vision/s", id="no partition of AWS"),
        pytest.param("vision", id="no ARN"),
    ],
)
def test_any_other_form_is_forbidden(user_arn: str) -> None:
    with pytest.raises(ForbiddenError):
        caller_of(user_arn)


@pytest.mark.parametrize(
    ("caller", "principal", "matches"),
    [
        pytest.param(role_session("a"), role("a"), True, id="the role itself"),
        pytest.param(role_session("a-b"), role("a"), False, id="G12 a role whose name merely begins alike"),
        pytest.param(role_session("a"), role("a-b"), False, id="G12 a role whose name is the beginning"),
        pytest.param(role_session("a-b"), role("a-*"), True, id="a wildcard inside the name"),
        pytest.param(role_session("a"), role("a-*"), False, id="a wildcard does not eat the hyphen"),
        pytest.param(role_session("xa-b"), role("a-*"), False, id="the whole name is matched"),
        pytest.param(role_session("A"), role("a"), False, id="case matters"),
        pytest.param(role_session("a", session="b"), role("b"), False, id="a session name is no role name"),
        pytest.param(role_session("a", account=OTHER), role("a"), False, id="another account's role"),
        pytest.param(role_session("a", account=OTHER), role("a", account=OTHER), True, id="a listed account"),
        pytest.param(role_session("a", partition="aws-cn"), role("a"), False, id="another partition"),
        pytest.param(
            role_session("a", partition="aws-us-gov"), role("a", partition="aws-us-gov"), True, id="GovCloud"
        ),
        pytest.param(role_session("a"), user("a"), False, id="a user is not a role"),
        pytest.param(
            role_session("lead"), role("team/vision/lead"), True, id="a session does not tell the path"
        ),
        pytest.param(
            role_session("AWSReservedSSO_Vision_0123456789abcdef", session="ada@example.com"),
            role("aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Vision_*"),
            True,
            id="an SSO role, written with its path",
        ),
        pytest.param(
            role_session("AWSReservedSSO_VisionAdmin_0123456789abcdef"),
            role("AWSReservedSSO_Vision_*"),
            False,
            id="another SSO permission set",
        ),
        pytest.param(user("ada"), user("ada"), True, id="a user"),
        pytest.param(user("eng/ada"), user("eng/ada"), True, id="a user with a path"),
        pytest.param(user("eng/ada"), user("ada"), True, id="user names are unique whatever the path"),
        pytest.param(user("eng/ada"), user("ops/ada"), False, id="a written path is compared"),
        pytest.param(user("ada"), user("ops/*"), False, id="a wildcard does not leave its path"),
        pytest.param(user("eng/ada"), role("ada"), False, id="a role is not a user"),
        pytest.param(user("ada", account=OTHER), user("ada"), False, id="another account's user"),
    ],
)
def test_matching(caller: str, principal: str, *, matches: bool) -> None:
    policy = teams(vision=principal)
    assert found(caller, policy) == (("vision",) if matches else ())


def test_without_teams_everybody_of_the_own_account_is_team_default() -> None:
    assert found(role_session("anything"), parse_policy({})) == ("default",)
    assert found(user("ada"), parse_policy({})) == ("default",)


def test_without_teams_another_account_has_no_team() -> None:
    assert found(role_session("anything", account=OTHER), parse_policy({})) == ()


def test_with_teams_nobody_is_in_the_default_team() -> None:
    assert found(role_session("stranger"), teams(vision=role("vision"))) == ()


def test_a_caller_may_be_in_several_teams_in_the_order_of_the_policy() -> None:
    assert found(role_session("lead"), teams(zebra=role("lead"), ape=role("l*"))) == ("zebra", "ape")


@pytest.mark.parametrize(
    ("tag", "team"),
    [
        pytest.param(None, "vision", id="the only team needs no tag"),
        pytest.param("vision", "vision", id="it may be given"),
    ],
)
def test_team_of_a_submission(tag: str | None, team: str) -> None:
    caller = caller_of(role_session("vision"))
    assert team_for(caller, teams(vision=role("vision")), tag, own_account=OWN) == team


def test_two_teams_need_the_tag() -> None:
    both = teams(vision=role("lead"), speech=role("lead"))
    caller = caller_of(role_session("lead"))
    assert team_for(caller, both, "speech", own_account=OWN) == "speech"
    with pytest.raises(InvalidRequestError) as caught:
        team_for(caller, both, None, own_account=OWN)
    assert caught.value.errors[0].hint == "add the tag 'team' with one of: vision, speech"


@pytest.mark.parametrize("tag", ["speech", "", "Vision", "vision "])
def test_F3_somebody_elses_team_is_forbidden(tag: str) -> None:
    policy = teams(vision=role("vision"), speech=role("speech"))
    with pytest.raises(ForbiddenError):
        team_for(caller_of(role_session("vision")), policy, tag, own_account=OWN)


@pytest.mark.parametrize("tag", [None, "vision"])
def test_G2_a_stranger_is_forbidden(tag: str | None) -> None:
    with pytest.raises(ForbiddenError):
        team_for(caller_of(role_session("who")), teams(vision=role("vision")), tag, own_account=OWN)


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        pytest.param(role_session("platform-admin"), True, id="an admin of the policy"),
        pytest.param(user("ops/root-like"), True, id="an admin of the deployment"),
        pytest.param(role_session("platform"), False, id="part of an admin's name"),
        pytest.param(role_session("platform-admin", account=OTHER), False, id="the same name elsewhere"),
        pytest.param(role_session("root-like"), False, id="a role of the admin user's name"),
    ],
)
def test_admins(caller: str, *, expected: bool) -> None:
    policy = parse_policy({"admins": [role("platform-admin")]})
    assert is_admin(caller_of(caller), policy, [user("ops/root-like"), "not an arn"]) is expected
