"""Whether somebody notices trouble, as doctor finds out: idle alarms, data of GPUs, mails, limits."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from trainmaster_client.doctor import limits, watching
from trainmaster_client.doctor.findings import Finding, Seen
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import Answer

ROLE = "arn:aws:iam::111122223333:role/train"
TOPIC = "arn:aws:sns:eu-west-1:111122223333:mail"
DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Operation")
GPUS, NO_GPUS = {"ml.g5.xlarge": 2}, {"ml.m5.large": 2}


@dataclass(slots=True)
class Account:
    """Clients whose operations are answered from a table; an exception is raised."""

    answers: Mapping[str, Any]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __getattr__(self, operation: str) -> Any:
        def call(**parameters: Any) -> Any:
            self.asked.append((operation, parameters))
            answer = self.answers.get(operation, DENIED)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    def get_paginator(self, operation: str) -> "Account":
        return Account({"paginate": self._pages(operation)}, self.asked)

    def _pages(self, operation: str) -> Any:
        answer = self.answers.get(operation, DENIED)
        return answer if isinstance(answer, Exception) else [answer]


class SeenThrough(Seen):
    """With one account in place of AWS, and a table in place of the API."""

    account: Account
    api: Mapping[str, Any]

    def client(self, service: str) -> Any:  # noqa: ARG002
        return self.account

    def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        assert (method, body) == ("GET", None)
        return said(self.api[path])


def said(document: Any) -> Answer:
    return Answer(status=200, headers={}, body=json.dumps(document).encode())


def seen(
    policy: dict[str, Any] | None,
    answers: Mapping[str, Any] | None = None,
    *,
    warnings: tuple[dict[str, str], ...] = (),
    pools: tuple[dict[str, Any], ...] = ({"name": "gpus", "capacity": GPUS},),
    api: Mapping[str, Any] | None = None,
) -> SeenThrough:
    found = SeenThrough(
        env={},
        now=lambda: datetime(2026, 11, 22, tzinfo=UTC),
        api_url="https://a1b2c3-vpce-1.execute-api.eu-west-1.amazonaws.com/prod",
        region="eu-west-1",
        answer=said({"pools": list(pools)}),
        policy=None if policy is None else {"policy": policy, "warnings": list(warnings)},
    )
    found.account, found.api = Account(answers or {}), api or {}
    return found


def outcome(finding: Finding) -> tuple[str, Trouble | None]:
    return finding.word, finding.trouble


# ---- idle alarms


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param({}, ("ok", None), id="not written"),
        pytest.param({"idle": {"then": "stop"}}, ("ok", None), id="written"),
        pytest.param({"idle": "off"}, ("warn", Trouble.IDLE_UNWATCHED), id="off"),
        pytest.param({"idle": False}, ("warn", Trouble.IDLE_UNWATCHED), id="off as YAML reads it"),
    ],
)
def test_idle_alarms_that_are_off_are_a_warning(policy: dict[str, Any], expected: tuple[str, Any]) -> None:
    assert outcome(watching.idle_alarms(seen(policy))) == expected


def test_a_policy_older_than_the_default_that_watches_is_a_warning() -> None:
    warning = {"field": "idle", "message": "is missing: no GPUs are watched", "hint": "apply it again"}
    assert outcome(watching.idle_alarms(seen({}, warnings=(warning,)))) == ("warn", Trouble.IDLE_UNWATCHED)


def test_without_gpus_there_is_nothing_to_watch_and_only_admins_see_the_policy() -> None:
    plain = seen({"idle": "off"}, pools=({"name": "cpus", "capacity": NO_GPUS},))
    assert outcome(watching.idle_alarms(plain)) == ("ok", None)
    assert outcome(watching.idle_alarms(seen(None))) == ("skip", None)


# ---- the right to publish


def simulated(word: str) -> dict[str, Any]:
    return {"simulate_principal_policy": {"EvaluationResults": [{"EvalDecision": word}]}}


TEAMS = {"teams": [{"name": "vision", "roles": [ROLE]}]}
LIST = "/jobs?state=running&limit=10"
SILENT: dict[str, Any] = {"unguarded": {"code": "no-metrics", "message": "CloudWatch has no GPUUtilization"}}
QUOTA: dict[str, Any] = {"unguarded": {"code": "alarm-quota", "message": "no more"}}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("allowed", ("ok", None)),
        ("implicitDeny", ("warn", Trouble.GPU_METRICS_MISSING)),
        ("explicitDeny", ("warn", Trouble.GPU_METRICS_MISSING)),
    ],
)
def test_iam_says_whether_a_training_role_may_publish(word: str, expected: tuple[str, Any]) -> None:
    looking = seen(TEAMS, simulated(word))
    assert outcome(watching.gpu_metrics(looking)) == expected
    ((_, question),) = looking.account.asked
    assert (question["PolicySourceArn"], question["ActionNames"]) == (ROLE, ["cloudwatch:PutMetricData"])
    (context,) = question["ContextEntries"]
    assert context["ContextKeyName"] == "cloudwatch:namespace"
    assert context["ContextKeyValues"] == ["/aws/sagemaker/TrainingJobs"]


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        pytest.param([SILENT], ("warn", Trouble.GPU_METRICS_MISSING), id="no data"),
        pytest.param([SILENT, {"unguarded": None}], ("skip", None), id="an earlier attempt had none"),
        pytest.param([QUOTA], ("skip", None), id="no alarms for another reason"),
        pytest.param([], ("skip", None), id="no attempt"),
    ],
)
def test_where_iam_does_not_say_running_jobs_do(
    attempts: list[dict[str, Any]], expected: tuple[str, Any]
) -> None:
    api = {LIST: {"jobs": [{"name": "job1"}, {"name": None}]}, "/jobs/job1": {"attempts": attempts}}
    assert outcome(watching.gpu_metrics(seen(TEAMS, api=api))) == expected
    assert outcome(watching.gpu_metrics(seen(None, api=api))) == expected


# ---- mails


def stack(subscriptions: list[tuple[str, str]], **outputs: str) -> dict[str, Any]:
    shown = [{"OutputKey": name, "OutputValue": value} for name, value in outputs.items()]
    return {
        "describe_stack_resources": {"StackResources": [{"StackName": "trainmaster"}]},
        "describe_stacks": {"Stacks": [{"Outputs": shown}]},
        "list_subscriptions_by_topic": {
            "Subscriptions": [{"Endpoint": who, "SubscriptionArn": arn} for who, arn in subscriptions]
        },
    }


ANN, BOB = "ann@example.com", "bob@example.com"
PENDING, CONFIRMED = "PendingConfirmation", f"{TOPIC}:1234"


@pytest.mark.parametrize(
    ("wanted", "subscriptions", "expected"),
    [
        pytest.param([], [(ANN, CONFIRMED)], ("ok", None), id="somebody"),
        pytest.param([ANN], [(ANN, CONFIRMED)], ("ok", None), id="whom the policy names"),
        pytest.param([], [], ("warn", Trouble.MAIL_UNCONFIRMED), id="nobody"),
        pytest.param([], [(ANN, PENDING)], ("warn", Trouble.MAIL_UNCONFIRMED), id="not confirmed"),
        pytest.param([ANN, BOB], [(ANN, CONFIRMED)], ("warn", Trouble.MAIL_UNCONFIRMED), id="one is missing"),
    ],
)
def test_a_subscription_counts_once_it_is_confirmed(
    wanted: list[str], subscriptions: list[tuple[str, str]], expected: tuple[str, Any]
) -> None:
    policy = {"notifications": {"email": wanted}}
    finding = watching.mail(seen(policy, stack(subscriptions, MailTopicArn=TOPIC)))
    assert outcome(finding) == expected
    assert BOB not in wanted or finding.actual == BOB


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({}, id="CloudFormation does not say"),
        pytest.param(stack([]), id="a stack without the output"),
        pytest.param(stack([], MailTopicArn=TOPIC) | {"list_subscriptions_by_topic": DENIED}, id="nor SNS"),
    ],
)
def test_what_cannot_be_known_of_mails_is_skipped(answers: dict[str, Any]) -> None:
    assert outcome(watching.mail(seen({}, answers))) == ("skip", None)
    assert outcome(watching.mail(seen(None, answers))) == ("skip", None)


# ---- limits


def pool(waiting: int) -> tuple[dict[str, Any], ...]:
    return ({"name": "gpus", "capacity": GPUS, "teams": [{"name": "vision", "waiting": waiting}]},)


@pytest.mark.parametrize(
    ("policy", "waiting", "word"),
    [
        pytest.param({}, 3999, "ok", id="below 80 % of the default"),
        pytest.param({}, 4000, "warn", id="80 % of the default"),
        pytest.param({"pools": [{"name": "gpus", "limits": {"max_waiting": 100}}]}, 80, "warn", id="written"),
        pytest.param({"pools": [{"name": "gpus", "limits": None}]}, 80, "ok", id="an empty section"),
        pytest.param(None, 4000, "warn", id="for everybody"),
    ],
)
def test_a_queue_that_is_nearly_full_is_a_warning(
    policy: dict[str, Any] | None, waiting: int, word: str
) -> None:
    finding = limits.nearly_full(seen(policy, pools=pool(waiting)))
    assert finding.word == word
    assert word == "ok" or f"team vision has {waiting} of" in finding.actual


def test_nearly_as_many_pools_as_there_may_be_is_a_warning() -> None:
    many = tuple({"name": f"p{number}"} for number in range(400))
    assert limits.nearly_full(seen({}, pools=many)).actual == "the policy has 400 of 500 pools"


def ran_at_once(*maxima: float, limit: int = 10) -> dict[str, Any]:
    return {
        "get_account_settings": {"AccountLimit": {"ConcurrentExecutions": limit}},
        "get_metric_statistics": {"Datapoints": [{"Maximum": one} for one in maxima]},
    }


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(ran_at_once(3, 7), ("ok", None), id="below 80 %"),
        pytest.param(ran_at_once(3, 8), ("warn", Trouble.CONCURRENCY), id="80 %"),
        pytest.param(ran_at_once(), ("ok", None), id="no function ran"),
        pytest.param({}, ("skip", None), id="Lambda does not say"),
        pytest.param(ran_at_once(1) | {"get_metric_statistics": DENIED}, ("skip", None), id="nor CloudWatch"),
    ],
)
def test_the_accounts_concurrency(answers: dict[str, Any], expected: tuple[str, Any]) -> None:
    assert outcome(limits.concurrency(seen({}, answers))) == expected
    assert outcome(limits.concurrency(seen(None, answers))) == ("skip", None)
