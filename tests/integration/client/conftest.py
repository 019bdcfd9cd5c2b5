"""A fake API and the environment of a user who has credentials for it."""

import os
import sys
from collections.abc import Iterator

import boto3
import pytest
from trainmaster_client.cli import main

from tests.integration.client.command import Ran, Trainmaster
from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, FakeApi, running_fake_api

# The SDK's documented way to silence its notice; it is read when the SDK is imported.
os.environ.setdefault("SAGEMAKER_SUPPRESS_V2_WARNING", "1")


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running_fake_api() as running:
        yield running


@pytest.fixture
def aws_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "TRAINMASTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def boto_session(aws_environment: None) -> boto3.Session:
    return boto3.Session()


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have one; readline sets one for the workers of pytest-xdist."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def trainmaster(
    api: FakeApi, aws_environment: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Trainmaster:
    monkeypatch.setenv("TRAINMASTER_API_URL", api.url)
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["trainmaster", *arguments])
        with pytest.raises(SystemExit) as exited:
            main()
        captured = capsys.readouterr()
        return Ran(int(exited.value.code or 0), captured.out, captured.err)

    return run
