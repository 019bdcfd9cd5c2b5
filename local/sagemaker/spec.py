"""A CreateTrainingJob request as typed data: what it asks the twin to run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

from local.sagemaker.s3_uri import S3Location
from local.worlds.refusals import DEFAULT_MAX_RUNTIME_SECONDS

DEFAULT_CHECKPOINT_PATH = "/opt/ml/checkpoints"
"""Source: SageMaker API reference, CheckpointConfig.LocalPath."""


_SDK_V3_DRIVERS = "/opt/ml/input/data/sm_drivers/"
"""The SDK's own scripts, in a channel of their own. Source: sagemaker-train 1.27, train/constants.py."""

_HOMOGENEOUS = "homogeneousCluster"
"""SageMaker's name in resourceconfig.json for the group of a cluster of one type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    name: str
    source: S3Location
    settings: Mapping[str, str]
    """The container's settings of the channel, as in inputdataconfig.json."""
    groups: frozenset[str]
    """Names of the instance groups it is for; empty: for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    location: S3Location
    local_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceGroup:
    name: str
    instance_type: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec:
    role_arn: str
    hyperparameters: Mapping[str, str]
    environment: Mapping[str, str]
    entrypoint: tuple[str, ...]
    """Exec form, with its arguments; empty: the image's own way, script mode."""
    channels: tuple[Channel, ...]
    checkpoints: Checkpoints | None
    output: S3Location
    output_is_compressed: bool
    clusters: tuple[tuple[InstanceGroup, ...], ...]
    """Clusters it may run on, in order of preference; several only with InstancePreferences."""
    is_spot: bool
    plan_arn: str | None
    """The training plan on whose instances it runs; None: on demand, or on spot instances."""
    keep_alive: timedelta
    """Time its instances are kept after its end; zero keeps none."""
    max_runtime: timedelta
    max_wait: timedelta | None
    max_pending: timedelta | None

    @property
    def needs_opt_ml(self) -> bool:
        """Tell whether it needs /opt/ml: scripts of the SDK v3's ModelTrainer know no other folder."""
        return any(_SDK_V3_DRIVERS in part for part in self.entrypoint)

    @property
    def model_file(self) -> str:
        """Name of the model below ``<output>/<job>/output``; not compressed, it is a folder."""
        return "model.tar.gz" if self.output_is_compressed else "model"

    @classmethod
    def from_request(cls, request: Mapping[str, Any]) -> Self:
        """Read a request that validation and admission let pass."""
        algorithm = request["AlgorithmSpecification"]
        stopping = request.get("StoppingCondition", {})
        output = request["OutputDataConfig"]
        return cls(
            role_arn=request["RoleArn"],
            hyperparameters=request.get("HyperParameters", {}),
            environment=request.get("Environment", {}),
            entrypoint=(
                *algorithm.get("ContainerEntrypoint", ()),
                *algorithm.get("ContainerArguments", ()),
            ),
            channels=tuple(_channel(channel, algorithm) for channel in request.get("InputDataConfig", ())),
            checkpoints=_checkpoints(request.get("CheckpointConfig")),
            output=S3Location.parse(output["S3OutputPath"]),
            output_is_compressed=output.get("CompressionType", "GZIP") == "GZIP",
            clusters=_clusters(request["ResourceConfig"]),
            is_spot=request.get("EnableManagedSpotTraining", False),
            plan_arn=request["ResourceConfig"].get("TrainingPlanArn"),
            keep_alive=timedelta(seconds=request["ResourceConfig"].get("KeepAlivePeriodInSeconds", 0)),
            max_runtime=timedelta(seconds=stopping.get("MaxRuntimeInSeconds", DEFAULT_MAX_RUNTIME_SECONDS)),
            max_wait=_seconds(stopping.get("MaxWaitTimeInSeconds")),
            max_pending=_seconds(stopping.get("MaxPendingTimeInSeconds")),
        )


def _seconds(value: int | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def _channel(channel: Mapping[str, Any], algorithm: Mapping[str, Any]) -> Channel:
    source = channel["DataSource"]["S3DataSource"]
    settings = {
        "TrainingInputMode": channel.get("InputMode", algorithm["TrainingInputMode"]),
        "S3DistributionType": source.get("S3DataDistributionType", "FullyReplicated"),
        "RecordWrapperType": channel.get("RecordWrapperType", "None"),
    }
    if "ContentType" in channel:
        settings["ContentType"] = channel["ContentType"]
    return Channel(
        name=channel["ChannelName"],
        source=S3Location.parse(source["S3Uri"]),
        settings=settings,
        groups=frozenset(source.get("InstanceGroupNames", ())),
    )


def _checkpoints(config: Mapping[str, Any] | None) -> Checkpoints | None:
    if config is None:
        return None
    return Checkpoints(
        location=S3Location.parse(config["S3Uri"]),
        local_path=config.get("LocalPath", DEFAULT_CHECKPOINT_PATH),
    )


def _clusters(config: Mapping[str, Any]) -> tuple[tuple[InstanceGroup, ...], ...]:
    if config.get("InstanceGroups"):
        return (tuple(_group(group, group["InstanceGroupName"]) for group in config["InstanceGroups"]),)
    choices = config.get("InstancePreferences") or [{}]
    return tuple((_group({**config, **choice}, _HOMOGENEOUS),) for choice in choices)


def _group(config: Mapping[str, Any], name: str) -> InstanceGroup:
    return InstanceGroup(name=name, instance_type=config["InstanceType"], count=config["InstanceCount"])
