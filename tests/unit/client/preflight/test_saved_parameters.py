"""What SAM saved of an earlier deployment is read in both of its forms."""

from pathlib import Path

import pytest
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.preflight.saved_parameters import Saved, parsed, read_saved

TEXT = r"""
version = 0.1
[default.global.parameters]
stack_name = "queue"
[default.deploy.parameters]
region = "eu-west-1"
parameter_overrides = "VpcEndpointIds=\"vpce-1,vpce-2\" ProtectTable=\"true\" LauncherRoleArns=\"\""
"""
LIST = """
[default.deploy.parameters]
parameter_overrides = ["VpcEndpointIds=vpce-1,vpce-2", "RetentionDays=90"]
"""


def test_one_text_as_the_guided_deployment_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "samconfig.toml"
    file.write_text(TEXT, encoding="utf-8")
    assert read_saved(file) == Saved(
        stack="queue",
        region="eu-west-1",
        parameters={"VpcEndpointIds": "vpce-1,vpce-2", "ProtectTable": "true", "LauncherRoleArns": ""},
    )


def test_a_list_as_people_write_it(tmp_path: Path) -> None:
    file = tmp_path / "samconfig.toml"
    file.write_text(LIST, encoding="utf-8")
    assert read_saved(file).parameters == {"VpcEndpointIds": "vpce-1,vpce-2", "RetentionDays": "90"}


def test_no_file_is_nothing_and_a_broken_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "samconfig.toml"
    assert read_saved(file) == Saved()
    file.write_text("[[", encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_saved(file)


def test_what_is_no_parameter_is_named_with_an_example() -> None:
    with pytest.raises(InvalidArgumentError, match="'ApiReservedConcurrency' is not NAME=VALUE"):
        parsed(["ApiReservedConcurrency"], "--parameter")
