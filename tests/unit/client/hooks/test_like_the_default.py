"""The boto3 session of a ``QueueTrainingJobSession`` that is given none."""

from pathlib import Path

import boto3
import pytest
from trainmaster_client.hooks.botocore_events import like_the_default


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def set_up() -> None:
    boto3.setup_default_session(
        aws_access_key_id="AKIADEFAULT", aws_secret_access_key="secret", region_name="eu-west-1"
    )


def told(session: boto3.Session) -> tuple[str, str | None, str]:
    credentials = session.get_credentials()
    assert credentials is not None
    return session.profile_name, session.region_name, credentials.access_key


def test_it_signs_with_the_keys_that_the_default_session_was_set_up_with() -> None:
    set_up()
    assert told(like_the_default()) == ("default", "eu-west-1", "AKIADEFAULT")


def test_it_has_the_profile_of_the_default_session(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[profile gpu]\nregion = us-west-2\n")
    (tmp_path / "credentials").write_text("[gpu]\naws_access_key_id = AKIAGPU\naws_secret_access_key = s\n")
    boto3.setup_default_session(profile_name="gpu")
    assert told(like_the_default()) == ("gpu", "us-west-2", "AKIAGPU")


def test_without_a_default_session_it_is_one_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert told(like_the_default())[2] == "AKIAENV"
    assert boto3.DEFAULT_SESSION is None


def test_what_hears_its_calls_does_not_hear_those_of_the_default_session() -> None:
    set_up()
    heard: list[str] = []
    event = "provide-client-params.logs.GetLogEvents"
    own = like_the_default()
    own.events.register(event, lambda **_: heard.append("heard"))
    assert boto3.DEFAULT_SESSION is not None
    for session in (boto3.DEFAULT_SESSION, own):
        client = session.client("logs")
        client.meta.events.emit(event)
        assert heard == (["heard"] if session is own else [])
