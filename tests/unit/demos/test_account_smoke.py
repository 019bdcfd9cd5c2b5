"""``make account-smoke`` without an account: what it asks for, what it judges, what it deletes."""

from dataclasses import dataclass, field
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError
from trainmaster_client.account_check.examination import FACTS
from trainmaster_client.account_check.facts import Word
from trainmaster_client.report import Report

from demos.account_smoke import JOBS, expected_alarms, note
from demos.deployed.account_looks import StackLooks
from demos.deployed.account_stack import SmokeStack
from demos.deployed.lent import Lent, MissingMeansError, lent_by
from demos.deployed.sam import SamError
from demos.stage.processes import ROOT

ARN = "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Admin_0a1b/ann@example.com"
FORBIDDEN = {"status": 403, "error_type": "ForbiddenException", "text": "Forbidden"}
OURS = [{"Key": "trainmaster-check", "Value": "smoke"}]


@pytest.mark.parametrize(
    ("fact", "records", "word"),
    [
        pytest.param("customer-key", {}, Word.SKIPPED, id="no key was lent"),
        pytest.param(
            "customer-key",
            {"customer_key": {"state": "failed", "code": "failed-to-start", "reason": "AccessDenied"}},
            Word.OK,
            id="a key without a grant",
        ),
        pytest.param(
            "customer-key",
            {"customer_key": {"state": "pending", "code": "refused", "reason": "AccessDenied"}},
            Word.OK,
            id="a key without a grant, tried again",
        ),
        pytest.param(
            "customer-key",
            {"customer_key": {"state": "failed", "code": "internal", "reason": "?"}},
            Word.DIFFERS,
            id="a key that fails the job later",
        ),
        pytest.param("private-api", {"refusals": {"unsigned": FORBIDDEN}}, Word.OK, id="refused at the door"),
        pytest.param(
            "private-api",
            {"refusals": {"unsigned": FORBIDDEN | {"status": 502}}},
            Word.DIFFERS,
            id="refused by the function",
        ),
        pytest.param("user-arn", {"user_arn": {"sts": ARN, "api": ARN}}, Word.OK, id="an SSO session"),
        pytest.param(
            "user-arn",
            {"user_arn": {"sts": ARN, "api": ARN.replace("assumed-role/", "assumed-role/a/path/")}},
            Word.DIFFERS,
            id="a session with the path of its role",
        ),
        pytest.param("embedded-metrics", {"metric_seconds": None}, Word.DIFFERS, id="no metrics"),
        pytest.param("embedded-metrics", {"metric_seconds": 20.0}, Word.OK, id="metrics soon"),
        pytest.param(
            "operator-alarms",
            {"expected_alarms": ["operator-x"], "operator_alarms": {}},
            Word.DIFFERS,
            id="an alarm that is not there",
        ),
        pytest.param(
            "operator-alarms",
            {"expected_alarms": ["operator-x"], "operator_alarms": {"operator-x": "ALARM"}},
            Word.DIFFERS,
            id="an alarm that rings",
        ),
        pytest.param("dead-letters", {"dead_letters": {"queue": 1}}, Word.DIFFERS, id="a dead letter"),
        pytest.param("dead-letters", {"dead_letters": {"queue": 0}}, Word.OK, id="no dead letters"),
    ],
)
def test_the_verdict_is_what_the_code_could_live_with(fact: str, records: dict[str, Any], word: Word) -> None:
    verdict = next(row for row in FACTS if row.id == fact).judge(records)
    assert verdict is not None
    assert verdict.word is word


def test_all_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(MissingMeansError) as refused:
        lent_by({"TRAINMASTER_ROLE": "training"})
    said = str(refused.value)
    assert "TRAINMASTER_ROLE is wrong" in said
    assert "TRAINMASTER_BUCKET is missing" in said
    assert "TRAINMASTER_VPC_ENDPOINT is missing" in said


def test_without_credentials_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(MissingMeansError, match="no AWS account can be reached"):
        lent_by(
            {
                "TRAINMASTER_ROLE": "arn:aws:iam::111122223333:role/training",
                "TRAINMASTER_BUCKET": "training-data",
                "TRAINMASTER_VPC_ENDPOINT": "vpce-0a1b2c3d",
            }
        )


def test_the_alarms_that_are_expected_are_those_of_the_template() -> None:
    names = expected_alarms("s")
    assert "operator-s-api-errors" in names
    assert len(names) == len(set(names)) >= 15


def test_no_fact_passes_without_records() -> None:
    report = Report("account-smoke")
    note(report)
    assert not report.ok
    assert {check.id for check in report.checks if check.ok} <= {"capacity"}


def test_a_step_is_counted_at_most_two_at_once() -> None:
    def view(*steps: tuple[str, str]) -> dict[str, Any]:
        return {"state": "completed", "history": [{"at": at, "to": state} for at, state in steps]}

    jobs = {
        job.label: view(("10:00", "running"), ("10:05", "completed"), ("10:06", "completed")) for job in JOBS
    }
    report = Report("account-smoke")
    report.facts["jobs"] = jobs
    note(report)
    assert next(check for check in report.checks if check.id == "capacity").ok is False


class RefusedError(ClientError):
    def __init__(self, code: str) -> None:
        super().__init__({"Error": {"Code": code, "Message": "no"}}, "Operation")


@dataclass(slots=True)
class Account:
    """The services that a deletion asks; one stack or none, and what it keeps."""

    tags: list[dict[str, str]] | None
    kept: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    def client(self, _service: str) -> Any:
        return self

    @property
    def exceptions(self) -> Any:
        return self

    ResourceNotFoundException = KMSInvalidStateException = NotFoundException = RefusedError

    def describe_stacks(self, **_: Any) -> Any:
        if self.tags is None:
            raise RefusedError("ValidationError")
        return {"Stacks": [{"StackStatus": "CREATE_COMPLETE", "Tags": self.tags}]}

    def delete_stack(self, **stack: str) -> None:
        self.deleted.append(stack["StackName"])
        self.tags = None

    def get_paginator(self, _operation: str) -> Any:
        return self

    def paginate(self, **_: Any) -> Any:
        found = {"Table": "smoke-Table-1", "Key": "key-1", "ApiFunction": "f"}
        return [
            {
                "StackResourceSummaries": [
                    {"LogicalResourceId": name, "PhysicalResourceId": one} for name, one in found.items()
                ]
            }
        ]

    def get_resources(self, **_: Any) -> Any:
        return {"ResourceTagMappingList": [{"ResourceARN": arn} for arn in self.kept]}

    def get_waiter(self, _name: str) -> Any:
        return self

    def wait(self, **_: Any) -> None: ...

    def update_table(self, **_: Any) -> None: ...

    def delete_table(self, **table: str) -> None:
        self.deleted.append(table["TableName"])

    def schedule_key_deletion(self, **key: Any) -> None:
        self.deleted.append(key["KeyId"])


def stack_in(account: Account) -> SmokeStack:
    lent = Lent(
        session=account,  # type: ignore[arg-type]  # what it asks of a session
        account="111122223333",
        region="us-east-1",
        caller=ARN,
        principal="arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Admin_0a1b",
        role="arn:aws:iam::111122223333:role/training",
        bucket="training-data",
        vpc_endpoint="vpce-0a1b2c3d",
        key=None,
    )
    return SmokeStack(lent=lent, say=lambda _: None, pause=lambda _: None)


def test_the_stack_goes_with_the_table_and_the_key_that_it_would_keep() -> None:
    account = Account(tags=OURS)
    stack_in(account).delete()
    assert account.deleted == ["trainmaster-smoke", "smoke-Table-1", "key-1"]


def test_a_stack_of_somebody_else_is_not_touched() -> None:
    account = Account(tags=[])
    with pytest.raises(SamError, match="was not made by account-smoke"):
        stack_in(account).delete()
    assert account.deleted == []


def test_what_a_killed_run_left_without_a_stack_is_found_by_its_tag() -> None:
    table = "arn:aws:dynamodb:us-east-1:111122223333:table/smoke-Table-0"
    account = Account(tags=None, kept=[table])
    stack_in(account).delete()
    assert account.deleted == ["smoke-Table-0"]


def test_the_parameters_are_parameters_of_the_template() -> None:
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    for name in stack_in(Account(tags=None)).parameters():
        assert f"\n  {name}:\n" in text


@dataclass(slots=True)
class Alarms:
    """A session whose CloudWatch knows one alarm, in these states one after the other; the last one stays."""

    states: list[str]
    pauses: list[float] = field(default_factory=list)

    def client(self, service: str) -> "Alarms":
        assert service == "cloudwatch"
        return self

    def describe_alarms(self, *, AlarmNamePrefix: str) -> dict[str, Any]:  # noqa: N803 - as boto3 has it
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return {"MetricAlarms": [{"AlarmName": f"{AlarmNamePrefix}first-unseen", "StateValue": state}]}


@pytest.mark.parametrize(
    ("states", "found", "pauses"),
    [
        pytest.param(["OK"], "OK", 0, id="quiet"),
        pytest.param(["INSUFFICIENT_DATA"], "INSUFFICIENT_DATA", 0, id="no data yet"),
        pytest.param(["ALARM", "ALARM", "OK"], "OK", 2, id="rang while the stack was made"),
        pytest.param(["ALARM"], "ALARM", 60, id="rings on"),
    ],
)
def test_an_alarm_that_rang_while_the_stack_was_made_has_ten_minutes_to_end(
    states: list[str], found: str, pauses: int
) -> None:
    alarms = Alarms(states)
    looks = StackLooks(session=cast(boto3.Session, alarms), api_url="", stack="x", pause=alarms.pauses.append)
    assert looks.operator_alarms() == {"operator-x-first-unseen": found}
    assert alarms.pauses == [10.0] * pauses
