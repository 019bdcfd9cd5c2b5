"""What each function must have: log group, limits, environment, triggers, and a place for its failures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.core.monitoring.metrics import NAMESPACE

from tests.template.stack import PARAMETERS, of_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    folder: str
    timeout_seconds: int
    reserved: int | None = None
    """Concurrent executions, as the parameters of these tests say."""
    asynchronous: tuple[int, int] | None = None
    """Retries and the oldest event in seconds, where something invokes it without waiting for the answer."""

    @property
    def has_dead_letters(self) -> bool:
        """Who calls the others waits for the answer, and sees the failure."""
        return self.folder not in {"api", "queue_widget"}


FUNCTIONS = {
    "ApiFunction": Function(folder="api", timeout_seconds=15, reserved=50),
    "ScheduleFunction": Function(folder="schedule", timeout_seconds=120, reserved=3),
    "OnTrainingJobEventFunction": Function(
        folder="on_training_job_event", timeout_seconds=60, asynchronous=(2, 21600)
    ),
    "OnIdleAlarmFunction": Function(folder="on_idle_alarm", timeout_seconds=30, asynchronous=(2, 21600)),
    "ReconcileFunction": Function(folder="reconcile", timeout_seconds=55, asynchronous=(0, 60)),
    "QueueWidgetFunction": Function(folder="queue_widget", timeout_seconds=15),
}
ENVIRONMENT = {
    "TRAINMASTER_TABLE": "${Table}",
    "TRAINMASTER_DOORBELL_URL": "${DoorbellQueue}",
    "TRAINMASTER_STACK": "prod",
    "TRAINMASTER_ACCOUNT_ID": "111122223333",
    "TRAINMASTER_ADMIN_PRINCIPAL_ARNS": ",".join(PARAMETERS["AdminPrincipalArns"]),
    "TRAINMASTER_RETENTION_DAYS": 90,
    "TRAINMASTER_ALARM_TOPIC_ARN": "${AlarmTopic}",
    "TRAINMASTER_MAIL_TOPIC_ARN": "${MailTopic}",
    "TRAINMASTER_WIDGET_SHOWS_NAMES": "false",
    "POWERTOOLS_SERVICE_NAME": "trainmaster",
    "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
}
OF_THE_API = {
    "TRAINMASTER_API_REQUESTS_PER_SECOND": 100,
    "TRAINMASTER_API_BURST": 200,
    "TRAINMASTER_TRAINING_ROLE_ARNS": ",".join(PARAMETERS["TrainingRoleArns"]),
}
"""What only the function of the API is given."""
ROUTES = {
    ("POST", "/add-job"),
    ("GET", "/jobs"),
    ("GET", "/jobs/{name}"),
    ("PATCH", "/jobs/{name}"),
    ("DELETE", "/jobs/{name}"),
    ("POST", "/add-array"),
    ("GET", "/arrays"),
    ("GET", "/arrays/{name}"),
    ("PATCH", "/arrays/{name}"),
    ("DELETE", "/arrays/{name}"),
    ("GET", "/arrays/{name}/tasks"),
    ("POST", "/arrays/{name}/rerun"),
    ("GET", "/pools"),
    ("GET", "/me"),
    ("GET", "/rules"),
    ("GET", "/estimates"),
    ("GET", "/usage"),
    ("GET", "/violations"),
    ("GET", "/timeline"),
    ("GET", "/history/export"),
    ("GET", "/pools/history"),
    ("GET", "/events"),
    ("GET", "/repair"),
    ("POST", "/repair"),
    ("GET", "/policy"),
    ("PUT", "/policy"),
    ("PUT", "/policy/paused"),
}


def _expected_function(name: str, layer: str) -> dict[str, Any]:
    return {
        "Code": {"S3Bucket": "bucket", "S3Key": "key"},
        "Handler": "app.handler",
        "Runtime": "python3.13",
        "Architectures": ["arm64"],
        "Layers": [f"${{{layer}}}"],
        "Timeout": FUNCTIONS[name].timeout_seconds,
        **({"ReservedConcurrentExecutions": FUNCTIONS[name].reserved} if FUNCTIONS[name].reserved else {}),
        **({"RecursiveLoop": "Allow"} if name == "ScheduleFunction" else {}),
        "Role": f"${{{name}Role.Arn}}",
        "LoggingConfig": {"LogFormat": "JSON", "LogGroup": f"${{{name}LogGroup}}"},
        "Environment": {"Variables": ENVIRONMENT | (OF_THE_API if name == "ApiFunction" else {})},
    }


def wrong_functions(stack: Mapping[str, Any]) -> Iterator[str]:
    functions = of_type(stack, "AWS::Lambda::Function")
    layers = list(of_type(stack, "AWS::Lambda::LayerVersion"))
    if functions.keys() != FUNCTIONS.keys() or len(layers) != 1:
        yield f"functions and layers: {sorted(functions)} {layers}"
        return
    for name, function in functions.items():
        free = {"Description", "MemorySize", "Tags"}
        if {key: one for key, one in function.items() if key not in free} != _expected_function(
            name, layers[0]
        ):
            yield f"{name}: settings"
        if function.get("MemorySize", 128) not in {512, 1024}:
            yield f"{name}: memory"


def wrong_layer(stack: Mapping[str, Any]) -> Iterator[str]:
    for name, layer in of_type(stack, "AWS::Lambda::LayerVersion").items():
        if (layer.get("CompatibleRuntimes"), layer.get("CompatibleArchitectures")) != (
            ["python3.13"],
            ["arm64"],
        ):
            yield f"{name}: not for the functions' runtime"
        if layer.get("Content") != {"S3Bucket": "bucket", "S3Key": "key"}:
            yield f"{name}: no content"


def wrong_logs(stack: Mapping[str, Any]) -> Iterator[str]:
    """A group of its own for each function and for the API, with an end and under the key."""
    expected = {
        f"{name}LogGroup": f"/aws/lambda/prod-{function.folder.replace('_', '-')}"
        for name, function in FUNCTIONS.items()
    }
    expected["ApiAccessLogGroup"] = "/aws/apigateway/prod"
    groups = of_type(stack, "AWS::Logs::LogGroup")
    if groups.keys() != expected.keys():
        yield f"log groups: {sorted(groups)}"
    for name in groups.keys() & expected.keys():
        wanted = {"LogGroupName": expected[name], "RetentionInDays": 365, "KmsKeyId": "${Key.Arn}"}
        if groups[name] != wanted:
            yield f"{name}: {groups[name]}"


def wrong_destinations(stack: Mapping[str, Any]) -> Iterator[str]:
    """What is invoked asynchronously keeps its failures in a queue of its own."""
    expected = {
        f"{name}EventInvokeConfig": {
            "FunctionName": f"${{{name}}}",
            "Qualifier": "$LATEST",
            "MaximumRetryAttempts": function.asynchronous[0],
            "MaximumEventAgeInSeconds": function.asynchronous[1],
            "DestinationConfig": {
                "OnFailure": {"Destination": f"${{{name.removesuffix('Function')}DeadLetterQueue.Arn}}"}
            },
        }
        for name, function in FUNCTIONS.items()
        if function.asynchronous
    }
    given = of_type(stack, "AWS::Lambda::EventInvokeConfig")
    if given != expected:
        yield f"destinations: {given}"


def wrong_invokers(stack: Mapping[str, Any]) -> Iterator[str]:
    """Only services may invoke a function, each for one source: a forged request context needs an invoker."""
    api = "arn:aws:execute-api:eu-west-1:111122223333:${Api}/*"
    routes = ((method, path.replace("{name}", "*")) for method, path in ROUTES)
    expected = sorted(
        [
            *(
                ("${ApiFunction}", "apigateway.amazonaws.com", f"{api}/{method}{path}")
                for method, path in routes
            ),
            (
                "${OnTrainingJobEventFunction}",
                "events.amazonaws.com",
                "${OnTrainingJobEventFunctionStateChange.Arn}",
            ),
            ("${OnIdleAlarmFunction}", "sns.amazonaws.com", "${AlarmTopic}"),
        ]
    )
    permissions = of_type(stack, "AWS::Lambda::Permission").values()
    given = sorted(
        (str(one.get("FunctionName")), str(one.get("Principal")), str(one.get("SourceArn")))
        for one in permissions
    )
    if given != expected or any(one.get("Action") != "lambda:InvokeFunction" for one in permissions):
        yield f"invokers: {given}"


DOORBELL = {
    "EventSourceArn": "${DoorbellQueue.Arn}",
    "FunctionName": "${ScheduleFunction}",
    "BatchSize": 10,
    "MaximumBatchingWindowInSeconds": 1,
    "FunctionResponseTypes": ["ReportBatchItemFailures"],
    "ScalingConfig": {"MaximumConcurrency": 3},
}
STATE_CHANGE = {
    "EventPattern": {"source": ["aws.sagemaker"], "detail-type": ["SageMaker Training Job State Change"]},
    "Targets": [
        {
            "Arn": "${OnTrainingJobEventFunction.Arn}",
            "Id": "OnTrainingJobEventFunctionStateChangeLambdaTarget",
            "RetryPolicy": {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185},
            "DeadLetterConfig": {"Arn": "${OnTrainingJobEventDeadLetterQueue.Arn}"},
        }
    ],
}
EVERY_MINUTE = {
    "ScheduleExpression": "rate(1 minute)",
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {
        "Arn": "${ReconcileFunction.Arn}",
        "RoleArn": "${ReconcileScheduleRole.Arn}",
        "RetryPolicy": {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 2},
        "DeadLetterConfig": {"Arn": "${ReconcileDeadLetterQueue.Arn}"},
    },
}
ALARM_CHANGE = {
    "TopicArn": "${AlarmTopic}",
    "Protocol": "lambda",
    "Endpoint": "${OnIdleAlarmFunction.Arn}",
    "RedrivePolicy": {"deadLetterTargetArn": "${OnIdleAlarmDeadLetterQueue.Arn}"},
}


def wrong_triggers(stack: Mapping[str, Any]) -> Iterator[str]:
    """The doorbell, the state changes (every status), the minute and the alarms; and nothing else."""
    expected = {
        "AWS::Lambda::EventSourceMapping": [DOORBELL],
        "AWS::Events::Rule": [STATE_CHANGE],
        "AWS::Scheduler::Schedule": [EVERY_MINUTE],
        "AWS::SNS::Subscription": [ALARM_CHANGE],
    }
    for kind, wanted in expected.items():
        if list(of_type(stack, kind).values()) != wanted:
            yield f"{kind}: {of_type(stack, kind)}"
