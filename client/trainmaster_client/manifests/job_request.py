"""Reads what a CreateTrainingJob request asks of Kubernetes, and finds what cannot be asked of it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.widths import Widths, read_widths
from trainmaster.core.memory.accelerators import BY_TYPE, gpus
from trainmaster.core.request.options import ELASTIC
from trainmaster.core.request.validation import check_request, check_shape

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.launcher import LAUNCHER

Document: TypeAlias = dict[str, Any]
Request: TypeAlias = Mapping[str, Any]

MAX_NAME_CHARACTERS = 50
"""Longest name of a job: operators append -worker-999, and a DNS label has at most 63 characters (RFC
1123)."""
STOP_SECONDS = 110
"""Seconds of the launcher's own deadline; the pod's grace is 10 s more. Source: training/launch.py."""
GRACE_MARGIN_SECONDS = 10
OPERATOR_VARIABLES = frozenset({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"})
PET_PREFIX = "PET_"
"""Prefix of torchrun's variables, which Kubeflow Trainer reserves."""

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_S3 = re.compile(r"s3://(?P<bucket>[^/]+)/?(?P<key>.*)")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?")


class Kind(StrEnum):
    PYTORCHJOB = "pytorchjob"
    TRAINJOB = "trainjob"
    HYPERPOD = "hyperpod"


class Channels(StrEnum):
    """Ways in which channels of S3 come into the pods."""

    S3_CSI = "s3-csi"
    CLAIM = "claim"
    INIT = "init"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions:
    kind: Kind
    channels: Channels = Channels.S3_CSI
    claim: str | None = None
    """A PersistentVolumeClaim that all pods may write; s3://BUCKET/KEY is its folder BUCKET/KEY."""
    service_account: str | None = None
    priority_class: str | None = None
    queue: str | None = None
    """Kueue's queue; HyperPod's task governance is Kueue."""
    runtime: str = "torch-distributed"
    namespace: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    documents: tuple[Document, ...]
    """Documents in the order in which kubectl applies them; the job is the last."""
    notes: tuple[str, ...]
    """Notes on what has no counterpart, each with its field."""

    @property
    def job(self) -> Document:
        return self.documents[-1]


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket and a key in S3."""

    bucket: str
    key: str
    """Key without slashes at its ends."""

    @property
    def folder(self) -> str:
        """Return its folder on a volume that is linked with S3."""
        return f"{self.bucket}/{self.key}".rstrip("/")


def widths_of(body: Request) -> Widths | None:
    """Return the widths in the tag of an elastic job; None if the request has no such tag."""
    values = (tag["Value"] for tag in body.get("Tags", ()) if tag["Key"] == ELASTIC)
    return next(map(read_widths, values), None)


def place_of(uri: str) -> Place | None:
    """Parse an S3 URI; None if it is not a place in S3 that could be a folder."""
    match = _S3.fullmatch(uri)
    if match is None:
        return None
    key = match["key"].strip("/")
    is_folder = not key or not {"", ".", ".."} & set(key.split("/"))
    return Place(match["bucket"], key) if is_folder else None


def _mistake(field: str, message: str, hint: str) -> FieldError:
    return FieldError(field=field, message=message, hint=hint)


def require_mappable(body: Any, options: ManifestOptions) -> None:  # noqa: ANN401  whatever a file held
    """Check the request. Raises InvalidArgumentError, which names every mistake."""
    problems = list(check_request(body))
    if not check_shape(body):
        problems += _mistakes(body, options)
    if problems:
        lines = [f"  {problem.field}: {problem.message}; {problem.hint}." for problem in problems]
        raise InvalidArgumentError(
            "\n".join([f"This request cannot become a {options.kind}:", *lines]),
            hint="\nNothing was written.",
        )


def _mistakes(body: Request, options: ManifestOptions) -> Iterator[FieldError]:
    yield from _name_mistakes(body["TrainingJobName"])
    yield from _program_mistakes(body)
    yield from _instance_mistakes(body.get("ResourceConfig", {}))
    for name, text in body.get("Environment", {}).items():
        if name in OPERATOR_VARIABLES or name.startswith(PET_PREFIX):
            yield _mistake(f"Environment.{name}", "is set by the operator", "leave it out")
        if name == "LAUNCH_STOP_SECONDS" and not re.fullmatch(r"\d{1,5}(\.\d+)?", text):
            yield _mistake(f"Environment.{name}", "is not a number of seconds", "write e.g. 110")
    for number, channel in enumerate(body.get("InputDataConfig", ())):
        path = f"InputDataConfig[{number}]"
        yield from _channel_mistakes(channel, path, hosts=host_count(body))
        if "FileSystemDataSource" not in channel["DataSource"]:
            yield from _s3_mistakes(channel["DataSource"], path, options)
    yield from _storage_mistakes(body, options)


def _name_mistakes(name: str) -> Iterator[FieldError]:
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_CHARACTERS:
        yield _mistake(
            "TrainingJobName",
            f"{name!r} cannot be the name of a job in Kubernetes",
            f"use at most {MAX_NAME_CHARACTERS} lower-case letters, digits and hyphens, a letter first",
        )


def _program_mistakes(body: Request) -> Iterator[FieldError]:
    algorithm = body.get("AlgorithmSpecification", {})
    if "TrainingImage" not in algorithm:
        yield _mistake(
            "AlgorithmSpecification.TrainingImage",
            "is missing, and only an image runs in a pod",
            "name the image of the framework or of the algorithm",
        )
    if entrypoint(body) is None:
        yield _mistake(
            "AlgorithmSpecification.ContainerEntrypoint",
            "is missing, and the request names no source code that the launcher could start",
            'give e.g. ["python3", "/opt/ml/code/launch.py"], where the image has launch.py',
        )
    if "ServerlessJobConfig" in body:
        yield _mistake("ServerlessJobConfig", "exists only in SageMaker", "describe the job by its image")


def _instance_mistakes(resources: Request) -> Iterator[FieldError]:
    for several in ("InstanceGroups", "InstancePreferences"):
        if several in resources:
            yield _mistake(
                f"ResourceConfig.{several}",
                "the replicas of a job are all alike",
                "give InstanceType and InstanceCount, and make a manifest for each shape",
            )
    name = resources.get("InstanceType")
    if name is not None and gpus(name) is None:
        yield _mistake(
            "ResourceConfig.InstanceType",
            f"how many accelerators {name} has is not known here",
            "make the manifest for a known type and change its node selector and its limits",
        )


def _channel_mistakes(channel: Request, path: str, *, hosts: int) -> Iterator[FieldError]:
    if channel.get("InputMode") == "Pipe":
        yield _mistake(f"{path}.InputMode", "Pipe has no counterpart", "use File or FastFile")
    if channel.get("CompressionType", "None") != "None":
        yield _mistake(f"{path}.CompressionType", "nothing unpacks it", "store the data unpacked")
    if channel.get("RecordWrapperType", "None") != "None":
        yield _mistake(f"{path}.RecordWrapperType", "nothing wraps records", "store the data as RecordIO")
    source = channel["DataSource"]
    if "DatasetSource" in source:
        yield _mistake(f"{path}.DataSource.DatasetSource", "exists only in SageMaker", "name its S3 prefix")
    s3 = source.get("S3DataSource", {})
    if s3.get("S3DataType", "S3Prefix") != "S3Prefix":
        yield _mistake(
            f"{path}.DataSource.S3DataSource.S3DataType",
            f"{s3['S3DataType']} is a list of objects, and a mount has all of a prefix",
            "use S3Prefix",
        )
    if s3.get("S3DataDistributionType") == "ShardedByS3Key" and hosts > 1:
        yield _mistake(
            f"{path}.DataSource.S3DataSource.S3DataDistributionType",
            "every pod sees all objects",
            "use FullyReplicated, and let the program choose by its rank",
        )


def _s3_mistakes(source: Request, path: str, options: ManifestOptions) -> Iterator[FieldError]:
    uri = source.get("S3DataSource", {}).get("S3Uri", "s3://-")
    if place_of(uri) is None:
        yield _no_place(f"{path}.DataSource.S3DataSource.S3Uri", uri)
    if options.channels is Channels.CLAIM and not options.claim:
        yield _mistake(path, "there is no volume to read it from", "name it with --claim")
    if options.channels is Channels.INIT and options.kind is Kind.TRAINJOB:
        yield _mistake(path, "a TrainJob cannot add an init container", "use --channels s3-csi or claim")


def _storage_mistakes(body: Request, options: ManifestOptions) -> Iterator[FieldError]:
    for field, uri in (
        ("CheckpointConfig.S3Uri", body.get("CheckpointConfig", {}).get("S3Uri")),
        ("OutputDataConfig.S3OutputPath", body["OutputDataConfig"].get("S3OutputPath")),
    ):
        if uri is not None and options.claim and place_of(uri) is None:
            yield _no_place(field, uri)
    if "CheckpointConfig" in body and not options.claim and not saves_to_s3(body):
        yield _mistake(
            "CheckpointConfig.S3Uri",
            "nothing copies a folder of a pod to S3",
            "name a claim that all pods may write with --claim, or let the program write to S3 itself"
            " (the hyperparameter checkpoint_dir of the training program)",
        )


def _no_place(field: str, uri: str) -> FieldError:
    return _mistake(field, f"{uri!r} is not a folder in S3", "write s3://BUCKET/PREFIX, without . .. and //")


def saves_to_s3(body: Request) -> bool:
    """Tell whether the program writes its checkpoints to S3 itself."""
    given = body.get("HyperParameters", {})
    return any(
        text.strip('"').startswith("s3://")
        for key, text in given.items()
        if key.replace("-", "_") == "checkpoint_dir"
    )


def host_count(body: Request) -> int:
    return int(body.get("ResourceConfig", {}).get("InstanceCount", 1))


def entrypoint(body: Request) -> list[str] | None:
    """Return the command; our launcher if the image's is not named and the request has source code."""
    given = body.get("AlgorithmSpecification", {}).get("ContainerEntrypoint")
    if given:
        return list(given)
    channels = {channel.get("ChannelName") for channel in body.get("InputDataConfig", ())}
    has_code = "sagemaker_submit_directory" in body.get("HyperParameters", {}) or "code" in channels
    return list(LAUNCHER) if has_code else None


def is_launcher(command: list[str]) -> bool:
    return any("launch.py" in argument for argument in command)


def stop_seconds(body: Request) -> int:
    return int(float(body.get("Environment", {}).get("LAUNCH_STOP_SECONDS", STOP_SECONDS)))


def accelerator(instance_type: str) -> tuple[str, int] | None:
    """Return the resource's name, as its device plugin has it, and how many of it a node has."""
    accelerators = BY_TYPE.get(instance_type)
    if accelerators is None:
        return None
    return ("nvidia.com/gpu" if accelerators.are_gpus else "aws.amazon.com/neuron"), accelerators.count


def tag_labels(body: Request) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return the tags as labels, ``:`` as ``/``; and the tags that cannot be labels."""
    labels, others = dict[str, str](), list[dict[str, str]]()
    for tag in body.get("Tags", ()):
        key, value = tag["Key"].replace(":", "/"), tag["Value"]
        if key not in labels and _LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value):
            labels[key] = value
        else:
            others.append(tag)
    return labels, others
