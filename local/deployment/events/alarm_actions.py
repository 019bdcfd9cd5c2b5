"""Runs an alarm's actions when its state changes: it publishes to SNS topics that let CloudWatch do so.

As with AWS an action that fails, for want of the topic perhaps, is lost; only the twin's own log tells of it.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.cloudwatch import messages
from local.cloudwatch.alarms import Alarm, Transition
from local.deployment.background import Background
from local.identity.evaluator import Decision, decide, normalized, parse_policy

logger = logging.getLogger(__name__)

SERVICE = "cloudwatch.amazonaws.com"
_SUBJECT_CHARACTERS = 100
"""Source: SNS API reference, Publish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmActions:
    client: Callable[[str], Any]
    """service -> a boto3 client that bypasses rights and journal."""
    background: Background
    published: Callable[[Mapping[str, Any]], None]
    """Takes the parameters of a Publish that succeeded."""

    def happened(self, transition: Transition) -> None:
        """Begin the actions of a transition and return at once."""
        for arn in transition.alarm.actions:
            what = f"action of alarm {transition.alarm.name}"
            self.background.run(what, lambda arn=arn: self._tell(arn, transition))  # type: ignore[misc]

    def _tell(self, topic_arn: str, transition: Transition) -> None:
        sns = self.client("sns")
        policy = sns.get_topic_attributes(TopicArn=topic_arn)["Attributes"]["Policy"]
        if not may_publish(json.loads(policy), topic_arn, transition.alarm):
            logger.warning(
                "alarm %s: the policy of %s does not let it publish", transition.alarm.name, topic_arn
            )
            return
        about = messages.subject(transition)[:_SUBJECT_CHARACTERS]
        params = {"TopicArn": topic_arn, "Subject": about, "Message": messages.message(transition)}
        sns.publish(**params)
        self.published(params)


def may_publish(policy: Mapping[str, Any], topic_arn: str, alarm: Alarm) -> bool:
    """Tell whether a topic's policy lets CloudWatch publish for this alarm.

    Raises:
        ValueError: the policy holds what the twin cannot evaluate.
    """
    account = alarm.arn.split(":")[4]
    facts = {"aws:SourceAccount": account, "aws:SourceArn": alarm.arn, "aws:SourceOwner": account}
    speaking = [
        {key: value for key, value in statement.items() if key != "Principal"}
        | {"Action": _actions(statement)}
        for statement in policy["Statement"]
        if _names_service(statement.get("Principal"))
    ]
    statements = [parsed for statement in speaking for parsed in parse_policy({"Statement": [statement]})]
    return decide(statements, "sns:Publish", topic_arn, normalized(facts)) is Decision.ALLOWED


def _actions(statement: Mapping[str, Any]) -> Sequence[str]:
    named = statement["Action"]
    return named if isinstance(named, list) else [named]


def _names_service(principal: object) -> bool:
    """Tell whether the principal is the service, by its name or as anyone."""
    if not isinstance(principal, Mapping):
        return principal == "*"
    named = principal.get("Service", [])
    services = named if isinstance(named, list) else [named]
    return SERVICE in services or principal.get("AWS") == "*"
