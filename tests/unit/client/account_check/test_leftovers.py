"""What a killed run left is found by name and tag, and removed as far as IAM allows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from trainmaster_client.account_check.leftovers import Leftovers
from trainmaster_client.account_check.service_calls import (
    MissingRightError,
    Said,
    ServiceCalls,
    missing_action,
)

OURS = "trainmaster-check-run-ends"
EMPTY: Mapping[str, Any] = {
    "ListTrainingJobs": {"TrainingJobSummaries": []},
    "ListRules": {"Rules": []},
    "ListQueues": {},
    "DescribeAlarms": {"MetricAlarms": []},
    "ListObjectsV2": {},
}
DENIED = (
    "AccessDeniedException",
    "User: arn:x is not authorized to perform: events:ListRules on resource: *",
)


@dataclass(slots=True, kw_only=True)
class ScriptedCalls(ServiceCalls):
    """Answers from a table: a result, or (code, text); what is not in it succeeds with nothing."""

    answers: dict[str, Any]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def ask(self, service: str, operation: str, **params: Any) -> Said:
        assert service
        self.asked.append((operation, params))
        answer = self.answers.get(operation, {})
        code, text = answer if isinstance(answer, tuple) else (None, "")
        return Said(
            operation=operation,
            at=datetime(2026, 11, 22, tzinfo=UTC),
            seconds=0.1,
            result=answer if code is None else {},
            code=code,
            text=text,
            status=200 if code is None else 400,
        )


def scripted(**answers: Any) -> ScriptedCalls:
    session = boto3.Session(region_name="us-east-1")
    return ScriptedCalls(session=session, notes=[], pause=lambda _: None, answers={**EMPTY, **answers})


def removed(calls: ScriptedCalls) -> Leftovers:
    found = Leftovers(calls=calls, bucket=None)
    found.remove()
    return found


def listed(status: str, name: str = OURS, **more: Any) -> dict[str, Any]:
    one = {"TrainingJobName": name, "TrainingJobArn": f"arn:{name}", "TrainingJobStatus": status, **more}
    return {"TrainingJobSummaries": [one]}


def tags(key: str) -> dict[str, Any]:
    return {"Tags": [{"Key": key, "Value": "run"}]}


def test_a_job_that_runs_is_stopped() -> None:
    calls = scripted(ListTrainingJobs=listed("InProgress"), ListTags=tags("trainmaster-check"))
    assert removed(calls).removed == [f"training job {OURS}"]
    assert ("StopTrainingJob", {"TrainingJobName": OURS}) in calls.asked


def test_a_job_of_somebody_else_that_has_such_a_name_is_left_alone() -> None:
    calls = scripted(ListTrainingJobs=listed("InProgress"), ListTags=tags("team"))
    assert removed(calls).removed == []


def test_a_job_that_only_has_the_words_in_its_name_is_not_even_looked_at() -> None:
    calls = scripted(ListTrainingJobs=listed("InProgress", name=f"my-{OURS}"))
    assert removed(calls).removed == []
    assert "ListTags" not in [operation for operation, _ in calls.asked]


def test_instances_that_are_kept_warm_are_let_go() -> None:
    warm = listed("Completed", WarmPoolStatus={"Status": "Available"})
    calls = scripted(ListTrainingJobs=warm, ListTags=tags("trainmaster-check"))
    removed(calls)
    asked = dict(calls.asked)["UpdateTrainingJob"]
    assert asked == {"TrainingJobName": OURS, "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}


def test_what_may_not_be_removed_is_said_and_the_rest_is_removed() -> None:
    calls = scripted(ListRules=DENIED, ListQueues={"QueueUrls": ["https://sqs/1/trainmaster-check-run"]})
    found = removed(calls)
    assert found.kept == ["rules: events:ListRules is not allowed"]
    assert found.removed == ["queue trainmaster-check-run"]


def test_throttling_is_waited_for() -> None:
    calls = scripted(ListRules=("ThrottlingException", "Rate exceeded"))
    assert removed(calls).kept == ["rules: ListRules: ThrottlingException: Rate exceeded"]
    assert [operation for operation, _ in calls.asked].count("ListRules") > 3


def test_the_action_that_is_missing_is_the_one_that_the_text_names() -> None:
    said = scripted(
        CreateTrainingJob=("AccessDeniedException", "... not authorized to perform: iam:PassRole on x")
    )
    answer = said.ask("sagemaker", "CreateTrainingJob")
    assert missing_action("sagemaker", answer) == "iam:PassRole"
    plain = scripted(CreateQueue=("AccessDenied", "Access to the resource is denied."))
    with pytest.raises(MissingRightError) as refused:
        plain.get("sqs", "CreateQueue")
    assert refused.value.action == "sqs:CreateQueue"
