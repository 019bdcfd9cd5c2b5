"""L4: aiobotocore pins a botocore of its own, so its tests run in an environment of theirs."""

import os
import subprocess

import pytest

from tests.markdown import ROOT


@pytest.mark.thorough
def test_L4_aiobotocore_describes_waiting_and_preempted_jobs_as_in_progress() -> None:
    """``tests/aio``; the environment is made where there is none, which takes a minute."""
    for command in (
        ["make", ".venv-aio/.ready"],
        [".venv-aio/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/aio"],
    ):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        ran = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
