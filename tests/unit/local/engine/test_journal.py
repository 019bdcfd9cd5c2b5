"""The journal's lines, and the registry of errors on demand."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from local.clock import TwinClock
from local.faults import Faults
from local.journal import CallEntry, Journal, ProcessEntry, shortened
from local.wire import Principal

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ALICE = Principal(arn="arn:aws:iam::1:user/alice", account_id="1", access_key_id="AKIA")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_call_and_a_process_event_are_lines_in_order_with_exactly_their_fields(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", TwinClock(manual=True, start=NOON))
    journal.call(
        CallEntry(
            principal=ALICE,
            service="sqs",
            operation="SendMessage",
            params={"MessageBody": "x"},
            status=200,
            error_code=None,
        )
    )
    journal.process(ProcessEntry(training_job="job1", host="algo-1", event="signal", pid=7, signal="SIGTERM"))
    call, process = lines(tmp_path / "j")
    assert call.pop("at").endswith("Z")
    assert call == {
        "seq": 1,
        "clock": "2026-01-01T12:00:00.000Z",
        "kind": "call",
        "principal": "arn:aws:iam::1:user/alice",
        "service": "sqs",
        "operation": "SendMessage",
        "params": {"MessageBody": "x"},
        "status": 200,
        "error_code": None,
    }
    assert process.pop("at").endswith("Z")
    assert process == {
        "seq": 2,
        "clock": "2026-01-01T12:00:00.000Z",
        "kind": "process",
        "training_job": "job1",
        "host": "algo-1",
        "event": "signal",
        "pid": 7,
        "signal": "SIGTERM",
        "exit_code": None,
    }
    journal.close()


def test_a_caller_who_is_not_authenticated_is_null(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", TwinClock(manual=True, start=NOON))
    journal.call(
        CallEntry(
            principal=None,
            service="execute-api",
            operation="POST /add-job",
            params={},
            status=403,
            error_code="InvalidSignatureException",
        )
    )
    assert lines(tmp_path / "j")[0]["principal"] is None
    journal.close()


def test_long_values_are_cut_and_say_what_is_missing() -> None:
    assert shortened({"a": "x" * 1500, "b": [1] * 101, "c": b"123"}) == {
        "a": "x" * 1024 + "... (476 more characters)",
        "b": [1] * 100 + ["... (1 more)"],
        "c": "(3 bytes)",
    }


ANNA, BERT = (f"arn:aws:iam::123456789012:user/{name}" for name in ("anna", "bert"))


def test_an_error_on_demand_for_one_caller_leaves_the_others_alone() -> None:
    faults = Faults()
    faults.set("CreateTrainingJob", "AccessDenied", times=2, principal=BERT)
    faults.set("CreateTrainingJob", "ThrottlingException")
    assert faults.take("CreateTrainingJob", BERT) == "AccessDenied"
    assert faults.take("CreateTrainingJob", ANNA) == "ThrottlingException"
    assert faults.take("CreateTrainingJob", ANNA) is None
    assert faults.take("CreateTrainingJob", BERT) == "AccessDenied"


def test_an_error_on_demand_is_used_up() -> None:
    faults = Faults()
    faults.set("CreateTrainingJob", "ThrottlingException", times=2)
    assert faults.take("StopTrainingJob", ANNA) is None
    taken = [faults.take("CreateTrainingJob", ANNA) for _ in range(3)]
    assert taken == ["ThrottlingException", "ThrottlingException", None]


def test_a_second_error_on_demand_replaces_the_first_of_its_operation_and_caller() -> None:
    faults = Faults()
    faults.set("CreateTrainingJob", "ThrottlingException", times=9)
    faults.set("CreateTrainingJob", "ResourceLimitExceeded")
    faults.set("StopTrainingJob", "ThrottlingException")
    assert faults.take("CreateTrainingJob", ANNA) == "ResourceLimitExceeded"
    assert faults.take("CreateTrainingJob", ANNA) is None
    assert faults.take("StopTrainingJob", ANNA) == "ThrottlingException"


def test_errors_on_demand_of_one_operation_or_of_all_are_ended() -> None:
    faults = Faults()

    def all_set() -> None:
        faults.set("CreateTrainingJob", "ThrottlingException", times=9)
        faults.set("CreateTrainingJob", "AccessDenied", times=9, principal=BERT)
        faults.set("StopTrainingJob", "ThrottlingException", times=9)

    all_set()
    faults.end("CreateTrainingJob", principal=BERT)
    assert faults.take("CreateTrainingJob", BERT) == "ThrottlingException"
    all_set()
    faults.end("CreateTrainingJob")
    assert faults.take("CreateTrainingJob", BERT) is None
    assert faults.take("StopTrainingJob", ANNA) == "ThrottlingException"
    all_set()
    faults.clear()
    assert faults.take("CreateTrainingJob", ANNA) is None
    assert faults.take("StopTrainingJob", ANNA) is None


def test_an_error_on_demand_happens_at_least_once() -> None:
    with pytest.raises(ValueError, match="times must be 1 or more: 0"):
        Faults().set("CreateTrainingJob", "ThrottlingException", times=0)
