"""What the command line loads before it answers: a command should not take seconds to begin."""

import os
import subprocess
import sys

import pytest

from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, FakeApi

HEAVY = ("aws_lambda_powertools", "flask", "local", "moto", "numpy", "pandas", "sagemaker", "torch")
"""Each takes longer than all of ours: SDKs, the twin and what it is made of, the plane's own packages."""
REPORTING = f"""
import sys
from trainmaster_client.cli import main
try:
    main()
finally:
    print("loaded", [name for name in {HEAVY} if name in sys.modules])
"""


@pytest.mark.parametrize("arguments", [["--help"], ["queue", "--json"]])
def test_neither_an_sdk_nor_the_twin_is_loaded(api: FakeApi, arguments: list[str]) -> None:
    somebody = {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": REGION,
        "TRAINMASTER_API_URL": api.url,
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-c", REPORTING, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, env=somebody, check=False)
    assert ran.stdout.splitlines()[-1] == "loaded []", ran.stderr
    assert len(api.received) == (arguments != ["--help"])
