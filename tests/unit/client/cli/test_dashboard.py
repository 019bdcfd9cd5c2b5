"""``trainmaster dashboard``: a browser where it is seen, else the link; and what to install."""

from unittest.mock import Mock, patch

import pytest
from trainmaster_client.cli.dashboard import is_at_a_desk, tell
from trainmaster_client.cli.local_gateway import require_packages
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.gateway.gateway_files import GatewayState

STATE = GatewayState(pid=7, port=4601, token="told", api_url="https://one/prod")
LINK = "http://127.0.0.1:4601/ui/#token=once"


@pytest.mark.parametrize(
    ("env", "platform", "expected"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "darwin", True),
        ({}, "linux", False),
        ({"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, "linux", False),
        ({"SSH_TTY": "/dev/ttys001"}, "darwin", False),
        ({"DISPLAY": ":0", "JUPYTERHUB_USER": "ada"}, "linux", False),
        ({"DISPLAY": ":0", "SAGEMAKER_APP_TYPE_LOWERCASE": "jupyterlab"}, "linux", False),
    ],
)
def test_a_browser_is_opened_only_where_it_is_seen(env, platform, expected):
    assert is_at_a_desk(env, platform) is expected


def test_without_a_desk_the_link_alone_is_on_standard_output(capsys):
    tell(STATE, LINK, open_browser=None)
    said = capsys.readouterr()
    assert said.out == f"{LINK}\n"
    assert "/proxy/4601" in said.err


def test_a_browser_that_opens_takes_the_link_and_it_is_not_printed(capsys):
    browser = Mock(return_value=True)
    tell(STATE, LINK, open_browser=browser)
    said = capsys.readouterr()
    browser.assert_called_once_with(LINK)
    assert said.out == ""
    assert "trainmaster gateway --print-env --port 4601" in said.err
    assert "once" not in said.err


def test_a_browser_that_does_not_open_leaves_the_link(capsys):
    tell(STATE, LINK, open_browser=lambda _: False)
    assert capsys.readouterr().out == f"{LINK}\n"


def test_without_the_packages_it_says_what_to_install():
    with (
        patch("importlib.util.find_spec", return_value=None),
        pytest.raises(InvalidArgumentError) as refused,
    ):
        require_packages("dashboard", extra="dashboard")
    assert "pip install 'starlette" in str(refused.value)
