"""Functions, their layer, and the settings of what invokes them."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from local.deployment.deployment_errors import TemplateError
from local.deployment.resources.kinds import Kind, Made, Properties, Site, check_keys, names
from local.deployment.sam import CHECKOUT_BUCKET
from local.deployment.wiring import AsyncSettings, Function, Permission, QueueTrigger

DEFAULT_TIMEOUT_SECONDS = 3
"""Lambda API reference, CreateFunction, Timeout."""
DEFAULT_MEMORY_MB = 128
"""Lambda API reference, CreateFunction, MemorySize."""
_DEFAULT_BATCH_SIZE = 10
_DEFAULT_QUEUE_CONCURRENCY = 5
"""Concurrent invocations with which Lambda begins to poll a standard queue (Developer Guide)."""


def _layer(site: Site, logical_id: str, properties: Properties) -> Made:
    arn = site.arn("lambda", f"layer:{properties.get('LayerName', site.name(logical_id))}:1")
    site.wiring.layers[arn] = _code_folder(site, logical_id, properties["Content"])
    return Made(ref=arn)


def _function(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("FunctionName", site.name(logical_id))
    arn = site.arn("lambda", f"function:{name}")
    logging = properties.get("LoggingConfig", {})
    check_keys(f"{logical_id}.LoggingConfig", logging, optional=names("LogFormat LogGroup"))
    concurrency = properties.get("ReservedConcurrentExecutions")
    site.wiring.functions[arn] = Function(
        name=name,
        arn=arn,
        role_arn=properties["Role"],
        handler=properties["Handler"],
        code=_code_folder(site, logical_id, properties["Code"]),
        layers=tuple(_layer_folder(site, logical_id, layer) for layer in properties.get("Layers", [])),
        environment=_environment(properties.get("Environment", {})),
        timeout=timedelta(seconds=int(properties.get("Timeout", DEFAULT_TIMEOUT_SECONDS))),
        memory_mb=int(properties.get("MemorySize", DEFAULT_MEMORY_MB)),
        log_group=logging.get("LogGroup", f"/aws/lambda/{name}"),
        json_logs=logging.get("LogFormat") == "JSON",
        runtime=properties["Runtime"],
        concurrency=None if concurrency is None else int(concurrency),
    )
    return Made(ref=name, attributes={"Arn": arn})


def _environment(environment: Properties) -> dict[str, str]:
    return {name: str(value) for name, value in environment.get("Variables", {}).items()}


def _code_folder(site: Site, logical_id: str, code: Properties) -> Path:
    if code.get("S3Bucket") != CHECKOUT_BUCKET:
        raise TemplateError(logical_id, "the twin runs only code that lies beside the template")
    folder = site.folder / str(code["S3Key"])
    if not folder.is_dir():
        raise TemplateError(logical_id, f"no folder {folder}")
    return folder


def _layer_folder(site: Site, logical_id: str, arn: str) -> Path:
    if arn not in site.wiring.layers:
        raise TemplateError(logical_id, f"the twin does not know layer {arn}")
    return site.wiring.layers[arn]


def _function_arn(site: Site, name_or_arn: str) -> str:
    return name_or_arn if name_or_arn.startswith("arn:") else site.arn("lambda", f"function:{name_or_arn}")


def _permission(site: Site, logical_id: str, properties: Properties) -> Made:
    if properties["Action"] != "lambda:InvokeFunction":
        raise TemplateError(logical_id, f"the twin does not know action {properties['Action']}")
    permission = Permission(
        function_arn=_function_arn(site, properties["FunctionName"]),
        principal=properties["Principal"],
        source_arn=properties.get("SourceArn"),
    )
    site.wiring.permissions.append(permission)
    return Made(ref=site.name(logical_id))


def _event_invoke_config(site: Site, logical_id: str, properties: Properties) -> Made:
    destinations = properties.get("DestinationConfig", {})
    check_keys(f"{logical_id}.DestinationConfig", destinations, optional=names("OnFailure"))
    default = AsyncSettings()
    max_age = properties.get("MaximumEventAgeInSeconds", default.max_age.total_seconds())
    arn = _function_arn(site, properties["FunctionName"])
    site.wiring.async_settings[arn] = AsyncSettings(
        retries=int(properties.get("MaximumRetryAttempts", default.retries)),
        max_age=timedelta(seconds=int(max_age)),
        on_failure_arn=_queue_destination(logical_id, destinations.get("OnFailure")),
    )
    return Made(ref=site.name(logical_id))


def _queue_destination(logical_id: str, destination: Properties | None) -> str | None:
    if destination is None:
        return None
    arn = str(destination["Destination"])
    if ":sqs:" not in arn:
        raise TemplateError(logical_id, f"the twin delivers failures only to queues, not to {arn}")
    return arn


def _event_source_mapping(site: Site, logical_id: str, properties: Properties) -> Made:
    queue = str(properties["EventSourceArn"])
    if ":sqs:" not in queue:
        raise TemplateError(logical_id, f"the twin reads events only from queues, not from {queue}")
    window = int(properties.get("MaximumBatchingWindowInSeconds", 0))
    trigger = QueueTrigger(
        function_arn=_function_arn(site, properties["FunctionName"]),
        queue_arn=queue,
        batch_size=int(properties.get("BatchSize", _DEFAULT_BATCH_SIZE)),
        window=timedelta(seconds=window),
        max_concurrency=_max_concurrency(logical_id, properties.get("ScalingConfig", {})),
        reports_item_failures="ReportBatchItemFailures" in properties.get("FunctionResponseTypes", []),
    )
    site.wiring.queue_triggers.append(trigger)
    return Made(ref=site.name(logical_id))


def _max_concurrency(logical_id: str, scaling: dict[str, Any]) -> int:
    check_keys(f"{logical_id}.ScalingConfig", scaling, optional=names("MaximumConcurrency"))
    return int(scaling.get("MaximumConcurrency", _DEFAULT_QUEUE_CONCURRENCY))


KINDS = {
    "AWS::Lambda::LayerVersion": Kind(
        create=_layer,
        required=names("Content"),
        optional=names("LayerName Description CompatibleRuntimes CompatibleArchitectures"),
    ),
    "AWS::Lambda::Function": Kind(
        create=_function,
        required=names("Code Handler Role Runtime"),
        optional=names(
            "FunctionName Description Architectures Environment Layers LoggingConfig MemorySize"
            " RecursiveLoop ReservedConcurrentExecutions Tags Timeout"
        ),
    ),
    "AWS::Lambda::Permission": Kind(
        create=_permission, required=names("Action FunctionName Principal"), optional=names("SourceArn")
    ),
    "AWS::Lambda::EventInvokeConfig": Kind(
        create=_event_invoke_config,
        required=names("FunctionName Qualifier"),
        optional=names("DestinationConfig MaximumEventAgeInSeconds MaximumRetryAttempts"),
    ),
    "AWS::Lambda::EventSourceMapping": Kind(
        create=_event_source_mapping,
        required=names("EventSourceArn FunctionName"),
        optional=names("BatchSize FunctionResponseTypes MaximumBatchingWindowInSeconds ScalingConfig"),
    ),
}
