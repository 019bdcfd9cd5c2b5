"""Notes every part of a request that has no counterpart in Kubernetes, or a different one than it seems."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from trainmaster.core.request.options import ELASTIC, PRIORITY, TAG_PREFIX

from trainmaster_client.manifests.job_request import (
    Channels,
    Kind,
    ManifestOptions,
    Request,
    accelerator,
    entrypoint,
    is_launcher,
    tag_labels,
)

_MAPPED = frozenset(
    {
        "TrainingJobName",
        "HyperParameters",
        "AlgorithmSpecification.TrainingImage",
        "AlgorithmSpecification.TrainingInputMode",
        "AlgorithmSpecification.ContainerEntrypoint",
        "AlgorithmSpecification.ContainerArguments",
        "InputDataConfig",
        "ResourceConfig.InstanceType",
        "ResourceConfig.InstanceCount",
        "StoppingCondition.MaxRuntimeInSeconds",
        "Tags",
        "Environment",
        "CheckpointConfig.LocalPath",
    }
)
_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "RoleArn": "the pods have the AWS rights of their service account (--service-account)",
        "AlgorithmSpecification.MetricDefinitions": "logs are not searched for metrics; the guide has DCGM's",
        "AlgorithmSpecification.TrainingImageConfig": "give the pods' service account imagePullSecrets",
        "ResourceConfig.VolumeSizeInGB": "the node's disk is used; size it in the node group",
        "ResourceConfig.KeepAlivePeriodInSeconds": "nodes stay as long as their node group keeps them",
        "ResourceConfig.TrainingPlanArn": "a plan of training jobs is not for clusters; reserve a Capacity"
        " Block for the node group, or in HyperPod a plan of the instance group",
        "StoppingCondition.MaxWaitTimeInSeconds": "a job waits for nodes without a limit",
        "StoppingCondition.MaxPendingTimeInSeconds": "a job waits for nodes without a limit",
        "VpcConfig": "pods run in the cluster's network",
        "EnableNetworkIsolation": "add a NetworkPolicy that denies egress",
        "EnableInterContainerTrafficEncryption": "traffic between pods is as the cluster's network has it",
        "OutputDataConfig.KmsKeyId": "encrypt the volume with its own key",
        "ResourceConfig.VolumeKmsKeyId": "encrypt the node group's disks",
    }
)
_ELASTIC: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.PYTORCHJOB: "the operator has no widths in between, and restarts the pods at a change; only"
        " programs that torchrun starts follow it, the launcher begins with all hosts",
        Kind.TRAINJOB: "only a label; a TrainJob is not elastic",
        Kind.HYPERPOD: "the operator changes the width; the program has to save when the agent signals it",
    }
)
_SPOT = "the node selector asks for eks.amazonaws.com/capacityType SPOT, as managed node groups have it"
_SPOT_ON_HYPERPOD = "left out; choose a spot instance group by a node selector"


def notes(body: Request, options: ManifestOptions) -> Iterator[str]:
    for field in _fields(body):
        if field not in _MAPPED and (text := _text(field, body, options)):
            yield f"{field}: {text}"
    yield from _tag_notes(body, options)
    yield from _program_notes(body)
    yield from _data_notes(body, options)
    yield from _restart_notes(options)


def _fields(body: Request) -> Iterator[str]:
    """Yield the members of the request, and of its structures that are mapped in part."""
    parts = {
        path.partition(".")[0]
        for path in (*_MAPPED, *_TEXTS, "RetryStrategy.", "OutputDataConfig.")
        if "." in path
    }
    for name, value in body.items():
        yield from (f"{name}.{member}" for member in value) if name in parts else (name,)


def _text(field: str, body: Request, options: ManifestOptions) -> str | None:
    if field.startswith(("CheckpointConfig.S3Uri", "OutputDataConfig.S3OutputPath")):
        return _kept(field, options)
    if field == "RetryStrategy.MaximumRetryAttempts":
        return "the retries are the runtime's (backoffLimit)" if options.kind is Kind.TRAINJOB else None
    if field == "EnableManagedSpotTraining":
        spot = _SPOT_ON_HYPERPOD if options.kind is Kind.HYPERPOD else _SPOT
        return spot if body[field] else None
    if field.startswith("Enable") and not body[field]:
        return None
    return _TEXTS.get(field, "has no counterpart, and is left out")


def _kept(field: str, options: ManifestOptions) -> str:
    if options.claim:
        return f"kept in that folder of the claim {options.claim}; link the claim with S3 to have it there"
    if field.startswith("OutputDataConfig"):
        return "/opt/ml/model and /opt/ml/output stay in the pod; --claim keeps them"
    return (
        "the program writes to S3 itself; what it leaves in the local folder (status.json) stays in the pod"
    )


def _tag_notes(body: Request, options: ManifestOptions) -> Iterator[str]:
    keys = [tag["Key"] for tag in body.get("Tags", ())]
    _, others = tag_labels(body)
    yield from (
        f"Tags ({tag['Key']}): cannot be a label; it is in the annotation trainmaster/tags" for tag in others
    )
    if PRIORITY in keys and not options.priority_class:
        yield f"Tags ({PRIORITY}): only a label; the cluster orders by a PriorityClass (--priority-class)"
    if PRIORITY in keys and options.priority_class and options.kind is Kind.TRAINJOB:
        of_kueue = "only Kueue's label is set" if options.queue else "--priority-class is left out"
        yield f"Tags ({PRIORITY}): {of_kueue}; a TrainJob cannot set priorityClassName, its runtime can"
    if ELASTIC in keys:
        yield f"Tags ({ELASTIC}): {_ELASTIC[options.kind]}"
    for key in keys:
        if key.startswith(TAG_PREFIX) and key != ELASTIC:
            yield f"Tags ({key}): only a label; this queue does not run the job"


def _program_notes(body: Request) -> Iterator[str]:
    command = entrypoint(body) or []
    if not is_launcher(command):
        yield (
            f"AlgorithmSpecification.ContainerEntrypoint: {command[0]} is the first process, and not the"
            " launcher; it has to act on SIGTERM itself"
        )
    if "ContainerEntrypoint" not in body.get("AlgorithmSpecification", {}):
        yield "AlgorithmSpecification.ContainerEntrypoint: the launcher, out of the request's source code"
    if accelerator(body["ResourceConfig"]["InstanceType"]) is None:
        yield "ResourceConfig.InstanceType: no accelerators, so pods may share a node; request cpu and memory"


def _data_notes(body: Request, options: ManifestOptions) -> Iterator[str]:
    for number, channel in enumerate(body.get("InputDataConfig", ())):
        path, source = f"InputDataConfig[{number}]", channel["DataSource"]
        if "ShuffleConfig" in channel:
            yield f"{path}.ShuffleConfig: files come in the order in which the program reads them"
        if system := source.get("FileSystemDataSource"):
            yield f"{path}: a claim called {system['FileSystemId']} must exist for that file system"
        elif options.channels is Channels.INIT:
            yield f"{path}: every pod copies it before it starts, to the node's disk, with boto3 of the image"
        elif options.channels is Channels.CLAIM:
            yield f"{path}: read from the claim {options.claim}, which must be linked with the bucket"
        elif channel.get("InputMode") != "FastFile":
            yield f"{path}: mounted, not copied, as FastFile is"


def _restart_notes(options: ManifestOptions) -> Iterator[str]:
    if options.kind is Kind.TRAINJOB:
        yield (
            "terminationGracePeriodSeconds is set, but a TrainJob cannot set a preStop hook, restartPolicy or"
            f" backoffLimit: the runtime {options.runtime} has them"
        )
    if options.kind is Kind.HYPERPOD:
        yield "the image needs hyperpod-elastic-agent: hyperpodrun comes first and starts the launcher"
