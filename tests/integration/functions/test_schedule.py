"""The schedule function: its log says what was left for later, and why."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from trainmaster.core.errors import UnavailableError
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.pass_summary import Summary

from functions.schedule import app


class Context:
    function_name = "schedule"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:us-east-1:111122223333:function:schedule"
    aws_request_id = "request"

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return 120_000


def test_what_is_postponed_is_one_line_with_reason_and_cause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused = UnavailableError("CloudWatch refused DeleteAlarms: AccessDenied")
    refused.__cause__ = PermissionError("no policy allows it")
    wiring = mock.MagicMock()
    wiring.return_value.scheduler.run.return_value = Summary(postponed=[refused])
    wiring.return_value.deadline.return_value = Deadline(lambda: timedelta(seconds=90))
    wiring.return_value.scheduler.clock.return_value = datetime(2026, 11, 22, tzinfo=UTC)
    wiring.return_value.scheduler.stack = "prod"
    monkeypatch.setattr(app, "wiring", wiring)
    event = {"Records": [{"messageId": "1", "body": '{"version": 1, "pool": "gpu"}'}]}
    context: Any = Context()
    assert app.handler(event, context) == {"batchItemFailures": []}
    (line,) = [vars(record) for record in caplog.records if record.message == "postponed"]
    assert line["pool"] == "gpu"
    assert line["reason"] == "CloudWatch refused DeleteAlarms: AccessDenied"
    assert line["cause"] == "no policy allows it"
