"""EventBridge rules that are made by calls, not by the stack: they may tell queues."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from local.deployment.deployment_errors import TemplateError
from local.deployment.events.patterns import check_pattern, matches
from local.wire import AwsError

Params: TypeAlias = dict[str, Any]

_QUEUE = "arn:aws:sqs:"
_ENABLED = "ENABLED"


@dataclass(slots=True, kw_only=True)
class _Rule:
    pattern: Mapping[str, Any]
    state: str
    targets: dict[str, str] = field(default_factory=dict)
    """ARN of a queue by id."""


class RuleBook:
    """Serves the calls on rules. Targets stay here: the engine would try to deliver to them itself."""

    def __init__(self, forward: Callable[[str, Params], Params]) -> None:
        """Take ``forward``: (operation, parameters) -> answer of the engine, which lists the rules."""
        self._forward = forward
        self._rules: dict[str, _Rule] = {}

    def call(self, operation: str, params: Params) -> Params:
        """Answer a call of EventBridge's API. Raises AwsError."""
        match operation:
            case "PutRule":
                return self._put_rule(params)
            case "DeleteRule":
                return self._delete_rule(params)
            case "EnableRule" | "DisableRule":
                self._rule(params["Name"]).state = f"{operation.removesuffix('Rule').upper()}D"
            case "PutTargets":
                return self._put_targets(params)
            case "RemoveTargets":
                for target in params["Ids"]:
                    self._rule(params["Rule"]).targets.pop(target, None)
                return _NONE_FAILED
            case "ListTargetsByRule":
                targets = self._rule(params["Rule"]).targets
                return {"Targets": [{"Id": name, "Arn": arn} for name, arn in targets.items()]}
            case _:
                pass  # the engine's business, as what fell through is too
        return self._forward(operation, params)

    def queues_for(self, event: Mapping[str, Any]) -> list[str]:
        """Return ARNs of the queues that are to get an event."""
        chosen = [
            rule for rule in self._rules.values() if rule.state == _ENABLED and matches(rule.pattern, event)
        ]
        return [arn for rule in chosen for arn in rule.targets.values()]

    def _rule(self, name: str) -> _Rule:
        if name not in self._rules:
            raise AwsError("ResourceNotFoundException", f"Rule {name} does not exist on EventBus default.")
        return self._rules[name]

    def _put_rule(self, params: Params) -> Params:
        name = params["Name"]
        try:
            pattern = json.loads(params["EventPattern"])
            check_pattern(name, pattern)
        except KeyError as error:
            raise AwsError("ValidationException", "the twin knows only rules with an EventPattern") from error
        except (ValueError, AttributeError, TemplateError) as error:
            raise AwsError("InvalidEventPatternException", f"Event pattern is not valid. {error}") from error
        answer = self._forward("PutRule", params)
        before = self._rules.get(name)
        targets = {} if before is None else before.targets
        self._rules[name] = _Rule(pattern=pattern, state=params.get("State", _ENABLED), targets=targets)
        return answer

    def _delete_rule(self, params: Params) -> Params:
        rule = self._rules.get(params["Name"])
        if rule is not None and rule.targets:
            raise AwsError("ValidationException", "Rule can't be deleted since it has targets.")
        self._rules.pop(params["Name"], None)
        return self._forward("DeleteRule", params)

    def _put_targets(self, params: Params) -> Params:
        rule = self._rule(params["Rule"])
        for target in params["Targets"]:
            if target.keys() != {"Id", "Arn"} or not target["Arn"].startswith(_QUEUE):
                raise AwsError("ValidationException", f"the twin knows only queues as targets: {target}")
        rule.targets |= {target["Id"]: target["Arn"] for target in params["Targets"]}
        return _NONE_FAILED


_NONE_FAILED: Params = {"FailedEntryCount": 0, "FailedEntries": []}
