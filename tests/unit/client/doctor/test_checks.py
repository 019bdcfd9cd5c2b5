"""Looks whose other side cannot be had here: public DNS, IAM's simulator, alarms, another parameter."""

import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from trainmaster_client.doctor import account, reachability, stack
from trainmaster_client.doctor.findings import Seen

NOW = datetime(2026, 11, 22, 1, 0, tzinfo=UTC)
USER = "arn:aws:iam::111122223333:user/ann"
SESSION = "arn:aws:sts::111122223333:assumed-role/vision/ann"


class RefusedError(ClientError):
    def __init__(self, code: str) -> None:
        super().__init__({"Error": {"Code": code, "Message": "no"}}, "Operation")


@dataclass(slots=True)
class Service:
    """A client whose every operation is answered from a table; an exception is raised."""

    answers: dict[str, Any]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __getattr__(self, operation: str) -> Any:
        def call(**parameters: Any) -> Any:
            self.asked.append((operation, parameters))
            answer = self.answers[operation]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


class SeenThrough(Seen):
    """With one service in place of AWS."""

    service: Service

    def client(self, service: str) -> Any:
        assert service in {"cloudwatch", "iam", "ssm"}
        return self.service


def seen(answers: dict[str, Any], **known: Any) -> SeenThrough:
    found = SeenThrough(env={}, now=lambda: NOW, **known)
    found.service = Service(answers)
    return found


def decision(word: str) -> dict[str, Any]:
    return {"simulate_principal_policy": {"EvaluationResults": [{"EvalDecision": word}]}}


@pytest.mark.parametrize(
    ("arn", "answers", "outcome"),
    [
        pytest.param(USER, decision("allowed"), ("warn", "direct-starts"), id="allowed"),
        pytest.param(USER, decision("implicitDeny"), ("ok", None), id="not allowed"),
        pytest.param(USER, decision("explicitDeny"), ("ok", None), id="denied"),
        pytest.param(
            USER,
            {"simulate_principal_policy": RefusedError("AccessDenied")},
            ("skip", None),
            id="may not ask",
        ),
        pytest.param("arn:aws:iam::111122223333:root", {}, ("skip", None), id="root"),
        pytest.param(None, {}, ("skip", None), id="STS was not reached"),
    ],
)
def test_who_may_start_jobs_past_the_queue_is_warned_not_failed(
    arn: str | None, answers: dict[str, Any], outcome: tuple[str, str | None]
) -> None:
    finding = account.direct_starts(seen(answers, caller_arn=arn))
    assert (finding.word, finding.trouble) == outcome


@pytest.mark.parametrize(
    ("role", "asked_about"),
    [
        pytest.param(
            {"Role": {"Arn": "arn:aws:iam::111122223333:role/team/vision"}},
            "arn:aws:iam::111122223333:role/team/vision",
            id="with the path that IAM knows",
        ),
        pytest.param(
            RefusedError("AccessDenied"),
            "arn:aws:iam::111122223333:role/vision",
            id="or without",
        ),
    ],
)
def test_a_session_is_looked_at_as_its_role(role: Any, asked_about: str) -> None:
    looking = seen({"get_role": role, **decision("implicitDeny")}, caller_arn=SESSION)
    assert account.direct_starts(looking).ok
    assert looking.service.asked[-1][1]["PolicySourceArn"] == asked_about


def trust(service: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}


@pytest.mark.parametrize(
    ("statement", "outcome"),
    [
        pytest.param([trust("sagemaker.amazonaws.com")], ("ok", None), id="trusted"),
        pytest.param(trust("sagemaker.amazonaws.com"), ("ok", None), id="one statement without a list"),
        pytest.param(trust("ec2.amazonaws.com"), ("FAIL", "role-not-trusting"), id="another service"),
        pytest.param([], ("FAIL", "role-not-trusting"), id="nobody"),
    ],
)
def test_a_training_role_trusts_sagemaker(statement: Any, outcome: tuple[str, str | None]) -> None:
    role = {"Role": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": statement}}}
    policy = {"policy": {"teams": [{"name": "vision", "roles": ["arn:aws:iam::111122223333:role/train"]}]}}
    looking = seen({"get_role": role}, policy=policy)
    finding = account.training_roles(looking)
    assert (finding.word, finding.trouble) == outcome
    assert looking.service.asked == [("get_role", {"RoleName": "train"})]


NO_DATA = (
    "Threshold Crossed: no datapoints were received for 1 period and 1 missing datapoint was treated "
    "as [Breaching]."
)


def ringing(age: timedelta, reason: str) -> dict[str, Any]:
    """Make an alarm in ALARM that was made this long ago."""
    return {
        "AlarmName": "operator-tm-first-unseen",
        "AlarmConfigurationUpdatedTimestamp": NOW - age,
        "StateReason": reason,
    }


@pytest.mark.parametrize(
    ("alarms", "outcome"),
    [
        pytest.param([], ("ok", None), id="none"),
        pytest.param(
            [ringing(timedelta(minutes=2), "Threshold Crossed: 1 datapoint [3.0]")],
            ("warn", "operator-alarm"),
            id="errors of a new stack",
        ),
        pytest.param([ringing(timedelta(minutes=2), NO_DATA)], ("ok", None), id="a new stack without data"),
        pytest.param(
            [ringing(timedelta(hours=1), NO_DATA)], ("warn", "operator-alarm"), id="no data for an hour"
        ),
    ],
)
def test_an_admin_is_told_of_alarms(alarms: list[dict[str, Any]], outcome: tuple[str, str | None]) -> None:
    looking = seen({"describe_alarms": {"MetricAlarms": alarms}}, policy={})
    finding = account.operator_alarms(looking)
    assert (finding.word, finding.trouble) == outcome
    assert looking.service.asked[0][1] == {"AlarmNamePrefix": "operator-", "StateValue": "ALARM"}
    assert account.operator_alarms(seen({})).word == "skip"  # for admins


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param({"Parameter": {"Value": "https://api/prod/"}}, ("ok", None), id="the same"),
        pytest.param({"Parameter": {"Value": "https://b/prod"}}, ("warn", "parameter-differs"), id="another"),
        pytest.param(RefusedError("ParameterNotFound"), ("warn", "parameter-missing"), id="none"),
    ],
)
def test_the_parameter_should_name_the_api_in_use(answer: Any, outcome: tuple[str, str | None]) -> None:
    finding = account.parameter(seen({"get_parameter": answer}, api_url="https://api/prod"))
    assert (finding.word, finding.trouble) == outcome


@pytest.mark.parametrize(
    ("host", "address", "outcome"),
    [
        ("a-vpce-1.execute-api.us-east-1.amazonaws.com", "10.0.0.7", ("ok", None)),
        ("a-vpce-1.execute-api.us-east-1.amazonaws.com", "100.64.0.7", ("ok", None)),
        ("a.execute-api.us-east-1.amazonaws.com", "3.216.0.1", ("FAIL", "public-address")),
        ("api.example.com", "3.216.0.1", ("ok", None)),
    ],
)
def test_a_private_api_has_a_private_address(
    host: str, address: str, outcome: tuple[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    finding = reachability.host(seen({}, api_url=f"https://{host}/prod"))
    assert (finding.word, finding.trouble) == outcome


def test_behind_a_proxy_the_proxy_looks_up_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert reachability.host(seen({}, api_url="https://api.example.com/prod")).word == "skip"


@pytest.mark.parametrize(
    ("versions", "outcome"),
    [
        ({"boto3": "1.43.0", "sagemaker": None}, ("ok", None)),
        ({"boto3": "1.43.0", "sagemaker": "3.27.0"}, ("ok", None)),
        ({"boto3": "1.42.9", "sagemaker": None}, ("FAIL", "old-library")),
        ({"boto3": "1.44.0", "sagemaker": "2.200.1"}, ("FAIL", "old-library")),
        ({"boto3": "1.44.0", "sagemaker": "4.0.0"}, ("FAIL", "old-library")),
    ],
)
def test_libraries_are_of_versions_that_are_tested(
    versions: dict[str, str | None], outcome: tuple[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack, "_installed", versions.__getitem__)
    finding = stack.libraries(seen({}))
    assert (finding.word, finding.trouble) == outcome
