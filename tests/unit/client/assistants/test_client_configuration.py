"""The configuration in the guide starts a command that there is."""

import json
import typing

import typer
from trainmaster_client.api import API_URL_VARIABLE
from trainmaster_client.assistants.mcp_server import Grouping
from trainmaster_client.cli.app import app
from trainmaster_client.cli.usage import GroupKey

from tests.markdown import ROOT


def test_the_configuration_names_a_command_and_variables_that_it_reads() -> None:
    document = json.loads((ROOT / "docs/examples/assistants/mcp.json").read_text(encoding="utf-8"))
    (server,) = document["mcpServers"].values()
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group's
    assert server["command"] == "trainmaster"
    assert server["args"][0] in commands
    assert set(server["env"]) == {"AWS_PROFILE", API_URL_VARIABLE}


def test_assistants_group_by_what_the_command_groups_by() -> None:
    assert list(typing.get_args(Grouping)) == [key.value for key in GroupKey]
