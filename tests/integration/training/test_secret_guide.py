"""What the guide says to do instead of sending a secret with the job."""

import os
import runpy

import boto3
import pytest
from moto import mock_aws
from trainmaster.core.policy.job_rules import GuardMode, Rules
from trainmaster.core.request.strict_json import JsonObject
from trainmaster.core.rules.secrets import check_secrets

from tests.markdown import ROOT

SCRIPT = ROOT / "docs/examples/training/secret_by_name.py"


def test_a_job_that_names_its_secret_is_taken_and_reads_it_in_the_container(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment: JsonObject = {"HF_SECRET_NAME": "prod/hf"}
    assert list(check_secrets({"Environment": environment}, Rules(secrets=GuardMode.ENFORCE))) == []
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("HF_SECRET_NAME", "prod/hf")
    monkeypatch.setenv("HF_TOKEN", "")  # put back afterwards
    with mock_aws():
        boto3.client("secretsmanager").create_secret(Name="prod/hf", SecretString="kept elsewhere")
        runpy.run_path(str(SCRIPT))
    assert os.environ["HF_TOKEN"] == "kept elsewhere"
