"""Whether the stack grants what its wiring needs: else AWS would refuse to create it, or lose events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from local.deployment.deployment_errors import TemplateError
from local.deployment.wiring import Function, Wiring
from local.identity.conditions import like
from local.identity.evaluator import Decision, Statement, decide, normalized, parse_policy

_QUEUE_READING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
_LOG_WRITING = ("logs:CreateLogStream", "logs:PutLogEvents")


class Roles(Protocol):
    def statements_of(self, role_arn: str) -> tuple[Statement, ...] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    wiring: Wiring
    roles: Roles
    region: str
    account_id: str

    def check(self) -> None:
        """Raise TemplateError for the first right that is missing."""
        for function in self.wiring.functions.values():
            self._require_trust(function.role_arn, "lambda.amazonaws.com")
        self._check_queues()
        self._check_services()
        self._check_schedules()

    def may_write_logs(self, function: Function, stream: str) -> bool:
        group = f"arn:aws:logs:{self.region}:{self.account_id}:log-group:{function.log_group}"
        resource = f"{group}:log-stream:{stream}"
        return all(self._allowed(function.role_arn, action, resource) for action in _LOG_WRITING)

    def _check_queues(self) -> None:
        for trigger in self.wiring.queue_triggers:
            role = self.wiring.functions[trigger.function_arn].role_arn
            for action in _QUEUE_READING:
                self._require(role, action, trigger.queue_arn)
        for function_arn, settings in self.wiring.async_settings.items():
            if settings.on_failure_arn is not None:
                role = self.wiring.functions[function_arn].role_arn
                self._require(role, "sqs:SendMessage", settings.on_failure_arn)

    def _check_services(self) -> None:
        for rule in self.wiring.rules:
            for function_arn in rule.function_arns:
                self._require_permission(function_arn, "events.amazonaws.com", rule.arn)
        for subscription in self.wiring.subscriptions:
            self._require_permission(subscription.function_arn, "sns.amazonaws.com", subscription.topic_arn)
        for stage in self.wiring.stages:
            api = f"arn:aws:execute-api:{self.region}:{self.account_id}:{stage.api_id}/{stage.name}"
            for (method, path), function_arn in self.wiring.apis[stage.api_id].routes.items():
                self._require_permission(function_arn, "apigateway.amazonaws.com", f"{api}/{method}{path}")

    def _check_schedules(self) -> None:
        for schedule in self.wiring.schedules:
            self._require_trust(schedule.role_arn, "scheduler.amazonaws.com")
            self._require(schedule.role_arn, "lambda:InvokeFunction", schedule.function_arn)

    def _require(self, role_arn: str, action: str, resource: str) -> None:
        if not self._allowed(role_arn, action, resource):
            raise TemplateError(role_arn, f"may not {action} on {resource}")

    def _allowed(self, role_arn: str, action: str, resource: str) -> bool:
        statements = self.roles.statements_of(role_arn) or ()
        return decide(statements, action, resource, {}) is Decision.ALLOWED

    def _require_permission(self, function_arn: str, principal: str, source_arn: str) -> None:
        for permission in self.wiring.permissions:
            if (permission.function_arn, permission.principal) == (function_arn, principal) and (
                permission.source_arn is None or like(source_arn, permission.source_arn)
            ):
                return
        raise TemplateError(function_arn, f"no permission lets {principal} invoke it for {source_arn}")

    def _require_trust(self, role_arn: str, service: str) -> None:
        trust = self.wiring.trusts.get(role_arn)
        if trust is None or not self._trusts(trust["Statement"], role_arn, service):
            raise TemplateError(role_arn, f"does not trust {service}")

    def _trusts(self, statements: Iterable[Mapping[str, Any]], role_arn: str, service: str) -> bool:
        speaking: list[Statement] = []
        for statement in statements:
            rest = {key: value for key, value in statement.items() if key != "Principal"}
            if _names_service(statement["Principal"], service):
                speaking += parse_policy({"Statement": [rest | {"Resource": role_arn}]})
        facts = normalized({"aws:SourceAccount": self.account_id})
        return decide(speaking, "sts:AssumeRole", role_arn, facts) is Decision.ALLOWED


def _names_service(principal: Mapping[str, Any], service: str) -> bool:
    named = principal.get("Service", [])
    return service in (named if isinstance(named, list) else [named])
