"""Which IAM permissions AWS asks for when an operation is called.

Source: Service Authorization Reference, one page a service. Only what somebody with limited rights calls is
here; anything else raises ``NotMappedError``, so that nothing passes unseen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from local.identity.checks import Check, Checks, NotMappedError, Operation
from local.identity.data_requests import dynamodb, s3, sns, sqs
from local.identity.hosting_requests import hosting
from local.identity.plan_requests import on_training_plan, training_plans


def checks(operation: Operation) -> tuple[Check, ...]:
    """Return what AWS would check, in its order. Raises NotMappedError."""
    by_service = _SERVICES.get(operation.service)
    required = by_service(operation) if by_service else None
    if required is None:
        raise NotMappedError(operation)
    return tuple(required)


def _sagemaker(operation: Operation) -> Checks:
    params = operation.params
    match operation.name:
        case "CreateTrainingJob":
            return _create_training_job(operation)
        case "DescribeTrainingJob" | "StopTrainingJob" | "UpdateTrainingJob" | "DeleteTrainingJob":
            return [_on_training_job(operation, operation.name)]
        case "ListTrainingJobs" | "ListHyperParameterTuningJobs":
            return [Check(action=f"sagemaker:{operation.name}", resource="*")]
        case "ListTags":
            return [Check(action="sagemaker:ListTags", resource=params.get("ResourceArn", ""))]
        case "DeleteTags":
            keys = tuple(params.get("TagKeys") or ())
            context = {"aws:TagKeys": keys} if keys else {}
            return [
                Check(action="sagemaker:DeleteTags", resource=params.get("ResourceArn", ""), context=context)
            ]
        case "AddTags":
            return [
                Check(
                    action="sagemaker:AddTags",
                    resource=params.get("ResourceArn", ""),
                    context=_tag_context(params),
                )
            ]
        case _:
            tags = _tag_context(params)
            return training_plans(operation, tags) or hosting(operation, tags)


def _create_training_job(operation: Operation) -> Iterator[Check]:
    context = _tag_context(operation.params)
    yield _on_training_job(operation, "CreateTrainingJob", context)
    if plan := (operation.params.get("ResourceConfig") or {}).get("TrainingPlanArn"):
        yield on_training_plan(plan, context)
    if operation.params.get("Tags"):
        tagging = context | {"sagemaker:TaggingAction": "CreateTrainingJob"}
        yield _on_training_job(operation, "AddTags", tagging)
    if role := operation.params.get("RoleArn"):
        passed_to = {"iam:PassedToService": "sagemaker.amazonaws.com"}
        yield Check(action="iam:PassRole", resource=role, context=passed_to)
    if key := (operation.params.get("ResourceConfig") or {}).get("VolumeKmsKeyId"):
        yield _volume_grant(operation, key)


def _volume_grant(operation: Operation, key: str) -> Check:
    """Check the grant that SageMaker makes on the key of volumes, for the job's role or the caller.

    Source: SageMaker developer guide, API permissions reference: CreateTrainingJob needs kms:CreateGrant only
    where there is a VolumeKmsKeyId and the role has no policy that permits it. OutputDataConfig.KmsKeyId asks
    nothing of the caller.
    """
    via = f"sagemaker.{operation.region}.amazonaws.com"
    return Check(
        action="kms:CreateGrant",
        resource=_key_arn(operation, key),
        context={"kms:GrantIsForAWSResource": "true", "kms:ViaService": via},
        or_of_role=operation.params.get("RoleArn"),
    )


def _on_training_job(
    operation: Operation, action: str, context: Mapping[str, str | Sequence[str]] | None = None
) -> Check:
    name = operation.params.get("TrainingJobName", "")
    return Check(
        action=f"sagemaker:{action}",
        resource=operation.arn("sagemaker", f"training-job/{name}"),
        context=context or {},
    )


def _tag_context(params: Mapping[str, Any]) -> dict[str, str | Sequence[str]]:
    tags = {tag["Key"]: tag.get("Value", "") for tag in params.get("Tags") or ()}
    context: dict[str, str | Sequence[str]] = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    return context | {"aws:TagKeys": tuple(tags)} if tags else context


def _cloudwatch(operation: Operation) -> Checks:
    params = operation.params
    match operation.name:
        case "PutMetricAlarm":
            alarm = operation.arn("cloudwatch", f"alarm:{params.get('AlarmName', '')}")
            required = [Check(action="cloudwatch:PutMetricAlarm", resource=alarm)]
            if params.get("Tags"):
                context = _tag_context(params)
                required.append(Check(action="cloudwatch:TagResource", resource=alarm, context=context))
            return required
        case "DeleteAlarms":
            return [
                Check(action="cloudwatch:DeleteAlarms", resource=operation.arn("cloudwatch", f"alarm:{name}"))
                for name in params.get("AlarmNames", ())
            ]
        # PutCompositeAlarm: CloudWatch refuses any narrower resource than "*".
        case "PutCompositeAlarm" | "DescribeAlarms" | "GetMetricData" | "PutMetricData":
            return [Check(action=f"cloudwatch:{operation.name}", resource="*")]
        case _:
            return None


def _events(operation: Operation) -> Checks:
    if operation.name != "PutEvents":
        return None
    return [_put_event(operation, entry) for entry in operation.params.get("Entries", ())]


def _put_event(operation: Operation, entry: Mapping[str, Any]) -> Check:
    bus = entry.get("EventBusName", "default")
    return Check(
        action="events:PutEvents",
        resource=bus if bus.startswith("arn:") else operation.arn("events", f"event-bus/{bus}"),
        context={"events:source": entry.get("Source", ""), "events:detail-type": entry.get("DetailType", "")},
    )


def _logs(operation: Operation) -> Checks:
    """Log groups are matched with the tail of their streams, which is why policies end in ``:*``."""
    if operation.name not in _LOG_OPERATIONS:
        return None
    params = operation.params
    group = params.get("logGroupName") or params.get("logGroupIdentifier", "").rpartition(":log-group:")[2]
    stream = params.get("logStreamName", "")
    resource = operation.arn("logs", f"log-group:{group}:log-stream:{stream}")
    return [Check(action=f"logs:{operation.name}", resource=resource)]


_LOG_OPERATIONS = frozenset(
    {"CreateLogStream", "PutLogEvents", "DescribeLogStreams", "GetLogEvents", "FilterLogEvents"}
)


def _ssm(operation: Operation) -> Checks:
    match operation.name:
        case "GetParameter":
            names = [operation.params.get("Name", "")]
        case "GetParameters":
            names = operation.params.get("Names", [])
        case _:
            return None
    return [
        Check(action=f"ssm:{operation.name}", resource=operation.arn("ssm", f"parameter/{name.lstrip('/')}"))
        for name in names
    ]


def _kms(operation: Operation) -> Checks:
    if operation.name not in {"Decrypt", "Encrypt", "GenerateDataKey", "DescribeKey"}:
        return None
    return [
        Check(
            action=f"kms:{operation.name}",
            resource=_key_arn(operation, operation.params.get("KeyId", "")),
        )
    ]


def _key_arn(operation: Operation, key: str) -> str:
    if key.startswith("arn:"):
        return key
    return operation.arn("kms", key if key.startswith("alias/") else f"key/{key}")


def _iam(operation: Operation) -> Checks:
    match operation.name:
        case "GetRole":
            resource = f"arn:aws:iam::{operation.account_id}:role/{operation.params.get('RoleName', '')}"
        case "SimulatePrincipalPolicy":
            resource = operation.params.get("PolicySourceArn", "")
        case _:
            return None
    return [Check(action=f"iam:{operation.name}", resource=resource)]


def _service_quotas(operation: Operation) -> Checks:
    if operation.name != "ListServiceQuotas":
        return None
    return [Check(action="servicequotas:ListServiceQuotas", resource="*")]


def _sts(operation: Operation) -> Checks:
    match operation.name:
        case "GetCallerIdentity":
            return []  # needs no permission
        case "AssumeRole":
            role, tags = operation.params.get("RoleArn", ""), _tag_context(operation.params)
            required = [Check(action="sts:AssumeRole", resource=role, context=tags)]
            return (
                [*required, Check(action="sts:TagSession", resource=role, context=tags)] if tags else required
            )
        case _:
            return None


_SERVICES: Mapping[str, Callable[[Operation], Checks]] = {
    "cloudwatch": _cloudwatch,
    "dynamodb": dynamodb,
    "events": _events,
    "iam": _iam,
    "kms": _kms,
    "logs": _logs,
    "s3": s3,
    "sagemaker": _sagemaker,
    "service-quotas": _service_quotas,
    "sns": sns,
    "sqs": sqs,
    "ssm": _ssm,
    "sts": _sts,
}
