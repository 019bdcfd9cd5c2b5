"""Files and exports of the gateway: its token is kept for who was told it, and shown to nobody else."""

import pytest
from trainmaster_client.cli.local_gateway import exports, proxy_names, warnings_of
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.gateway.gateway_files import (
    GatewayState,
    known_states,
    read_state,
    token_for,
    write_state,
)
from trainmaster_client.gateway.passed_calls import is_a_gateway

STATE = GatewayState(pid=7, port=4600, token="told", api_url="https://one/prod")


def test_a_start_on_the_same_port_for_the_same_stack_keeps_the_token(tmp_path):
    write_state(STATE, folder=tmp_path)
    assert token_for(4600, api_url="https://one/prod", folder=tmp_path) == "told"


@pytest.mark.parametrize(("port", "api_url"), [(4601, "https://one/prod"), (4600, "https://two/prod")])
def test_another_port_or_stack_has_a_token_of_its_own(port, api_url, tmp_path):
    write_state(STATE, folder=tmp_path)
    token = token_for(port, api_url=api_url, folder=tmp_path)
    assert token != "told"
    assert len(token) >= 43


def test_the_file_is_for_its_user_alone(tmp_path):
    folder = tmp_path / "new"
    file = write_state(STATE, folder=folder)
    assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(known_states(folder)) == [STATE]


def test_a_file_that_others_may_read_or_that_is_a_link_is_not_believed(tmp_path):
    file = write_state(STATE, folder=tmp_path)
    file.chmod(0o644)
    assert read_state(4600, folder=tmp_path) is None
    elsewhere = tmp_path / "elsewhere"
    write_state(STATE, folder=tmp_path).rename(elsewhere)
    file.symlink_to(elsewhere)
    assert read_state(4600, folder=tmp_path) is None


def test_the_two_exports_are_the_endpoint_and_no_proxy_for_it():
    assert list(exports(STATE.endpoint_url, {"no_proxy": "corp.example,127.0.0.1"})) == [
        "export AWS_ENDPOINT_URL_SAGEMAKER=http://127.0.0.1:4600/told",
        "export no_proxy=127.0.0.1,corp.example",
    ]


@pytest.mark.parametrize(
    ("version", "is_warned"),
    [
        ("aws-cli/1.28.9 Python/3.9", True),
        ("aws-cli/1.29.0 Python/3.9", False),
        ("aws-cli/2.12.7 Python/3.11", True),
        ("aws-cli/2.13.0 Python/3.11", False),
        ("something else", False),
    ],
)
def test_an_aws_cli_that_does_not_know_the_variable_is_warned_of(version, is_warned, tmp_path):
    program = tmp_path / "aws"
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    assert bool(list(warnings_of({"PATH": str(tmp_path)}))) == is_warned


def test_a_switch_that_makes_clients_ignore_the_variable_is_warned_of():
    env = {"PATH": "", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}
    assert ["AWS_IGNORE" in line for line in warnings_of(env)] == [True]


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("http://127.0.0.1:4600/token", True),
        ("http://127.0.0.1:4566", False),
        ("http://127.0.0.1:4566/", False),
        ("https://vpce-1.api.sagemaker.eu-west-1.vpce.amazonaws.com", False),
        ("", False),
    ],
)
def test_a_gateway_is_told_from_other_endpoints_by_its_token(url, is_one):
    assert is_a_gateway(url) == is_one


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([], set()),
        (["hub.example.com"], {"hub.example.com"}),
        (["Hub.Example.com:8443", "10.0.0.7"], {"hub.example.com", "10.0.0.7"}),
    ],
)
def test_T4_names_of_proxies_are_host_names_without_their_ports(given: list[str], names: set[str]) -> None:
    assert proxy_names(given) == names


@pytest.mark.parametrize(
    "given", ["", "*", "*.example.com", "https://hub.example.com", "hub.example.com/a", "a b", "-a", ":80"]
)
def test_T4_what_is_no_host_name_is_refused_with_an_example(given: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"--behind-proxy: .* is not a host name; use .*hub\.example"
    ):
        proxy_names(["good.example", given])
