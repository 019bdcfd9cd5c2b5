"""What the deployment makes of a template, and what it refuses so that it cannot drift from it."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from local.clock import TwinClock
from local.deployment.deployment_errors import DeploymentError, ParameterError, TemplateError
from local.deployment.resources.kinds import Site
from local.deployment.rights import Rights
from local.deployment.stack import deploy
from local.deployment.template import load_template
from local.deployment.template_yaml import read_template
from local.deployment.wiring import AsyncSettings, Wiring
from local.engine.moto_engine import MotoEngine
from local.identity.identities import Identities
from tests.integration.local.running_twin import FIXTURE

Document: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Document], object]

REGION = "us-east-1"
PARAMETERS = {"VpcEndpointIds": "vpce-local", "CallerPrincipalArns": "arn:aws:iam::123456789012:user/u"}


class Cloud:
    """An engine and identities, and the fixture's stack in it, changed or not."""

    def __init__(self, folder: Path) -> None:
        self.clock = TwinClock(manual=True)
        self.engine = MotoEngine(clock=self.clock, region=REGION)
        self.identities = Identities(self.engine.account_id)
        self.folder = folder

    def deploy(self, change: Change | None = None, **given: str) -> tuple[Wiring, dict[str, str]]:
        document = copy.deepcopy(read_template(FIXTURE.read_text()))
        if change is not None:
            change(document)
        path = FIXTURE if change is None else self._written(document)
        template = load_template(path, defaults=PARAMETERS, given=given, region=REGION)
        site = Site(
            stack="s",
            region=REGION,
            account_id=self.engine.account_id,
            folder=FIXTURE.parent,
            client=self.engine.client,
            roles=self.identities,
            wiring=Wiring(),
        )
        stack = deploy(template, site, api_root="http://twin/_api/")
        return stack.wiring, dict(stack.outputs)

    def rights(self, wiring: Wiring) -> Rights:
        return Rights(wiring=wiring, roles=self.identities, region=REGION, account_id=self.engine.account_id)

    def _written(self, document: Document) -> Path:
        path = self.folder / "template.json"
        path.write_text(json.dumps(document))
        return path


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(tmp_path)
    yield cloud
    cloud.engine.close()
    cloud.clock.close()


def test_the_template_becomes_functions_with_code_layer_and_environment(cloud: Cloud) -> None:
    wiring, _ = cloud.deploy(Greeting="moin")
    probe = wiring.functions["arn:aws:lambda:us-east-1:123456789012:function:s-ProbeFunction"]
    assert (probe.code.name, probe.session_name) == ("probe", "probe")
    assert [layer.name for layer in probe.layers] == ["words"]
    assert probe.environment["GREETING"] == "moin"
    assert probe.environment["TABLE"] == "s-Table"
    assert probe.environment["QUEUE_URL"].endswith("/123456789012/s-Queue")
    assert (probe.timeout, probe.memory_mb) == (timedelta(seconds=2), 128)
    assert probe.role_arn == "arn:aws:iam::123456789012:role/s-ProbeFunctionRole"


def test_the_template_becomes_triggers(cloud: Cloud) -> None:
    wiring, outputs = cloud.deploy()
    recorder = "arn:aws:lambda:us-east-1:123456789012:function:s-RecorderFunction"
    (trigger,) = wiring.queue_triggers
    assert (trigger.queue_arn, trigger.batch_size, trigger.max_concurrency) == (
        "arn:aws:sqs:us-east-1:123456789012:s-Queue",
        100,
        2,
    )
    assert trigger.reports_item_failures
    (rule,) = wiring.rules
    assert (rule.pattern, rule.function_arns) == ({"source": ["tests"]}, (recorder,))
    (schedule,) = wiring.schedules
    assert (schedule.every, schedule.function_arn) == (timedelta(minutes=1), recorder)
    (subscription,) = wiring.subscriptions
    assert (subscription.topic_arn, subscription.function_arn) == (
        "arn:aws:sns:us-east-1:123456789012:s-Topic",
        recorder,
    )
    assert wiring.async_settings[recorder] == AsyncSettings(
        retries=2, on_failure_arn="arn:aws:sqs:us-east-1:123456789012:s-Failures"
    )
    (stage,) = wiring.stages
    assert wiring.apis[stage.api_id].routes.keys() == {
        ("POST", "/do"),
        ("GET", "/echo/{name}"),
        ("GET", "/broken"),
    }
    assert outputs == {"Url": f"http://twin/_api/{stage.api_id}/prod"}


def test_the_stack_grants_what_its_wiring_needs(cloud: Cloud) -> None:
    wiring, _ = cloud.deploy()
    cloud.rights(wiring).check()


def resource(name: str, kind: str, **properties: Any) -> Change:
    return lambda document: document["Resources"].update({name: {"Type": kind, "Properties": properties}})


def properties_of(name: str, **properties: Any) -> Change:
    return lambda document: document["Resources"][name].setdefault("Properties", {}).update(properties)


def event_of(name: str, event: str, **properties: Any) -> Change:
    return lambda document: document["Resources"][name]["Properties"]["Events"][event]["Properties"].update(
        properties
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param(resource("Bucket", "AWS::S3::Bucket"), "Bucket", id="a type"),
        pytest.param(properties_of("Queue", FifoQueue=True), "Queue", id="a property"),
        pytest.param(properties_of("Table", SSESpecification={"Oddity": 1}), "Table", id="a nested property"),
        pytest.param(
            properties_of("Queue", QueueName={"Fn::ImportValue": "x"}), "Fn::ImportValue", id="a function"
        ),
        pytest.param(properties_of("Queue", QueueName={"Ref": "Nobody"}), "Nobody", id="a name"),
        pytest.param(
            properties_of("Queue", QueueName={"Fn::GetAtt": ["Table", "StreamArn"]}),
            "Table",
            id="an attribute",
        ),
        pytest.param(lambda document: document.update(Rules={}), "Rules", id="a section"),
        pytest.param(
            lambda document: document["Resources"]["Queue"].update(CreationPolicy={}),
            "Queue.CreationPolicy",
            id="an attribute of a resource",
        ),
        pytest.param(
            lambda document: document["Resources"]["Queue"].update(Condition="Nobody"),
            "Nobody",
            id="a condition",
        ),
        pytest.param(
            event_of("RecorderFunction", "EveryMinute", ScheduleExpression="cron(0 * * * ? *)"),
            "RecorderFunctionEveryMinute",
            id="a cron schedule",
        ),
        pytest.param(
            event_of("RecorderFunction", "Own", Pattern={"source": [{"wildcard": "x*"}]}),
            "RecorderFunctionOwn.source",
            id="an operator of a pattern",
        ),
        pytest.param(
            event_of("RecorderFunction", "Own", InputPath="$.detail"),
            "RecorderFunctionOwn.Targets",
            id="a change of the event on its way",
        ),
        pytest.param(
            event_of("RecorderFunction", "Topic", FilterPolicy={"a": ["b"]}),
            "RecorderFunctionTopic",
            id="a filter of a subscription",
        ),
        pytest.param(
            event_of("RecorderFunction", "Queue", FilterCriteria={"Filters": [{"Pattern": "{}"}]}),
            "RecorderFunctionQueue",
            id="a filter of a queue",
        ),
        pytest.param(
            event_of("ProbeFunction", "Do", Auth={"Authorizer": "NONE"}),
            "Api.post /do",
            id="a method without IAM",
        ),
        pytest.param(
            properties_of("ProbeFunction", LoggingConfig={"SystemLogLevel": "DEBUG"}),
            "ProbeFunction.LoggingConfig",
            id="a setting of a function's log",
        ),
        pytest.param(
            properties_of(
                "RecorderFunction",
                EventInvokeConfig={"DestinationConfig": {"OnSuccess": {"Type": "SQS"}}},
            ),
            "RecorderFunctionEventInvokeConfig.DestinationConfig",
            id="a destination of successes",
        ),
        pytest.param(
            event_of("RecorderFunction", "EveryMinute", State="PAUSED"),
            "RecorderFunctionEveryMinute",
            id="a state of a schedule",
        ),
        pytest.param(
            event_of("RecorderFunction", "Queue", ScalingConfig={"MaximumPollers": 2}),
            "RecorderFunctionQueue.ScalingConfig",
            id="a way to scale",
        ),
        pytest.param(
            properties_of("ProbeFunction", CodeUri="s3://b/k"), "ProbeFunction", id="code elsewhere"
        ),
        pytest.param(
            properties_of("ProbeFunction", CodeUri="functions/x/"), "ProbeFunction", id="no such code"
        ),
        pytest.param(
            properties_of("ProbeFunction", KmsKeyArn="x"), "ProbeFunction", id="a function's property"
        ),
        pytest.param(
            properties_of("ProbeFunction", Policies=["AmazonS3FullAccess"]),
            "ProbeFunctionRole",
            id="a managed policy",
        ),
        pytest.param(
            properties_of(
                "ProbeFunction",
                Policies=[
                    {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "${aws:username}"}]}
                ],
            ),
            "ProbeFunctionRole",
            id="a policy variable",
        ),
    ],
)
def test_what_the_twin_does_not_know_is_refused(cloud: Cloud, change: Change, named: str) -> None:
    with pytest.raises(TemplateError) as caught:
        cloud.deploy(change)
    assert caught.value.where.startswith(named)


def test_a_circle_of_references_is_refused(cloud: Cloud) -> None:
    def change(document: Document) -> None:
        properties_of("Queue", RedrivePolicy={"deadLetterTargetArn": {"Fn::GetAtt": ["Failures", "Arn"]}})(
            document
        )
        properties_of("Failures", RedrivePolicy={"deadLetterTargetArn": {"Fn::GetAtt": ["Queue", "Arn"]}})(
            document
        )

    with pytest.raises(TemplateError, match="a circle of references"):
        cloud.deploy(change)


def test_a_resource_whose_condition_does_not_hold_is_left_out(cloud: Cloud) -> None:
    def change(document: Document) -> None:
        document["Conditions"] = {"Never": {"Fn::Equals": ["a", "b"]}}
        resource("Extra", "AWS::SQS::Queue")(document)
        document["Resources"]["Extra"]["Condition"] = "Never"

    cloud.deploy(change)
    assert not cloud.engine.client("sqs").list_queues(QueueNamePrefix="s-Extra").get("QueueUrls")


def test_a_template_that_is_none_is_one_clear_line(cloud: Cloud, tmp_path: Path) -> None:
    for text in ("[", "- 1", "Resources: {A: {Type: AWS::Serverless::Function}}"):
        path = tmp_path / "broken.yaml"
        path.write_text(text)
        with pytest.raises(TemplateError) as caught:
            load_template(path, defaults={}, given={}, region=REGION)
        assert "\n" not in str(caught.value)
    with pytest.raises(DeploymentError):
        load_template(tmp_path / "none.yaml", defaults={}, given={}, region=REGION)


def test_a_parameter_that_nobody_declared_is_refused(cloud: Cloud) -> None:
    with pytest.raises(ParameterError):
        cloud.deploy(Greetings="moin")
    with pytest.raises(ParameterError):
        cloud.deploy(Greeting="MOIN")


@pytest.mark.parametrize(
    ("role", "missing"),
    [
        pytest.param("s-RecorderFunctionRole", "sqs:ReceiveMessage", id="reading the queue"),
        pytest.param("s-RecorderFunctionEveryMinuteRole", "lambda:InvokeFunction", id="the schedule's call"),
    ],
)
def test_a_role_that_lacks_a_right_is_refused(cloud: Cloud, role: str, missing: str) -> None:
    wiring, _ = cloud.deploy()
    cloud.identities.add_role(f"arn:aws:iam::123456789012:role/{role}", [])
    with pytest.raises(TemplateError, match=missing):
        cloud.rights(wiring).check()


def test_a_function_that_may_not_write_to_its_failure_queue_is_refused(cloud: Cloud) -> None:
    wiring, _ = cloud.deploy()
    reading = {"Effect": "Allow", "Action": ["sqs:R*", "sqs:D*", "sqs:G*"], "Resource": "*"}
    cloud.identities.add_role(
        "arn:aws:iam::123456789012:role/s-RecorderFunctionRole", [{"Statement": [reading]}]
    )
    with pytest.raises(TemplateError, match="sqs:SendMessage"):
        cloud.rights(wiring).check()


@pytest.mark.parametrize("principal", ["apigateway", "events", "sns"])
def test_a_trigger_without_permission_to_invoke_is_refused(cloud: Cloud, principal: str) -> None:
    wiring, _ = cloud.deploy()
    wiring.permissions[:] = [each for each in wiring.permissions if not each.principal.startswith(principal)]
    with pytest.raises(TemplateError, match=f"no permission lets {principal}"):
        cloud.rights(wiring).check()


@pytest.mark.parametrize("principal", ["apigateway", "events", "sns"])
def test_a_permission_for_another_source_is_none(cloud: Cloud, principal: str) -> None:
    wiring, _ = cloud.deploy()
    wiring.permissions[:] = [
        replace(each, source_arn="arn:aws:x:::other") if each.principal.startswith(principal) else each
        for each in wiring.permissions
    ]
    with pytest.raises(TemplateError, match=f"no permission lets {principal}"):
        cloud.rights(wiring).check()


def test_a_permission_without_a_source_is_one_for_all(cloud: Cloud) -> None:
    wiring, _ = cloud.deploy()
    wiring.permissions[:] = [replace(each, source_arn=None) for each in wiring.permissions]
    cloud.rights(wiring).check()


@pytest.mark.parametrize(
    ("role", "service"),
    [("s-ProbeFunctionRole", "lambda"), ("s-RecorderFunctionEveryMinuteRole", "scheduler")],
)
def test_a_role_that_does_not_trust_its_service_is_refused(cloud: Cloud, role: str, service: str) -> None:
    wiring, _ = cloud.deploy()
    wiring.trusts[f"arn:aws:iam::123456789012:role/{role}"] = {
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ]
    }
    with pytest.raises(TemplateError, match=rf"does not trust {service}\.amazonaws\.com"):
        cloud.rights(wiring).check()


def test_a_role_without_the_right_to_write_logs_writes_none(cloud: Cloud) -> None:
    wiring, _ = cloud.deploy()
    (probe,) = [each for each in wiring.functions.values() if each.session_name == "probe"]
    assert cloud.rights(wiring).may_write_logs(probe, "stream")
    cloud.identities.add_role(probe.role_arn, [])
    assert not cloud.rights(wiring).may_write_logs(probe, "stream")
