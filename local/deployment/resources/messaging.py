"""Queues and topics, their policies and subscriptions."""

import json

from local.deployment.deployment_errors import TemplateError
from local.deployment.resources.kinds import Kind, Made, Properties, Site, check_keys, names
from local.deployment.wiring import Subscription

_QUEUE_ATTRIBUTES = names(
    "VisibilityTimeout MessageRetentionPeriod DelaySeconds MaximumMessageSize ReceiveMessageWaitTimeSeconds"
    " KmsMasterKeyId KmsDataKeyReusePeriodSeconds SqsManagedSseEnabled"
)
_JSON_QUEUE_ATTRIBUTES = names("RedrivePolicy RedriveAllowPolicy")


def _queue(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("QueueName", site.name(logical_id))
    attributes = {key: _attribute(properties[key]) for key in _QUEUE_ATTRIBUTES & properties.keys()}
    attributes |= {key: json.dumps(properties[key]) for key in _JSON_QUEUE_ATTRIBUTES & properties.keys()}
    url = site.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return Made(ref=url, attributes={"Arn": site.arn("sqs", name), "QueueName": name, "QueueUrl": url})


def _attribute(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _queue_policy(site: Site, logical_id: str, properties: Properties) -> Made:
    policy = {"Policy": json.dumps(properties["PolicyDocument"])}
    for url in properties["Queues"]:
        site.client("sqs").set_queue_attributes(QueueUrl=url, Attributes=policy)
    return Made(ref=site.name(logical_id))


def _topic(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("TopicName", site.name(logical_id))
    attributes = {key: str(properties[key]) for key in properties.keys() - {"TopicName"}}
    arn = site.client("sns").create_topic(Name=name, Attributes=attributes)["TopicArn"]
    return Made(ref=arn, attributes={"TopicArn": arn, "TopicName": name})


def _topic_policy(site: Site, logical_id: str, properties: Properties) -> Made:
    policy = json.dumps(properties["PolicyDocument"])
    for arn in properties["Topics"]:
        site.client("sns").set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=policy)
    return Made(ref=site.name(logical_id))


def _subscription(site: Site, logical_id: str, properties: Properties) -> Made:
    """Note a function's subscription; the twin delivers, as moto cannot call a function."""
    if properties["Protocol"] != "lambda":
        raise TemplateError(logical_id, f"the twin does not know protocol {properties['Protocol']}")
    check_keys(
        f"{logical_id}.RedrivePolicy",
        properties.get("RedrivePolicy", {}),
        optional=names("deadLetterTargetArn"),
    )
    arn = f"{properties['TopicArn']}:{site.short_id(logical_id)}"
    site.wiring.subscriptions.append(
        Subscription(arn=arn, topic_arn=properties["TopicArn"], function_arn=properties["Endpoint"])
    )
    return Made(ref=arn, attributes={"Arn": arn})


KINDS = {
    "AWS::SQS::Queue": Kind(
        create=_queue, optional=_QUEUE_ATTRIBUTES | _JSON_QUEUE_ATTRIBUTES | {"QueueName"}
    ),
    "AWS::SQS::QueuePolicy": Kind(create=_queue_policy, required=names("Queues PolicyDocument")),
    "AWS::SNS::Topic": Kind(create=_topic, optional=names("TopicName DisplayName KmsMasterKeyId")),
    "AWS::SNS::TopicPolicy": Kind(create=_topic_policy, required=names("Topics PolicyDocument")),
    "AWS::SNS::Subscription": Kind(
        create=_subscription,
        required=names("Endpoint Protocol TopicArn"),
        # Whom AWS writes to when it cannot reach the function; the twin always reaches it.
        optional=names("RedrivePolicy"),
    ),
}
