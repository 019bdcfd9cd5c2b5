"""Checks what the account lets the caller see and do beside the API."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from trainmaster_client.api import API_URL_PARAMETER
from trainmaster_client.doctor.findings import (
    AwsSaid,
    Finding,
    Seen,
    asked,
    bad,
    good,
    skipped,
    worth_a_warning,
)
from trainmaster_client.errors.troubles import Trouble

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
"""SageMaker Developer Guide, "Amazon CloudWatch Logs for Amazon SageMaker AI"."""
_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
_OPERATOR_ALARMS = "operator-"
"""Prefix of the alarms in template.yaml that are for who runs the stack; after it comes the stack's name."""
_FIRST_DATA_WITHIN = timedelta(minutes=10)
"""Age of a stack up to which an alarm may have seen no data; functions write their first within minutes."""
_NO_DATA = "no datapoints were received"
"""Words of CloudWatch's StateReason where data are missing that the alarm treats as breaching."""


def logs(seen: Seen) -> Finding:
    streams = asked(lambda: seen.client("logs").describe_log_streams(logGroupName=LOG_GROUP, limit=1))
    if not isinstance(streams, AwsSaid):
        return good(f"{LOG_GROUP} can be read")
    if streams.code == "ResourceNotFoundException":
        return good(f"{LOG_GROUP} is made with the first job")
    return bad(Trouble.LOGS_UNREADABLE, streams.why) if streams.code in _DENIED else skipped(streams.why)


def parameter(seen: Seen) -> Finding:
    if seen.is_from_parameter:
        return good("it is where the URL comes from")
    answer = asked(lambda: seen.client("ssm").get_parameter(Name=API_URL_PARAMETER))
    if isinstance(answer, AwsSaid):
        return worth_a_warning(Trouble.PARAMETER_MISSING, answer.why)
    value = answer["Parameter"]["Value"].rstrip("/")
    if value != seen.api_url.rstrip("/"):
        return worth_a_warning(Trouble.PARAMETER_DIFFERS, value)
    return good("names the same API")


def training_roles(seen: Seen) -> Finding:
    """Check that SageMaker can assume the policy's roles; only the stack knows whether they may be passed."""
    if seen.policy is None:
        return skipped("only admins see the roles in the policy; trainmaster submit --dry-run checks a job's")
    roles = named_roles(seen.policy)
    if not roles:
        return skipped("the policy lists no roles by name")
    for arn in roles:
        answer = _role(seen, arn.rpartition("/")[2])
        if isinstance(answer, AwsSaid):
            missing = answer.code == "NoSuchEntity"
            return bad(Trouble.ROLE_MISSING, arn) if missing else skipped(answer.why)
        if not _trusts_sagemaker(answer["Role"]["AssumeRolePolicyDocument"]):
            return bad(Trouble.ROLE_NOT_TRUSTING, arn)
    return good(", ".join(roles))


def direct_starts(seen: Seen) -> Finding:
    """Check that the caller cannot start jobs directly: only IAM holds people to the queue.

    The simulation knows no session policies and no SCPs.
    """
    arn = principal(seen)
    if arn is None:
        return skipped("the caller is neither an IAM user nor a role")
    action = "sagemaker:CreateTrainingJob"
    question = {"PolicySourceArn": arn, "ActionNames": [action]}
    simulation = asked(lambda: seen.client("iam").simulate_principal_policy(**question))
    if isinstance(simulation, AwsSaid):
        return skipped(f"IAM does not say: {simulation.why}")
    decisions = [result["EvalDecision"] for result in simulation["EvaluationResults"]]
    if "allowed" in decisions:
        return worth_a_warning(Trouble.DIRECT_STARTS, f"{action} is allowed")
    return good(f"{action} is not allowed")


def operator_alarms(seen: Seen) -> Finding:
    if seen.policy is None:
        return skipped("for admins")
    wanted = {"AlarmNamePrefix": _OPERATOR_ALARMS, "StateValue": "ALARM"}
    alarms = asked(lambda: seen.client("cloudwatch").describe_alarms(**wanted))
    if isinstance(alarms, AwsSaid):
        return skipped(alarms.why)
    ringing = alarms.get("MetricAlarms", ())
    early = [alarm["AlarmName"] for alarm in ringing if _is_before_first_data(alarm, seen)]
    names = [alarm["AlarmName"] for alarm in ringing if alarm["AlarmName"] not in early]
    if names:
        return worth_a_warning(Trouble.OPERATOR_ALARM, ", ".join(names))
    return good(f"the stack is new, no data yet: {', '.join(early)}" if early else "none in ALARM")


def _is_before_first_data(alarm: Mapping[str, Any], seen: Seen) -> bool:
    """Tell whether an alarm that was just made rings only because nothing has written its metric so far."""
    is_new = seen.now() - alarm["AlarmConfigurationUpdatedTimestamp"] < _FIRST_DATA_WITHIN
    return is_new and _NO_DATA in alarm.get("StateReason", "")


def named_roles(policy: Mapping[str, Any]) -> list[str]:
    """Return the training roles of the policy's teams, without patterns."""
    return sorted({arn for arn in _roles(policy) if "*" not in arn})


def _roles(policy: Mapping[str, Any]) -> Iterator[str]:
    document = policy.get("policy")
    teams = document.get("teams") if isinstance(document, dict) else None
    for team in teams or ():
        roles = team.get("roles")
        yield from (str(arn) for arn in (roles if isinstance(roles, list) else ()))


def _role(seen: Seen, name: str) -> Any | AwsSaid:  # noqa: ANN401  boto3's answer
    return asked(lambda: seen.client("iam").get_role(RoleName=name))


def _trusts_sagemaker(trust: Mapping[str, Any]) -> bool:
    """Tell whether SageMaker may assume the role; a single statement may stand without a list.

    Source: IAM User Guide, "IAM JSON policy grammar".
    """
    statements = trust.get("Statement", [])
    for statement in [statements] if isinstance(statements, dict) else statements:
        principal = statement.get("Principal")
        services = principal.get("Service", []) if isinstance(principal, dict) else []
        named = [services] if isinstance(services, str) else services
        if statement.get("Effect") == "Allow" and "sagemaker.amazonaws.com" in named:
            return True
    return False


def principal(seen: Seen) -> str | None:
    """Return IAM's ARN of the caller; a session's is that of its role, whose path only IAM knows."""
    arn = seen.caller_arn or ""
    parts = arn.split(":", 5)
    if ":assumed-role/" not in arn:
        return arn if ":user/" in arn else None
    name = parts[5].split("/")[1]
    answer = _role(seen, name)
    if isinstance(answer, AwsSaid):
        return f"arn:{parts[1]}:iam::{parts[4]}:role/{name}"
    return str(answer["Role"]["Arn"])
