"""The default event bus: SageMaker's events and those of the functions go to the rules of the stack."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from local.clock import TwinClock
from local.deployment.events.delivery_faults import DeliveryFaults
from local.deployment.events.patterns import matches
from local.deployment.events.rule_book import RuleBook
from local.deployment.wiring import Rule
from local.wire import Principal

Params: TypeAlias = dict[str, Any]

_REFUSED_SOURCE = {
    "ErrorCode": "NotAuthorizedForSourceException",
    "ErrorMessage": "Not authorized for the source.",
}
_DEFAULT_BUS = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRouter:
    rules: Sequence[Rule]
    faults: DeliveryFaults
    clock: TwinClock
    region: str
    account_id: str
    deliver: Callable[[str, Mapping[str, Any]], None]
    """(ARN of the function, event); returns before the function runs."""
    forward: Callable[[str, Params], Params]
    """(operation, parameters) -> answer of the engine."""
    book: RuleBook
    """Rules made outside the stack."""
    send: Callable[[str, str], None]
    """(ARN of a queue, message)."""

    def publish(self, detail: dict[str, Any], resources: list[str]) -> None:
        """Send SageMaker's event that a training job changed."""
        about = {"source": "aws.sagemaker", "detail-type": "SageMaker Training Job State Change"}
        self._route(about | {"id": str(uuid.uuid4()), "resources": resources, "detail": detail})

    def call(self, operation: str, params: Params, _: Principal) -> Params:
        """Serve EventBridge's API."""
        if operation != "PutEvents":
            return self.book.call(operation, params)
        entries = params.get("Entries", [])
        accepted = [entry for entry in entries if not _is_reserved(entry)]
        answers = iter(self.forward(operation, params | {"Entries": accepted})["Entries"] if accepted else [])
        results = list(self._results(entries, answers))
        return {"Entries": results, "FailedEntryCount": sum("ErrorCode" in result for result in results)}

    def _results(self, entries: Sequence[Params], answers: Iterator[Params]) -> Iterator[Params]:
        for entry in entries:
            result = _REFUSED_SOURCE if _is_reserved(entry) else next(answers)
            if "EventId" in result and entry.get("EventBusName", _DEFAULT_BUS) == _DEFAULT_BUS:
                self._route(
                    {
                        "source": entry["Source"],
                        "detail-type": entry["DetailType"],
                        "id": result["EventId"],
                        "resources": list(entry.get("Resources", [])),
                        "detail": json.loads(entry["Detail"]),
                    }
                )
            yield result

    def _route(self, fields: Mapping[str, Any]) -> None:
        event = {
            "version": "0",
            "account": self.account_id,
            "time": self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self.region,
            **fields,
        }
        for rule in self.rules:
            if matches(rule.pattern, event):
                for function_arn in rule.function_arns:
                    self.faults.pass_on(lambda arn=function_arn: self.deliver(arn, event))  # type: ignore[misc]
        for queue_arn in self.book.queues_for(event):
            self.send(queue_arn, json.dumps(event))


def _is_reserved(entry: Params) -> bool:
    """Tell whether the source is one of AWS's own, which no other caller may use."""
    return str(entry.get("Source", "")).startswith("aws.")
