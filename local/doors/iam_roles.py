"""IAM as the twin answers it itself: its own roles, and what a user's or a role's policies allow.

The SDKs ask for both before they train: v2 for the role behind the caller, v3 whether a role may be used.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any
from urllib.parse import quote

from local.identity.authorizer import Authorizer
from local.identity.evaluator import Decision, Statement, decide, normalized, parse_policy
from local.validation import checked, input_shape
from local.wire import AwsError, Principal

_SIMULATE = "SimulatePrincipalPolicy"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}
_DECISIONS: Mapping[Decision, str] = {
    Decision.ALLOWED: "allowed",
    Decision.NOT_ALLOWED: "implicitDeny",
    Decision.DENIED: "explicitDeny",
}
_UNKNOWN = (
    "CallerArn",
    "PermissionsBoundaryPolicyInputList",
    "PolicyExclusionList",
    "ResourceHandlingOption",
    "ResourceOwner",
    "ResourcePolicy",
)
_SOURCE = re.compile(r"arn:aws:iam::(\d{12}):(role|user)/.+")
_BORN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class IamRoles:
    """``call`` answers the calls that it ``owns``; the engine has the others."""

    authorizer: Authorizer
    account_id: str
    arns: Sequence[str]
    """ARNs of roles that exist without being made."""
    is_made: Callable[[str], bool]
    """Whether somebody made a user or role of this ARN through IAM."""

    def owns(self, operation: str, params: Mapping[str, Any]) -> bool:
        if operation == "GetRole":
            arn = self._own(params)
            return arn is not None and not self.is_made(arn)
        return operation == _SIMULATE

    def call(self, operation: str, params: dict[str, Any], _caller: Principal) -> dict[str, Any]:
        """Raises AwsError."""
        if operation == _SIMULATE:
            return self._simulated(_checked(operation, params))
        arn = self._own(params)
        assert arn is not None, "as owns says"
        return {"Role": _role(arn)}

    def _own(self, params: Mapping[str, Any]) -> str | None:
        wanted = params.get("RoleName")
        return next((arn for arn in self.arns if arn.rpartition("/")[2] == wanted), None)

    def _simulated(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if unknown := [name for name in _UNKNOWN if name in params]:
            raise AwsError("InvalidInput", f"the twin does not simulate with {', '.join(unknown)}")
        statements = self._statements(params)
        entries = params.get("ContextEntries", ())
        context = normalized(
            {entry["ContextKeyName"]: entry.get("ContextKeyValues", ()) for entry in entries}
        )
        results = []
        for action, resource in product(params["ActionNames"], params.get("ResourceArns") or ["*"]):
            decision = (
                Decision.ALLOWED if statements is None else decide(statements, action, resource, context)
            )
            results.append(
                {
                    "EvalActionName": action,
                    "EvalResourceName": resource,
                    "EvalDecision": _DECISIONS[decision],
                    "MatchedStatements": [],
                    "MissingContextValues": [],
                }
            )
        return {"EvaluationResults": results, "IsTruncated": False}

    def _statements(self, params: Mapping[str, Any]) -> tuple[Statement, ...] | None:
        """Return the statements of the principal in question; None if nothing limits its calls."""
        arn = params["PolicySourceArn"]
        match = _SOURCE.fullmatch(arn)
        if match is None or match[1] != self.account_id:
            raise AwsError("NoSuchEntity", f"{arn} cannot be found.", status=404)
        principal = Principal(
            arn=arn,
            account_id=self.account_id,
            access_key_id="",
            role_arn=arn if match[2] == "role" else None,
        )
        theirs = self.authorizer.statements_of(principal)
        if theirs is None:
            return None
        try:
            given = [parse_policy(json.loads(text)) for text in params.get("PolicyInputList", ())]
        except (ValueError, KeyError, TypeError) as error:
            raise AwsError("InvalidInput", f"PolicyInputList: {error}") from error
        return (*theirs, *(statement for statements in given for statement in statements))


def _role(arn: str) -> dict[str, Any]:
    path, _, name = arn.partition(":role/")[2].rpartition("/")
    return {
        "Path": f"/{path}/" if path else "/",
        "RoleName": name,
        "RoleId": f"AROA{name.upper().replace('-', '')[:17]:X<17}",
        "Arn": arn,
        "CreateDate": _BORN,
        "AssumeRolePolicyDocument": quote(json.dumps(_TRUST)),
        "MaxSessionDuration": 3600,
    }


def _checked(operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
    shape = input_shape("iam", operation)
    try:
        return checked(shape, params)
    except AwsError as error:
        raise AwsError("ValidationError", error.message) from error
