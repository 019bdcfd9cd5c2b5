"""Airflow's hook, operators and triggers with the queue. Only for `make test-clients`: its pins are its own.

Tasks run without a scheduler: operators are executed, and triggers run, as a worker and a triggerer would.
"""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

from tests.airflow.airflow_settings import SETTINGS

collect_ignore_glob = [] if importlib.util.find_spec("airflow") else ["test_*.py"]

_HOME = "AIRFLOW_HOME"
if not collect_ignore_glob:  # read when Airflow is imported
    os.environ |= {**SETTINGS, _HOME: tempfile.mkdtemp(prefix="airflow-")}


@pytest.fixture(scope="session", autouse=True)
def home() -> Iterator[None]:
    yield
    shutil.rmtree(os.environ[_HOME])
