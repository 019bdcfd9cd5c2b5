"""L5: Airflow pins packages of its own, so its tests run in an environment of theirs."""

import os
import subprocess

import pytest

from tests.markdown import ROOT


@pytest.mark.thorough
def test_L5_tasks_of_airflow_wait_with_their_jobs_and_end_with_them() -> None:
    """``tests/airflow``; the environment is made where there is none, which takes two minutes."""
    for command in (
        ["make", ".venv-airflow/.ready"],
        [".venv-airflow/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/airflow"],
    ):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        ran = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
