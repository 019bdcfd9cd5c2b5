"""Decides what CreateTrainingJob refuses at once although the request has the right shape.

The texts with a source are AWS's; the others say plainly what AWS refuses in words we have not seen, or
what this twin does not do.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from trainmaster.core.request.completion import DEFAULT_RUNTIME
from trainmaster.core.request.validation import contradictions

from local.clock import TwinClock
from local.sagemaker.plan_admission import plan_complaint
from local.sagemaker.plan_book import PlanBook
from local.sagemaker.ports import ObjectStore
from local.sagemaker.s3_uri import S3Location
from local.wire import AwsError

Request = Mapping[str, Any]
Complaint = str | None

# registry/repository[:tag] or [@digest]. Source: SageMaker API reference, AlgorithmSpecification.
_ECR_IMAGE = re.compile(
    r"\d{12}\.dkr[.-]ecr(-fips)?\.[a-z0-9-]+\.(amazonaws\.com(\.cn)?|on\.aws)"
    r"/[a-z0-9]+([._/-]+[a-z0-9]+)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
_DEFAULT_RUNTIME_SECONDS = int(DEFAULT_RUNTIME.total_seconds())
_NO_CHOICE_OF_PLANS = "the twin has no plans a preference; name one in ResourceConfig.TrainingPlanArn"
_ROLE_ACCOUNT = re.compile(r"arn:[^:]+:iam::(\d{12}):role/.+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    store: ObjectStore
    account_id: str
    region: str
    plans: PlanBook
    clock: TwinClock

    def admit(self, request: Request) -> None:
        """Raises ``AwsError`` with the first complaint; the cheap rules come before the look into S3."""
        rules: tuple[Callable[[Request], Complaint], ...] = (
            *_RULES,
            self._plan,
            self._role,
            self._output,
            self._inputs,
        )
        for rule in rules:
            complaint = rule(request)
            if complaint is not None:
                raise AwsError("ValidationException", complaint)

    def _plan(self, request: Request) -> Complaint:
        return plan_complaint(request, self.plans.find, self.clock.now())

    def _role(self, request: Request) -> Complaint:
        """Refuse a role of another account; every role of this account counts as one SageMaker may assume."""
        role = request["RoleArn"]
        match = _ROLE_ACCOUNT.fullmatch(role)
        if match is not None and match[1] == self.account_id:
            return None
        return (
            f"Could not assume role {role}. Please ensure that the role exists and allows principal "
            "'sagemaker.amazonaws.com' to assume the role."
        )

    def _output(self, request: Request) -> Complaint:
        uris = [request["OutputDataConfig"]["S3OutputPath"]]
        if "CheckpointConfig" in request:
            uris.append(request["CheckpointConfig"]["S3Uri"])
        for uri in uris:
            bucket = S3Location.parse(uri).bucket
            if not self.store.has_bucket(bucket):
                return f"S3 bucket {bucket} does not exist"
        return None

    def _inputs(self, request: Request) -> Complaint:
        for uri in _s3_inputs(request):
            source = S3Location.parse(uri)
            if not self.store.has_bucket(source.bucket) or not self.store.keys(source.bucket, source.key):
                return (
                    f'No S3 objects found under S3 URL "{uri}" given in input data source. Please ensure '
                    f"that the bucket exists in the selected region ({self.region}), that objects exist "
                    f'under that S3 prefix, and that the role "{request["RoleArn"]}" has "s3:ListBucket" '
                    f'permissions on bucket "{source.bucket}".'
                )
        return None


def check_tags(tags: Iterable[Mapping[str, str]]) -> Complaint:
    counts = Counter(tag["Key"] for tag in tags)
    for key, count in counts.items():
        if count > 1:
            return f"Duplicate tag key found: {key}"
        if key.lower().startswith("aws:"):
            return f"Tag keys that begin with aws: are reserved for AWS use: {key}"
    return None


def _tags(request: Request) -> Complaint:
    return check_tags(request.get("Tags", ()))


def _algorithm(request: Request) -> Complaint:
    algorithm = request.get("AlgorithmSpecification")
    if algorithm is None:
        return "AlgorithmSpecification is required"
    if ("TrainingImage" in algorithm) == ("AlgorithmName" in algorithm):
        return "Specify either TrainingImage or AlgorithmName, and not both"
    return None


def _image(request: Request) -> Complaint:
    algorithm = request["AlgorithmSpecification"]
    image = algorithm.get("TrainingImage")
    if image is None or "TrainingImageConfig" in algorithm or _ECR_IMAGE.fullmatch(image):
        return None
    return f"The training image {image} is not the path of an image in Amazon ECR"


def _instances(request: Request) -> Complaint:
    resources = request.get("ResourceConfig")
    if resources is None:
        return "ResourceConfig is required"
    if "SelectedInstanceType" in resources or "SelectedInstanceCount" in resources:
        return "SelectedInstanceType and SelectedInstanceCount are read-only"
    if "InstancePreferences" in resources:
        return _preferences(request)
    has_groups = bool(resources.get("InstanceGroups"))
    if has_groups and ("InstanceType" in resources or "InstanceCount" in resources):
        return "Specify either InstanceGroups or InstanceType and InstanceCount, and not both"
    if not has_groups and ("InstanceType" not in resources or "InstanceCount" not in resources):
        return "ResourceConfig needs InstanceType and InstanceCount, or InstanceGroups"
    counts = [group["InstanceCount"] for group in resources.get("InstanceGroups") or [resources]]
    if min(counts) < 1:
        return "InstanceCount must be at least 1"
    return None


def _preferences(request: Request) -> Complaint:
    """Refuse wrong InstancePreferences. Source: SageMaker service model, ResourceConfig."""
    resources = request["ResourceConfig"]
    for name in ("InstanceType", "InstanceGroups", "InstancePlacementConfig"):
        if name in resources:
            return f"Specify either InstancePreferences or {name}, and not both"
    if request.get("EnableManagedSpotTraining"):
        return "InstancePreferences is not for managed spot training"
    preferences = resources["InstancePreferences"]
    types = [preference["InstanceType"] for preference in preferences]
    if len(set(types)) < len(types):
        return "An instance type can appear only once in InstancePreferences"
    counts = [preference["InstanceCount"] for preference in preferences if "InstanceCount" in preference]
    if len(counts) != (0 if "InstanceCount" in resources else len(preferences)):
        return "Specify InstanceCount either in every preference or in ResourceConfig, and not in both"
    if min(counts or [resources["InstanceCount"]]) < 1:
        return "InstanceCount must be at least 1"
    if any("TrainingPlanArns" in preference for preference in preferences):
        return f"ResourceConfig.InstancePreferences.TrainingPlanArns: {_NO_CHOICE_OF_PLANS}"
    return None


def _volume(request: Request) -> Complaint:
    if request["ResourceConfig"].get("VolumeSizeInGB", 1) < 1:
        return "VolumeSizeInGB must be at least 1"
    return None


def _spot(request: Request) -> Complaint:
    stopping = request.get("StoppingCondition", {})
    max_wait = stopping.get("MaxWaitTimeInSeconds")
    if not request.get("EnableManagedSpotTraining"):
        return None if max_wait is None else "MaxWaitTimeInSeconds is for managed spot training only"
    if max_wait is None or max_wait < stopping.get("MaxRuntimeInSeconds", _DEFAULT_RUNTIME_SECONDS):
        return (
            "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to "
            "MaxRuntimeInSeconds"
        )
    return None


def _warm_pool(request: Request) -> Complaint:
    resources = request["ResourceConfig"]
    if not resources.get("KeepAlivePeriodInSeconds"):
        return None
    if request.get("EnableManagedSpotTraining") or resources.get("InstanceGroups"):
        return "KeepAlivePeriodInSeconds is neither for managed spot training nor for heterogeneous clusters"
    return None


def _runs_here(request: Request) -> Complaint:
    """Refuse what the twin would run differently, and say what it runs instead."""
    algorithm = request["AlgorithmSpecification"]
    if "AlgorithmName" in algorithm:
        return (
            "AlgorithmSpecification.AlgorithmName: the twin has no algorithms of its own; give a "
            "TrainingImage and a ContainerEntrypoint, or a script (sagemaker_program, "
            "sagemaker_submit_directory)"
        )
    for number, channel in enumerate(request.get("InputDataConfig", ())):
        place = f"InputDataConfig[{number}]"
        if complaint := _source(channel["DataSource"], f"{place}.DataSource"):
            return complaint
        own = channel.get("InputMode")
        if (own or algorithm["TrainingInputMode"]) == "Pipe":
            where = "AlgorithmSpecification.TrainingInputMode" if own is None else f"{place}.InputMode"
            return f"{where}: the twin streams no data (Pipe); File and FastFile run, both as files"
    return None


def _source(source: Mapping[str, Any], place: str) -> Complaint:
    for name, other in source.items():
        if name != "S3DataSource":
            kind = other.get("FileSystemType", name)
            return (
                f"{place}.{name}: the twin reads channels from S3 alone, not from {kind}; give an "
                "S3DataSource with the S3DataType S3Prefix"
            )
    data_type = source.get("S3DataSource", {}).get("S3DataType")
    if data_type == "S3Prefix":
        return None
    return (
        f"{place}.S3DataSource.S3DataType: the twin reads S3Prefix, not {data_type}; give the prefix below "
        "which the data lies"
    )


def _checkpoint_path(request: Request) -> Complaint:
    path = PurePosixPath(request.get("CheckpointConfig", {}).get("LocalPath", "/"))
    if path.is_absolute() and ".." not in path.parts:
        return None
    return f"CheckpointConfig.LocalPath must be an absolute path: {path}"


def _s3_uris(request: Request) -> Complaint:
    uris = [request["OutputDataConfig"]["S3OutputPath"], *_s3_inputs(request)]
    if "CheckpointConfig" in request:
        uris.append(request["CheckpointConfig"]["S3Uri"])
    for uri in uris:
        if not uri.startswith("s3://"):
            return f"{uri} does not begin with s3://"
    return None


def _contradictions(request: Request) -> Complaint:
    """Refuse what the queue refuses too, by the same list: else its faults could not be seen here."""
    return next((contradiction.aws for contradiction in contradictions(request)), None)


def _s3_inputs(request: Request) -> list[str]:
    return [channel["DataSource"]["S3DataSource"]["S3Uri"] for channel in request.get("InputDataConfig", ())]


_RULES: tuple[Callable[[Request], Complaint], ...] = (
    _tags,
    _algorithm,
    _image,
    _instances,
    _volume,
    _spot,
    _warm_pool,
    _runs_here,
    _checkpoint_path,
    _s3_uris,
    _contradictions,
)
