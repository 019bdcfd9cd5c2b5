"""Airflow's hook, operators and triggers with the queue. Only for `make test-clients`: its pins are its own.

Tasks run without a scheduler: operators are executed, and triggers run, as a worker and a triggerer would.
"""

import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from unittest.mock import patch

import pytest
from botocore.loaders import JSONFileLoader

from tests.airflow.airflow_settings import SETTINGS
from tests.airflow.fake_queue import FakeQueue
from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, FakeApi, running_fake_api
from tests.integration.client.fake_sagemaker import running_sagemaker

collect_ignore_glob = [] if importlib.util.find_spec("airflow") else ["test_*.py"]

_HOME = "AIRFLOW_HOME"
if not collect_ignore_glob:  # read when Airflow is imported
    os.environ |= {**SETTINGS, _HOME: tempfile.mkdtemp(prefix="airflow-")}


@pytest.fixture(scope="session", autouse=True)
def home() -> Iterator[None]:
    yield
    shutil.rmtree(os.environ[_HOME])


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """With the keys of the Airflow connection; those of the environment are wrong."""
    with running_fake_api() as running:
        connection = {"conn_type": "aws", "login": ACCESS_KEY, "password": SECRET_KEY}
        for name, value in (
            ("AIRFLOW_CONN_AWS_DEFAULT", json.dumps({**connection, "extra": {"region_name": REGION}})),
            ("AWS_ACCESS_KEY_ID", "AKIDWRONG"),
            ("AWS_SECRET_ACCESS_KEY", "wrong"),
            ("AWS_DEFAULT_REGION", "us-west-2"),
            ("AWS_CONFIG_FILE", os.devnull),
            ("AWS_SHARED_CREDENTIALS_FILE", os.devnull),
            ("TRAINMASTER_API_URL", running.url),
        ):
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
        for module in ("training_operator", "training_trigger"):
            monkeypatch.setattr(f"trainmaster_client.airflow.{module}.FIRST_POLL_SECONDS", 0.001)
        yield running


@pytest.fixture(autouse=True, scope="module")
def service_models() -> Iterator[None]:
    """Read once: each try has a session of its own, which takes 0.3 s for SageMaker's."""
    read = cache(JSONFileLoader().load_file)
    with patch.object(JSONFileLoader, "load_file", lambda _, path: read(path)):
        yield


@pytest.fixture
def queue(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeQueue]:
    with running_sagemaker() as sagemaker:
        monkeypatch.setenv("AWS_ENDPOINT_URL", sagemaker.url)
        found = FakeQueue(sagemaker)
        found.serve(api)
        yield found
