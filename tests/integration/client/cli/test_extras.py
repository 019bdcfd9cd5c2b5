"""Commands whose packages are an extra say how to get it; the screen needs a terminal."""

import importlib.util

import pytest
from trainmaster_client.errors.missing_packages import install_hint

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi


@pytest.mark.parametrize(("command", "package"), [("top", "textual"), ("mcp", "mcp")])
def test_without_the_extra_it_says_what_to_install(
    command: str, package: str, trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == package else there(name, *more)
    )
    ran = trainmaster(command)
    assert (ran.code, ran.out, api.received) == (2, "", [])
    assert ran.err == (
        f"trainmaster: trainmaster {command} needs a package that is not installed: {package}. "
        f"{install_hint(command)}\n"
    )
    assert f"pip install '{package}" in ran.err


def test_a_pipe_is_no_screen(trainmaster: Trainmaster, api: FakeApi) -> None:
    ran = trainmaster("top")
    assert (ran.code, api.received) == (2, [])
    assert "trainmaster top needs a terminal. Into a pipe goes: trainmaster queue --watch" in ran.err
