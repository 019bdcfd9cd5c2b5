"""aiobotocore and aioboto3 with the hooks. Only for `make test-clients`: they pin a botocore of their own."""

import importlib.util
import os
from collections.abc import Iterator

import pytest
from trainmaster_client.hook import uninstall

from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, FakeApi, running_fake_api

collect_ignore_glob = [] if importlib.util.find_spec("aiobotocore") else ["test_*.py"]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keys and a region for whoever makes a session; where AWS would be nothing listens."""
    for name, value in (
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_CONFIG_FILE", os.devnull),
        ("AWS_SHARED_CREDENTIALS_FILE", os.devnull),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_MAX_ATTEMPTS", "1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    yield
    uninstall()


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running_fake_api() as running:
        yield running
