"""``trainmaster local up`` where the twin's packages are not all there."""

from importlib import metadata

import pytest
from trainmaster_client.cli.training_code import checkout

from tests.integration.client.command import Ran, Trainmaster
from tests.markdown import ROOT

LISTED = [
    "boto3>=1.43",
    "moto==5.2.5; extra == 'local'",
    "no-such-twin[server]>=2,<3; extra == 'local'",
    'not.there-either ; extra == "local"',
    "no-such-sdk<3; extra == 'sdk2'",
]


def test_missing_packages_are_named_in_one_line_with_the_way_to_get_them(
    trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _name: LISTED)
    assert trainmaster("local", "up", "--port", "0") == Ran(
        2,
        "",
        "trainmaster: The twin needs packages that are not installed: no-such-twin, not.there-either. "
        "Run: pip install 'moto==5.2.5' 'no-such-twin[server]>=2,<3' not.there-either\n",
    )


def test_in_a_checkout_its_own_twin_is_the_one() -> None:
    assert checkout() == ROOT
