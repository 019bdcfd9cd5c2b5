"""``trainmaster doctor`` on a twin: green when it is fresh, and what is broken there is found where it is."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.cli import main

from tests.e2e.plane import Document, Plane, running_plane

pytestmark = pytest.mark.long

TYPE = "ml.m5.xlarge"
POOL: Document = {"name": "cpu", "capacity": {TYPE: 2}}
INVOKE = ["execute-api:Invoke", "ssm:GetParameter"]
LOGS = ["logs:DescribeLogStreams", "logs:GetLogEvents"]
Doctor = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    with running_plane(tmp_path_factory.mktemp("doctor"), policy={"version": 1, "pools": [POOL]}) as running:
        yield running


@pytest.fixture
def doctor(plane: Plane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Doctor:
    """Exit code and report, as the environment of the twin with changes has them."""

    def run(**changes: str) -> tuple[int, dict[str, Any]]:
        for name, value in {**plane.twin.environment(), **changes}.items():
            monkeypatch.setenv(name, value)
        file = tmp_path / "doctor.json"
        monkeypatch.setattr(sys, "argv", ["trainmaster", "doctor", "--json", str(file)])
        with pytest.raises(SystemExit) as exited:
            main()
        return int(exited.value.code or 0), json.loads(file.read_text(encoding="utf-8"))

    return run


def failures(report: dict[str, Any]) -> dict[str, str]:
    remedies = report["facts"]["remedies"]
    return {one["id"]: remedies[one["id"]]["trouble"] for one in report["checks"] if one["ok"] is False}


def session_of(plane: Plane, name: str, *actions: str) -> dict[str, str]:
    """The environment of somebody whose role may do just this."""
    iam = plane.client("iam")
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    if actions:
        statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=document)
    keys = plane.client("sts").assume_role(RoleArn=role, RoleSessionName="ann")["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
    }


@pytest.fixture
def policy(plane: Plane) -> Iterator[Callable[..., None]]:
    """Puts another policy in force, until the end of the test."""

    def put(**document: Any) -> None:
        answer = plane.call("PUT", "/policy", {"version": 1, **document})
        assert answer.status == 200, answer.body

    yield put
    put(pools=[POOL])


def test_a_fresh_twin_is_green_but_its_admin_may_bypass_the_queue(plane: Plane, doctor: Doctor) -> None:
    code, report = doctor()
    assert (code, report["ok"], list(report["facts"]["remedies"])) == (0, True, ["direct-starts"])
    reasons = {one["id"]: one["skipped"] for one in report["checks"] if one["ok"] is None}
    no_template = "CloudFormation does not say: DescribeStackResources: NotImplemented"
    assert reasons == {
        "quotas": "Service Quotas has none of these types",
        "training-roles": "the policy lists no roles by name",
        "volume-keys": no_template,
        "checkpoint-keys": no_template,
        "gpu-metrics": "no training role is known by name; no running job lacks them",
        "mail": no_template,
        "direct-starts": "warning: You may also start training jobs that bypass the queue.",
        "local-gateway": "none runs here",
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"AWS_SECRET_ACCESS_KEY": "wrong"}, {"identity": "wrong-secret"}, id="wrong secret"),
        pytest.param({"AWS_ACCESS_KEY_ID": "AKIANOBODY"}, {"identity": "unknown-key"}, id="unknown key"),
        pytest.param({"AWS_DEFAULT_REGION": "eu-west-1"}, {"access": "wrong-region"}, id="other region"),
    ],
)
def test_keys_and_region_are_told_apart(
    changes: dict[str, str], expected: dict[str, str], doctor: Doctor
) -> None:
    code, report = doctor(**changes)
    assert (code, failures(report)) == (1, expected)


def test_a_path_that_the_gateway_does_not_have(plane: Plane, doctor: Doctor) -> None:
    _, report = doctor(TRAINMASTER_API_URL=f"{plane.twin.ready['api_url']}/v2")
    assert failures(report) == {"access": "wrong-stage"}


def test_another_service_at_the_same_place(plane: Plane, doctor: Doctor) -> None:
    _, report = doctor(TRAINMASTER_API_URL=f"{plane.twin.ready['endpoint_url']}/prod")
    assert failures(report) == {"gateway": "not-the-api"}


def test_a_role_that_nobody_let_in(plane: Plane, doctor: Doctor) -> None:
    assert failures(doctor(**session_of(plane, "nobody", *LOGS))[1]) == {"access": "not-a-caller"}


def test_a_role_of_no_team_and_one_that_may_not_read_logs(
    plane: Plane, doctor: Doctor, policy: Callable[..., None]
) -> None:
    member = f"arn:aws:iam::{plane.twin.ready['account_id']}:role/member"
    policy(pools=[POOL], teams=[{"name": "vision", "principals": [member]}])
    stranger = session_of(plane, "stranger", *INVOKE, *LOGS)
    assert failures(doctor(**stranger)[1]) == {"team": "no-team"}
    code, report = doctor(**session_of(plane, "member", *INVOKE))
    assert (code, failures(report)) == (1, {"logs": "logs-unreadable"})
    assert {one["id"]: one["actual"] for one in report["checks"]}["team"] == "team vision, not an admin"


def test_a_pause_and_a_pool_above_the_quota(plane: Plane, doctor: Doctor) -> None:
    plane.control("/quota", {"instance_type": TYPE, "instances": 1})
    assert plane.call("PUT", "/policy/paused", {"paused": True}).status == 200
    try:
        report = doctor()[1]
        assert failures(report) == {"paused": "paused", "quotas": "pool-above-quota"}
        found = {one["id"]: one["actual"] for one in report["checks"]}
        assert found["quotas"] == f"{TYPE} for training job usage: pool 2, quota 1"
    finally:
        plane.call("PUT", "/policy/paused", {"paused": False})
        plane.control("/quota", {"instance_type": TYPE, "instances": 2})
    assert failures(doctor()[1]) == {}


def test_without_pools_the_way_is_well_and_the_next_step_is_said(
    doctor: Doctor, policy: Callable[..., None]
) -> None:
    policy()
    code, report = doctor()
    assert (code, failures(report)) == (0, {})
    assert report["facts"]["remedies"]["pools"]["trouble"] == "no-pools"


@pytest.mark.parametrize(
    ("trusted", "expected"),
    [
        pytest.param("sagemaker.amazonaws.com", {}, id="SageMaker may assume it"),
        pytest.param("ec2.amazonaws.com", {"training-roles": "role-not-trusting"}, id="only EC2 may"),
        pytest.param(None, {"training-roles": "role-missing"}, id="there is none"),
    ],
)
def test_training_roles_of_the_policy(
    trusted: str | None,
    expected: dict[str, str],
    plane: Plane,
    doctor: Doctor,
    policy: Callable[..., None],
) -> None:
    name = f"training-{str(trusted).partition('.')[0]}"
    if trusted:
        statement = {"Effect": "Allow", "Principal": {"Service": trusted}, "Action": "sts:AssumeRole"}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        plane.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust)
    account = plane.twin.ready["account_id"]
    admin = f"arn:aws:iam::{account}:user/local-admin"
    role = f"arn:aws:iam::{account}:role/{name}"
    policy(pools=[POOL], teams=[{"name": "vision", "principals": [admin], "roles": [role]}])
    assert failures(doctor()[1]) == expected
