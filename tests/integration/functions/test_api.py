"""The api function: one line a call, a metric for what is an operator's business, no SageMaker."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from trainmaster.bootstrap import Wiring

from functions.api import app

ROOT = Path(__file__).parents[3]


class Context:
    function_name = "api"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:us-east-1:111122223333:function:api"
    aws_request_id = "request"

    def get_remaining_time_in_millis(self) -> int:
        return 15_000


@pytest.fixture
def answer_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Call the function when the API answers with a status."""
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "trainmaster")
    event = {
        "httpMethod": "POST",
        "path": "/add-job",
        "headers": {"x-amz-security-token": "SECRET"},
        "body": "SECRET",
        "requestContext": {"identity": {"userArn": "arn:someone"}},
    }

    def call(status: int) -> None:
        wiring = Wiring(mock.Mock(stack="prod"))
        wiring.api = lambda _event, _context: {"statusCode": status, "body": "SECRET"}
        monkeypatch.setattr(app, "wiring", lambda: wiring)
        context: Any = Context()
        assert app.handler(event, context)["statusCode"] == status

    return call


def test_a_call_is_one_line_without_headers_and_bodies(
    answer_with: Callable[[int], None],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer_with(201)
    (record,) = caplog.records
    fields = vars(record)
    assert {name: fields[name] for name in ("method", "path", "status", "caller")} == {
        "method": "POST",
        "path": "/add-job",
        "status": 201,
        "caller": "arn:someone",
    }
    assert "SECRET" not in str(fields)
    assert "ServerErrors" not in capsys.readouterr().out


@pytest.mark.parametrize("status", [500, 503])
def test_G4_a_server_error_is_counted(
    answer_with: Callable[[int], None], capsys: pytest.CaptureFixture[str], status: int
) -> None:
    answer_with(status)
    (metric,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert metric["ServerErrors"] == [1.0]
    assert metric["service"] == "prod"
    assert metric["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "trainmaster"


def test_the_function_never_loads_the_sagemaker_model_and_reads_nothing_at_import() -> None:
    """Serves a call in a fresh process without any setting, then tells what it has loaded."""
    script = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import functions.api.app
from trainmaster.bootstrap import Wiring
from trainmaster.settings import Settings
wiring = Wiring(Settings(table="t", wake_up_queue_url="https://sqs/q", stack="s", account_id="1",
                         admin_principal_arns=(), retention_days=1,
                         alarm_topic_arn="", mail_topic_arn=""))
assert wiring.api is not None
wiring.reader, wiring.store, wiring.policies, wiring.wake_ups
print(json.dumps([path for path in opened if "/botocore/data/" in path]))
"""
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env = keep | {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'layers' / 'trainmaster'}",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd=ROOT, capture_output=True, text=True, check=True
    )
    services = {path.split("/botocore/data/")[1].split("/")[0] for path in json.loads(done.stdout)}
    assert {"dynamodb", "sqs"} <= services
    assert "sagemaker" not in services
