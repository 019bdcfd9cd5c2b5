"""All checks of the template, each a function from the resources to what is wrong with them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.template import alarms, api, dashboards, functions, messages, rights, state

# No check looks at any other type (and a policy, a function URL or a version could give rights away).
TYPES = {
    "AWS::ApiGateway::Account",
    "AWS::ApiGateway::Deployment",
    "AWS::ApiGateway::RestApi",
    "AWS::ApiGateway::Stage",
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::DynamoDB::Table",
    "AWS::Events::Rule",
    "AWS::IAM::Role",
    "AWS::KMS::Alias",
    "AWS::KMS::Key",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::EventSourceMapping",
    "AWS::Lambda::Function",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Permission",
    "AWS::Logs::LogGroup",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::SSM::Parameter",
    "AWS::Scheduler::Schedule",
}

Check = Callable[[Mapping[str, Any]], Iterator[str]]


def unknown_types(stack: Mapping[str, Any]) -> Iterator[str]:
    for name, resource in stack.items():
        if resource.get("Type") not in TYPES:
            yield f"{name}: {resource.get('Type')}"


CHECKS: tuple[Check, ...] = (
    unknown_types,
    rights.wrong_rights,
    rights.wrong_trust,
    functions.wrong_functions,
    functions.wrong_layer,
    functions.wrong_logs,
    functions.wrong_destinations,
    functions.wrong_invokers,
    functions.wrong_triggers,
    api.wrong_methods,
    api.wrong_access,
    api.wrong_stage,
    api.wrong_deployment,
    api.wrong_log_role,
    api.wrong_address,
    state.wrong_table,
    state.wrong_retention,
    state.wrong_key,
    messages.wrong_queues,
    messages.wrong_queue_policies,
    messages.wrong_topics,
    alarms.wrong_alarms,
    dashboards.wrong_dashboard,
    dashboards.wrong_layout,
    dashboards.wrong_widget,
)


def wrong(stack: Mapping[str, Any]) -> Iterator[str]:
    for check in CHECKS:
        yield from check(stack)
