"""Raw events of the trials, caught by a rule and a queue of the check's own that it removes at its end."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster_client.account_check.course_verdicts import FINAL, LONGEST_EVENT_SECONDS
from trainmaster_client.account_check.service_calls import ServiceCalls
from trainmaster_client.account_check.trial_requests import PREFIX, TAG

_MESSAGES = 10
"""Number of messages that SQS returns at most per call."""


@dataclass(slots=True, kw_only=True)
class EventSink:
    """Collects the events of one run's jobs; what calls AWS raises MissingRightError or RefusedCallError."""

    calls: ServiceCalls
    run: str
    events: list[dict[str, Any]] = field(default_factory=list)
    _queue_url: str = ""

    @property
    def told(self) -> set[str]:
        """Names of the jobs whose end was reported by an event."""
        return {event["job"] for event in self.events if event["status"] in FINAL}

    def open(self) -> None:
        name = f"{PREFIX}{self.run}"
        made = self.calls.get("sqs", "CreateQueue", QueueName=name, tags={TAG: self.run})
        self._queue_url = made["QueueUrl"]
        request = {"QueueUrl": self._queue_url, "AttributeNames": ["QueueArn"]}
        queue_arn = self.calls.get("sqs", "GetQueueAttributes", **request)["Attributes"]["QueueArn"]
        pattern = {
            "source": ["aws.sagemaker"],
            "detail-type": ["SageMaker Training Job State Change"],
            "detail": {"TrainingJobName": [{"prefix": name}]},
        }
        rule = self.calls.get(
            "events",
            "PutRule",
            Name=name,
            EventPattern=json.dumps(pattern),
            Tags=[{"Key": TAG, "Value": self.run}],
        )
        policy = _policy(queue_arn, rule["RuleArn"])
        self.calls.get(
            "sqs", "SetQueueAttributes", QueueUrl=self._queue_url, Attributes={"Policy": json.dumps(policy)}
        )
        target = {"Id": "queue", "Arn": queue_arn}
        self.calls.get("events", "PutTargets", Rule=name, Targets=[target])

    def receive(self) -> None:
        """Read and delete every message that has arrived since the last call."""
        while True:
            answer = self.calls.get(
                "sqs",
                "ReceiveMessage",
                QueueUrl=self._queue_url,
                MaxNumberOfMessages=_MESSAGES,
                AttributeNames=["SentTimestamp"],
            )
            messages = answer.get("Messages", ())
            if not messages:
                return
            for message in messages:
                self.events.append(
                    event_record(json.loads(message["Body"]), int(message["Attributes"]["SentTimestamp"]))
                )
                self.calls.get(
                    "sqs", "DeleteMessage", QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"]
                )


def is_awaited(ended: set[str], reported: set[str], *, waited: float, pace: float) -> bool:
    """Tell whether an event about an end may still be on its way.

    The first may take as long as any event, later ones as long as ``pace`` allows.

    Args:
        ended: Names of the jobs that have ended.
        reported: Names of the jobs whose end was reported by an event.
        waited: Seconds since the last job ended.
        pace: Seconds to wait for the remaining events once one has come.
    """
    if ended <= reported:
        return False
    return waited < (pace if ended & reported else LONGEST_EVENT_SECONDS)


def event_record(event: Mapping[str, Any], sent_ms: int) -> dict[str, Any]:
    """Return what verdicts read of an event; ``seconds`` is its delay from the change to the queue."""
    detail = event["detail"]
    modified = detail.get("LastModifiedTime")
    changed = modified if modified is not None else _epoch_ms(event.get("time"))
    tags = detail.get("Tags")
    plan = (detail.get("ResourceConfig") or {}).get("TrainingPlanArn")
    return {
        **({} if plan is None else {"plan": plan}),
        "job": detail.get("TrainingJobName"),
        "status": detail.get("TrainingJobStatus"),
        "secondary": detail.get("SecondaryStatus"),
        "modified": modified,
        "seconds": None if changed is None else round((sent_ms - changed) / 1000, 1),
        "has_tags": isinstance(tags, dict) and TAG in tags,
        "fields": sorted(detail),
    }


def _epoch_ms(text: str | None) -> int | None:
    if text is None:
        return None
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _policy(queue_arn: str, rule_arn: str) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": queue_arn,
                "Condition": {"ArnEquals": {"aws:SourceArn": rule_arn}},
            }
        ],
    }
