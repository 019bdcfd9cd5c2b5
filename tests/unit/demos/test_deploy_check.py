"""What the check of the deployment makes of its facts, and whom an event is carried to."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from boto3 import Session
from rich.console import Console
from trainmaster_client.report import Report

from demos.deploy_check import check, tell
from demos.deployed import emulated_stack, ministack
from demos.deployed.delivery import Delivery
from demos.deployed.emulated_stack import Deployment
from demos.deployed.sam import SamError

Document = dict[str, Any]

STEPS = [
    ("job2", "running"),
    ("job1", "running"),
    ("job1", "preempting"),
    ("job1", "preempted"),
    ("job4", "running"),
    ("job2", "completed"),
    ("job1", "running"),
    ("job4", "completed"),
    ("job3", "running"),
    ("job1", "completed"),
    ("job3", "completed"),
]
FACTS: Document = {
    "stack_status": "CREATE_COMPLETE",
    "resources": [{"logical_id": "Table", "type": "AWS::DynamoDB::Table", "status": "CREATE_COMPLETE"}],
    "outputs": {"ApiUrl": "https://abc-vpce-1.execute-api.us-east-1.amazonaws.com/prod"},
    "api_url_found": "https://abc-vpce-1.execute-api.us-east-1.amazonaws.com/prod",
    "refusals": {
        "unsigned": 403,
        "wrong_secret": "The API refused (403): no match",
        "no_right": "The API refused (403): no policy",
        "root_user": "Forbidden (403): only sessions",
        "no_user_arn": {"function_error": None, "status": 500},
        "items_before": 3,
        "items_after": 3,
    },
    "transitions": [{"job": job, "to": to} for job, to in STEPS],
    "processes": [
        {"kind": "process", "event": "start", "pid": 1},
        {"kind": "process", "event": "start", "pid": 2},
        {"kind": "process", "event": "exit", "pid": 1},
    ],
    "resumption": {"stored": "aa", "first_line": "resumed from checkpoint.txt sha256=aa"},
    "update": {
        "changed": {"RetentionDays": "30"},
        "stack_status": "UPDATE_COMPLETE",
        "environment": {"TRAINMASTER_RETENTION_DAYS": "30"},
        "before": {"job1": "preempted"},
        "after": {"job1": "preempted"},
    },
    "calls": [
        {"operation": "CreateTrainingJob", "access_key_id": "schedule"},
        {"operation": "StopTrainingJob", "access_key_id": "schedule"},
        {"operation": "DescribeTrainingJob", "access_key_id": "event"},
    ],
    "events_failed": [],
    "functions": {
        name: {"runs": 2, "errors": [], "refused": []}
        for name in ("api", "schedule", "reconcile", "on-training-job-event", "on-idle-alarm")
    },
    "dead_letters": {"DoorbellDeadLetterQueue": 0, "ReconcileDeadLetterQueue": 0},
    "alarm": {"idle_since": "2026-11-22T02:00:00Z", "idle_after_ok": None},
    "alarms_left": [],
}


def failed(path: str = "", value: Any = None) -> set[str]:
    """Which checks fail when the fact at a dotted path has another value."""
    facts = copy.deepcopy(FACTS)
    if path:
        *folders, last = path.split(".")
        place = facts
        for name in folders:
            place = place[name]
        place[last] = value
    report = Report("deploy", facts=facts)
    check(report, capacity=2)
    return {one.id for one in report.checks if not one.ok}


def test_the_deployment_as_it_should_be_passes() -> None:
    assert failed() == set()


@pytest.mark.parametrize(
    ("path", "value", "check_id"),
    [
        ("stack_status", "ROLLBACK_COMPLETE", "stack"),
        ("resources", [{"status": "CREATE_FAILED"}], "resources"),
        ("resources", [], "resources"),
        ("api_url_found", "https://elsewhere", "api-url"),
        ("refusals.unsigned", 200, "unsigned-refused"),
        ("refusals.wrong_secret", None, "wrong-secret-refused"),
        ("refusals.no_right", None, "no-right-refused"),
        ("refusals.root_user", "The API refused (500): oh", "root-user-refused"),
        ("refusals.no_user_arn", {"function_error": None, "status": 201}, "no-user-arn-refused"),
        ("refusals.items_after", 4, "refused-writes-nothing"),
        ("resumption.first_line", "started", "resumed-from"),
        ("update.stack_status", "UPDATE_ROLLBACK_COMPLETE", "update"),
        ("update.environment", {"TRAINMASTER_RETENTION_DAYS": "90"}, "update-took"),
        ("update.after", {"job1": "failed"}, "update-lost-nothing"),
        ("functions.schedule.runs", 0, "wake-up-reaches-schedule"),
        ("functions.reconcile.runs", 0, "scheduler-runs-reconcile"),
        ("functions.on-training-job-event.runs", 0, "event-reaches-its-function"),
        ("functions.on-idle-alarm.runs", 0, "alarm-reaches-its-function"),
        ("functions.api.errors", ["Traceback"], "no-function-failed"),
        ("functions.schedule.refused", ["is not authorized to perform: sns:Publish"], "no-right-missing"),
        ("events_failed", ["PermissionError: no"], "events-carried"),
        ("dead_letters.DoorbellDeadLetterQueue", 1, "dead-letters"),
        ("dead_letters.ReconcileDeadLetterQueue", 2, "dead-letters"),
        ("alarm.idle_since", None, "idle-noted"),
        ("alarm.idle_after_ok", "2026-11-22T02:00:00Z", "busy-again"),
        ("alarms_left", ["trainmaster-trainmaster-idle-job1"], "alarms-tidied"),
    ],
)
def test_a_fact_that_is_not_so_fails_its_check(path: str, value: object, check_id: str) -> None:
    assert failed(path, value) == {check_id}


def test_a_second_function_that_starts_jobs_is_noticed() -> None:
    calls = [*FACTS["calls"], {"operation": "CreateTrainingJob", "access_key_id": "api"}]
    assert failed("calls", calls) == {"one-hand-on-the-lever"}


def test_jobs_that_run_in_another_order_are_noticed() -> None:
    late = [step for step in FACTS["transitions"] if step != {"job": "job4", "to": "running"}]
    assert failed("transitions", late) == {"order"}


def test_a_reconcile_that_the_update_ended_is_no_failure() -> None:
    assert failed("dead_letters.ReconcileDeadLetterQueue", 1) == set()


def test_a_third_container_at_once_is_noticed() -> None:
    third = [{"kind": "process", "event": "start", "pid": pid} for pid in (1, 2, 3)]
    assert failed("processes", third) == {"capacity"}


RULE = "arn:aws:events:us-east-1:123456789012:rule/changes"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:hears"
DETAIL = {"TrainingJobName": "job1", "TrainingJobStatus": "InProgress", "SecondaryStatus": "Training"}


class Aws:
    """Session and clients in one: a rule that matches or not, a function that lets it in or not."""

    def __init__(self, *, matches: bool = True, source: str = RULE) -> None:
        self._matches = matches
        self._source = source
        self.invoked: list[Document] = []

    def client(self, _: str) -> "Aws":
        return self

    def list_rules(self) -> Document:
        return {
            "Rules": [
                {"Name": "every-hour", "Arn": "x"},
                {"Name": "changes", "Arn": RULE, "EventPattern": "{}"},
            ]
        }

    def test_event_pattern(self, **_: str) -> Document:
        return {"Result": self._matches}

    def list_targets_by_rule(self, **_: str) -> Document:
        return {"Targets": [{"Arn": FUNCTION}]}

    def get_policy(self, **_: str) -> Document:
        statement = {
            "Principal": {"Service": "events.amazonaws.com"},
            "Condition": {"ArnLike": {"AWS:SourceArn": self._source}},
        }
        return {"Policy": json.dumps({"Statement": [statement]})}

    def invoke(self, **call: Any) -> None:
        self.invoked.append({"function": call["FunctionName"], "event": json.loads(call["Payload"])})


def carried(aws: Any) -> Delivery:
    delivery = Delivery(aws)
    with delivery.running():
        delivery.publish(DETAIL, ["arn:job1"])
    return delivery


def test_an_event_is_carried_to_the_function_of_the_rule_that_matches() -> None:
    aws = Aws()
    delivery = carried(aws)
    assert delivery.failures == []
    (call,) = aws.invoked
    assert call["function"] == FUNCTION
    assert call["event"]["source"] == "aws.sagemaker"
    assert call["event"]["detail"] == DETAIL
    assert delivery.delivered == [
        {
            "training_job": "job1",
            "status": "InProgress",
            "secondary_status": "Training",
            "function": "hears",
        }
    ]


def test_an_event_that_no_rule_wants_is_carried_to_nobody() -> None:
    aws = Aws(matches=False)
    assert carried(aws).delivered == aws.invoked == []


def test_a_function_that_does_not_let_the_rule_in_is_not_invoked_but_told_of() -> None:
    aws = Aws(source="arn:aws:events:us-east-1:123456789012:rule/another")
    (failure,) = carried(aws).failures
    assert failure == f"PermissionError: {FUNCTION} does not let {RULE} invoke it"
    assert aws.invoked == []


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_ministack_that_does_not_start_is_one_message_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ministack, "PROGRAM", program(tmp_path / "ministack", "echo no such module; exit 1"))
    assert tell(tmp_path / "deploy.json", Console()) == 1
    told = "deploy: NOT ok: MiniStack did not start; its log:\nno such module\n\n"
    assert capsys.readouterr().out == told


def test_a_sam_that_does_not_come_to_an_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "sam", "exec sleep 60")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr(emulated_stack, "SAM_SECONDS", 0.5)
    deployment = Deployment(
        ministack=ministack.MiniStack(endpoint_url="http://127.0.0.1:1"), session=Session(), folder=tmp_path
    )
    with pytest.raises(SamError, match=r"timed out after 0\.5 seconds:\n"):
        deployment.build()
