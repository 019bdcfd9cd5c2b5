"""May this caller make this call? Refuses in the words and the error code of the service that is called."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from local.identity.checks import Check, NotMappedError, Operation
from local.identity.data_requests import encryption_checks
from local.identity.evaluator import Decision, Statement, decide, normalized, parse_policy, trusting
from local.identity.identities import Identities
from local.identity.requests import checks
from local.wire import AwsError, Principal

TagsOf = Callable[[str], Mapping[str, str] | None]
"""ARN -> the tags of that resource; None when there is no such resource."""

_REFUSALS: Mapping[str, tuple[str, int]] = {
    "cloudwatch": ("AccessDenied", 403),
    "iam": ("AccessDenied", 403),
    "s3": ("AccessDenied", 403),
    "sns": ("AuthorizationError", 403),
    "sqs": ("AccessDenied", 403),
    "sts": ("AccessDenied", 403),
}
_REFUSAL = ("AccessDeniedException", 400)
_BECAUSE: Mapping[Decision, str] = {
    Decision.NOT_ALLOWED: "because no identity-based policy allows the {action} action",
    Decision.DENIED: "with an explicit deny in an identity-based policy",
}


class Authorizer:
    """Lets users of the twin and unlimited roles do all, and others what their policies allow."""

    def __init__(
        self,
        identities: Identities,
        *,
        policies_of: Callable[[str], Sequence[Mapping[str, Any]] | None] = lambda _arn: None,
        key_of: Callable[[Operation], str | None] = lambda _operation: None,
        trust_of: Callable[[str], Mapping[str, Any] | None] = lambda _arn: None,
    ) -> None:
        """Take look-ups: policies of users and roles made through IAM, keys of resources, trusts of roles."""
        self._identities = identities
        self._policies_of = policies_of
        self._key_of = key_of
        self._trust_of = trust_of
        self._tags_of: dict[str, TagsOf] = {}

    def add_resource_tags(self, service: str, tags_of: TagsOf) -> None:
        """Make conditions on ``aws:ResourceTag`` see the tags of this service's resources."""
        self._tags_of[service] = tags_of

    def check_call(self, principal: Principal, operation: Operation) -> None:
        """Raises AwsError when the caller lacks any permission that the call needs."""
        statements = self.statements_of(principal)
        if statements is None:
            return
        try:
            questions = checks(operation)
        except NotMappedError as error:
            raise refusal(operation.service, f"User: {principal.arn} is refused: {error}") from error
        key = self._key_of(operation)
        for question in (*questions, *(encryption_checks(operation, key) if key else ())):
            self._ask(principal, statements, operation, question)

    def check_trust(self, principal: Principal, operation: Operation) -> None:
        """Raises AwsError where a role made through IAM does not let the caller assume it."""
        role = str(operation.params.get("RoleArn", ""))
        trust = self._trust_of(role)
        if trust is None:
            return
        statements = trusting(trust, principal, role)
        for question in checks(operation):
            context = normalized(self._context(principal, operation, question))
            if decide(statements, question.action, role, context) is not Decision.ALLOWED:
                who = f"User: {principal.arn} is not authorized to perform: {question.action}"
                raise refusal(operation.service, f"{who} on resource: {role}")

    def statements_of(self, principal: Principal) -> tuple[Statement, ...] | None:
        """Return the statements of the caller's policies; None if nothing limits the caller."""
        if principal.role_arn is not None:
            limits = self._identities.statements_of(principal.role_arn)
            if limits is not None:
                return limits
        return self._parsed(principal.role_arn or principal.arn)

    def allows(self, arn: str, question: Check) -> bool:
        """Tell whether a user or role may do something; one that nobody made through IAM may do all."""
        statements = self._parsed(arn)
        if statements is None:
            return True
        context = normalized({**question.context, "aws:PrincipalArn": arn})
        return decide(statements, question.action, question.resource, context) is Decision.ALLOWED

    def _parsed(self, arn: str) -> tuple[Statement, ...] | None:
        documents = self._policies_of(arn)
        if documents is None:
            return None
        try:
            return tuple(statement for document in documents for statement in parse_policy(document))
        except ValueError as error:
            raise AwsError("MalformedPolicyDocument", str(error)) from error

    def _ask(
        self, principal: Principal, statements: Sequence[Statement], operation: Operation, question: Check
    ) -> None:
        context = normalized(self._context(principal, operation, question))
        decision = decide(statements, question.action, question.resource, context)
        if decision is not Decision.ALLOWED and not self._does_as_well(question):
            because = _BECAUSE[decision].format(action=question.action)
            raise refusal(
                operation.service,
                f"User: {principal.arn} is not authorized to perform: {question.action} "
                f"on resource: {question.resource} {because}",
            )

    def _does_as_well(self, question: Check) -> bool:
        """Tell whether the role has the right too; one not made through IAM was given none."""
        if question.or_of_role is None:
            return False
        statements = self._parsed(question.or_of_role) or ()
        context = normalized({**question.context, "aws:PrincipalArn": question.or_of_role})
        return decide(statements, question.action, question.resource, context) is Decision.ALLOWED

    def _context(self, principal: Principal, operation: Operation, question: Check) -> dict[str, Any]:
        context: dict[str, Any] = {
            "aws:PrincipalArn": principal.role_arn or principal.arn,
            "aws:PrincipalAccount": principal.account_id,
            "aws:RequestedRegion": operation.region,
        }
        tags_of = self._tags_of.get(operation.service)
        tags = tags_of(question.resource) if tags_of else None
        tag_context = {f"aws:ResourceTag/{key}": value for key, value in (tags or {}).items()}
        return context | tag_context | dict(question.context)


def refusal(service: str, message: str) -> AwsError:
    code, status = _REFUSALS.get(service, _REFUSAL)
    return AwsError(code, message, status=status)
