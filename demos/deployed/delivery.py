"""SageMaker's events, carried to MiniStack by public calls: nobody but AWS may put an event of ``aws.*``.

What EventBridge does in one step is done here in four: which rules are there, which of them match, whom do
they tell, and does that function let the rule invoke it. A failure is kept and fails the check.
"""

import json
import queue
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from demos.deployed.ministack import ACCOUNT, REGION

if TYPE_CHECKING:
    from boto3 import Session

Document = dict[str, Any]

_DETAIL_TYPE = "SageMaker Training Job State Change"
_END = None


class Delivery:
    """An ``EventSink``: ``publish`` returns at once, one thread delivers in order."""

    def __init__(self, session: "Session") -> None:
        self._events = session.client("events")
        self._functions = session.client("lambda")
        self._waiting: queue.Queue[Document | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)
        self.delivered: list[Document] = []
        """Job, status and function of each event that a function was invoked with."""
        self.failures: list[str] = []

    @contextmanager
    def running(self) -> Iterator["Delivery"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._waiting.put(_END)
            self._thread.join()

    def publish(self, detail: Document, resources: list[str]) -> None:
        self._waiting.put(
            {
                "version": "0",
                "id": str(uuid.uuid4()),
                "source": "aws.sagemaker",
                "detail-type": _DETAIL_TYPE,
                "account": ACCOUNT,
                "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "region": REGION,
                "resources": resources,
                "detail": detail,
            }
        )

    def _run(self) -> None:
        while (event := self._waiting.get()) is not _END:
            try:
                self._deliver(event)
            except Exception as error:  # noqa: BLE001  the bulkhead: one lost is reported, the next are carried
                self.failures.append(f"{type(error).__name__}: {error}")

    def _deliver(self, event: Document) -> None:
        body = json.dumps(event)
        for rule in self._events.list_rules()["Rules"]:
            pattern = rule.get("EventPattern")
            if pattern and self._events.test_event_pattern(EventPattern=pattern, Event=body)["Result"]:
                for target in self._events.list_targets_by_rule(Rule=rule["Name"])["Targets"]:
                    self._invoke(target["Arn"], rule["Arn"], event, body)

    def _invoke(self, function_arn: str, rule_arn: str, event: Document, body: str) -> None:
        policy = json.loads(self._functions.get_policy(FunctionName=function_arn)["Policy"])
        if not any(_lets_in(statement, rule_arn) for statement in policy["Statement"]):
            raise PermissionError(f"{function_arn} does not let {rule_arn} invoke it")
        self._functions.invoke(FunctionName=function_arn, InvocationType="Event", Payload=body)
        detail = event["detail"]
        self.delivered.append(
            {
                "training_job": detail["TrainingJobName"],
                "status": detail["TrainingJobStatus"],
                "secondary_status": detail["SecondaryStatus"],
                "function": function_arn.rpartition(":")[2],
            }
        )


def _lets_in(statement: Document, rule_arn: str) -> bool:
    sources = statement.get("Condition", {}).get("ArnLike", {}).get("AWS:SourceArn")
    return statement["Principal"] == {"Service": "events.amazonaws.com"} and sources in {None, rule_arn}
