"""Looks at what only a stack shows: its API refusing calls, caller ARN, metrics, alarms, dead letters."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from trainmaster_client.http.answers import ERROR_TYPE_HEADER, Answer
from trainmaster_client.http.transport import SignedTransport

Document = dict[str, Any]

NAMESPACE = "trainmaster"
"""POWERTOOLS_METRICS_NAMESPACE in template.yaml."""
_UNKNOWN_KEY = "AKIAIOSFODNN7EXAMPLE"
"""Access key id of the IAM User Guide, which has no owner."""
_METRIC_SECONDS = 300.0
_SETTLE_SECONDS = 600.0
"""Two periods of the operator alarms: one that rang before the first data points has ended by then."""
_LOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StackLooks:
    session: boto3.Session
    api_url: str
    stack: str
    pause: Callable[[float], None] = time.sleep

    def refusals(self) -> Document:
        """Return the answers to an unsigned call, to an unknown key and to a wrong secret."""
        keys = self.session.get_credentials()
        assert keys is not None, "the stack was made with them"
        wrong = {
            "unknown_key": boto3.Session(_UNKNOWN_KEY, "secret", region_name=self.session.region_name),
            "wrong_secret": boto3.Session(
                keys.access_key, "not-the-secret", keys.token, region_name=self.session.region_name
            ),
        }
        answers = {"unsigned": answered(self._wire(self.session).look("/pools"))}
        return answers | {
            who: answered(self._wire(session).send("GET", "/pools")) for who, session in wrong.items()
        }

    def metric_seconds(self) -> float | None:
        """Return seconds until a metric of this stack can be listed; None if that takes over five minutes."""
        began = time.monotonic()
        while time.monotonic() - began < _METRIC_SECONDS:
            listed = self.session.client("cloudwatch").list_metrics(Namespace=NAMESPACE)
            if listed["Metrics"]:
                return round(time.monotonic() - began, 1)
            self.pause(_LOOK_SECONDS)
        return None

    def operator_alarms(self) -> dict[str, str]:
        """Return the state of each operator alarm by name, once none is in ALARM or after ten minutes.

        ``first-unseen`` rings while a stack is made, until ``reconcile`` has run for the first time.
        """
        waited = 0.0
        while "ALARM" in (states := self._alarm_states()).values() and waited < _SETTLE_SECONDS:
            self.pause(_LOOK_SECONDS)
            waited += _LOOK_SECONDS
        return states

    def _alarm_states(self) -> dict[str, str]:
        described = self.session.client("cloudwatch").describe_alarms(
            AlarmNamePrefix=f"operator-{self.stack}-"
        )
        return {alarm["AlarmName"]: alarm["StateValue"] for alarm in described["MetricAlarms"]}

    def dead_letters(self, queues: Mapping[str, str]) -> dict[str, int]:
        """Count messages by queue, given the queues' URLs."""
        sqs = self.session.client("sqs")
        return {
            name: int(
                sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])[
                    "Attributes"
                ]["ApproximateNumberOfMessages"]
            )
            for name, url in queues.items()
        }

    def _wire(self, session: boto3.Session) -> SignedTransport:
        return SignedTransport(self.api_url, session)


def answered(answer: Answer) -> Document:
    """Return status, error type and words, as the gateway gave them."""
    try:
        words = json.loads(answer.body)
    except ValueError:
        words = {}
    text = words.get("message") or words.get("Message") if isinstance(words, dict) else None
    return {"status": answer.status, "error_type": answer.headers.get(ERROR_TYPE_HEADER), "text": text}
