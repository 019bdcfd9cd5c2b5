"""A first deployment runs without the table's protection, which follows; an upgrade never takes it away."""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from trainmaster_client.preflight.preflight_findings import Finding, Level

from release.deployment import forget_protection, parameters_of, protect, sam_command

ROLE = Finding(id="log-role", level=Level.OK, text="", parameters={"CreateApiGatewayLogRole": "true"})


class FakeStacks:
    """CloudFormation with at most one stack."""

    def __init__(self, parameters: dict[str, str] | None) -> None:
        self.parameters = parameters
        self.waited = False

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803  boto3's name
        if self.parameters is None:
            message: Any = {"Code": "ValidationError", "Message": f"Stack with id {StackName} does not exist"}
            raise ClientError({"Error": message}, "DescribeStacks")
        listed = [{"ParameterKey": name, "ParameterValue": value} for name, value in self.parameters.items()]
        return {"Stacks": [{"Parameters": listed}]}

    def update_stack(self, **request: Any) -> None:
        assert request["UsePreviousTemplate"]
        assert self.parameters is not None
        changed = {one["ParameterKey"]: one.get("ParameterValue") for one in request["Parameters"]}
        assert changed.keys() == self.parameters.keys(), "a parameter left out would get its default"
        self.parameters |= {name: value for name, value in changed.items() if value is not None}

    def get_waiter(self, _name: str) -> "FakeStacks":
        return self

    def wait(self, **_request: Any) -> None:
        self.waited = True


def test_a_first_deployment_suggests_what_the_account_decides_and_no_protection() -> None:
    command = sam_command([ROLE], is_first=True)
    assert command[1:] == [
        "deploy", "--guided", "--parameter-overrides", "CreateApiGatewayLogRole=true", "ProtectTable=false",
    ]  # fmt: skip


def test_an_upgrade_passes_no_parameter() -> None:
    assert sam_command([ROLE], is_first=False)[1:] == ["deploy", "--guided"]


def test_the_protection_follows_and_every_other_parameter_stays() -> None:
    stacks = FakeStacks({"VpcEndpointIds": "vpce-1", "ProtectTable": "false"})
    protect(stacks, "trainmaster", lambda _: None)
    assert stacks.parameters == {"VpcEndpointIds": "vpce-1", "ProtectTable": "true"}
    assert stacks.waited


@pytest.mark.parametrize("parameters", [{"ProtectTable": "true"}, {"VpcEndpointIds": "vpce-1"}])
def test_a_protected_table_and_a_stack_of_before_are_left_alone(parameters: dict[str, str]) -> None:
    stacks = FakeStacks(dict(parameters))
    protect(stacks, "trainmaster", lambda _: None)
    assert (stacks.parameters, stacks.waited) == (parameters, False)


def test_a_stack_under_another_name_is_said_to_be_unprotected() -> None:
    said: list[str] = []
    protect(FakeStacks(None), "trainmaster", said.append)
    assert "ProtectTable=true" in said[0]


def test_there_is_no_stack_before_the_first_deployment() -> None:
    assert parameters_of(FakeStacks(None), "trainmaster") is None


@pytest.mark.parametrize(
    ("saved", "kept"),
    [
        pytest.param(
            r'parameter_overrides = "A=\"1\" ProtectTable=\"false\" B=\"2\""',
            r'parameter_overrides = "A=\"1\" B=\"2\""',
            id="one text",
        ),
        pytest.param(
            'parameter_overrides = ["A=1", "ProtectTable=false"]',
            'parameter_overrides = ["A=1"]',
            id="a list",
        ),
        pytest.param(r'x = "ProtectTable=\"true\""', r'x = "ProtectTable=\"true\""', id="protected"),
    ],
)
def test_the_answer_of_the_first_deployment_is_not_suggested_to_the_next(
    tmp_path: Path, saved: str, kept: str
) -> None:
    file = tmp_path / "samconfig.toml"
    file.write_text(saved, encoding="utf-8")
    forget_protection(file)
    assert file.read_text(encoding="utf-8") == kept
