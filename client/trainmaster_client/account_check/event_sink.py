"""Raw events of the trials: a rule and a queue of the check's own, removed with everything else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster_client.account_check.course_verdicts import FINAL, LONGEST_EVENT_SECONDS
from trainmaster_client.account_check.service_calls import ServiceCalls
from trainmaster_client.account_check.trial_requests import PREFIX, TAG

_MESSAGES = 10
"""The most that SQS gives at once."""


@dataclass(slots=True, kw_only=True)
class EventSink:
    """Raises MissingRightError and RefusedCallError wherever it calls."""

    calls: ServiceCalls
    run: str
    events: list[dict[str, Any]] = field(default_factory=list)
    _queue_url: str = ""

    @property
    def told(self) -> set[str]:
        """Names of the jobs whose end has come as an event."""
        return {one["job"] for one in self.events if one["status"] in FINAL}

    def open(self) -> None:
        name = f"{PREFIX}{self.run}"
        made = self.calls.get("sqs", "CreateQueue", QueueName=name, tags={TAG: self.run})
        self._queue_url = made["QueueUrl"]
        asked = {"QueueUrl": self._queue_url, "AttributeNames": ["QueueArn"]}
        queue_arn = self.calls.get("sqs", "GetQueueAttributes", **asked)["Attributes"]["QueueArn"]
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
        """Whatever has come since."""
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
            for one in messages:
                self.events.append(
                    event_record(json.loads(one["Body"]), int(one["Attributes"]["SentTimestamp"]))
                )
                self.calls.get(
                    "sqs", "DeleteMessage", QueueUrl=self._queue_url, ReceiptHandle=one["ReceiptHandle"]
                )


def is_awaited(ended: set[str], told: set[str], *, waited: float, pace: float) -> bool:
    """Is an end still on its way? The first may take as long as any event, the others as the pace says.

    Args:
        ended: Names of the jobs that have ended.
        told: Names of those whose end has come as an event.
        waited: Seconds, all jobs having ended.
        pace: Seconds.
    """
    if ended <= told:
        return False
    return waited < (pace if ended & told else LONGEST_EVENT_SECONDS)


def event_record(event: Mapping[str, Any], sent_ms: int) -> dict[str, Any]:
    """What is looked at of an event; the delay is from the change to the queue."""
    detail = event["detail"]
    modified = detail.get("LastModifiedTime")
    changed = modified if modified is not None else _epoch_ms(event.get("time"))
    tags = detail.get("Tags")
    return {
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
