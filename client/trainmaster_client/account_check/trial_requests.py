"""CreateTrainingJob requests of the jobs that the check runs: small, short, recognisable."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

Request = dict[str, Any]

PREFIX = "trainmaster-check-"
"""Prefix of the name of everything that the check makes in an account."""
TAG = "trainmaster-check"
"""Key of the tag on everything that can have one; its value is the run."""
INSTANCE_TYPE = "ml.m5.large"
MOST_SECONDS = 600
"""MaxRuntimeInSeconds of every trial."""
IDLE_SECONDS = 300
"""KeepAlivePeriodInSeconds, so that a warm pool that was never released ends by itself."""
PENDING_SECONDS = 1800
"""Smallest value that MaxPendingTimeInSeconds accepts."""
STARTING, DOWNLOADING, TRAINING = "Starting", "Downloading", "Training"
"""Secondary statuses in which a trial is stopped."""

_REPOSITORY = "pytorch-training:2.8.0-cpu-py312"
_ACCOUNT = "763104351884"
_REGIONS = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
        *("ca-central-1", "eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3"),
        *("sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    }
)
"""Regions whose Deep Learning Containers that account holds. Source: image_uris of the SageMaker SDK."""

# A part of a command has 256 characters at most. Source: SageMaker API, ContainerEntrypoint.
_FILES = "mkdir -p /opt/ml/checkpoints /opt/ml/model /opt/ml/output/data;cd /opt/ml;"
_FINISHES = f"{_FILES}echo c>checkpoints/c;echo m>model/m;echo o>output/data/o;sleep 2"
_FAILS = "echo this trial fails on purpose >&2;exit 3"
_WAITS = "sleep 540"
_HEARS = f"{_FILES}trap 'echo s>checkpoints/after-sigterm;exit 143' TERM;while :;do sleep 1;done"
_DEAF = (
    "mkdir -p /opt/ml/checkpoints;cd /opt/ml/checkpoints;trap 'date +%s>>term' TERM;"
    "while :;do date +%s>>last;sleep 1;done"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One job of the check: its label, the shell script it runs, and how it is to end."""

    label: str
    script: str
    stop_in: str | None = None
    """Secondary status in which it is stopped; None if it ends by itself."""
    keeps_warm: bool = False


TRIALS: tuple[Trial, ...] = (
    Trial(label="ends", script=_FINISHES),
    Trial(label="early", script=_WAITS, stop_in=STARTING),
    Trial(label="hears", script=_HEARS, stop_in=TRAINING),
    Trial(label="deaf", script=_DEAF, stop_in=TRAINING),
    Trial(label="fails", script=_FAILS),
    Trial(label="loading", script=_WAITS, stop_in=DOWNLOADING),
)
"""Trials in the order in which they start if the quota does not hold all at once."""
WARM = Trial(label="warm", script=_FINISHES, keeps_warm=True)
"""Trial that runs after the others: its instance counts against the quota while it is kept warm."""
AGAIN = Trial(label="again", script=_FINISHES, keeps_warm=True)
"""Trial that asks for the same as ``WARM``, to reuse its warm pool."""
ON_CPU = (*TRIALS, WARM, AGAIN)
ON_GPU = Trial(label="gpu", script=_WAITS)
_TELLS_BLOCK = (
    "mkdir -p /opt/ml/output;"
    "echo block $SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP>/opt/ml/output/failure;"
)
ON_PLAN = Trial(label="plan", script=f"{_TELLS_BLOCK}sleep 20;exit 3")
"""Trial on a training plan: its reason of failure tells what it heard of the window's end."""
ON_PLAN_TO_THE_END = Trial(label="plan", script=f"{_TELLS_BLOCK}sleep 3000")
"""Trial on a training plan whose window is about to close."""
STARVED = Trial(label="starved", script=_WAITS, stop_in=TRAINING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Resources that the user lends to the check, and the name of the run."""

    run: str
    region: str
    role: str
    bucket: str
    image: str

    def name(self, label: str) -> str:
        return f"{PREFIX}{self.run}-{label}"

    def s3(self, *parts: str) -> str:
        return "/".join((f"s3://{self.bucket}/{folder_of(self.run)}", *parts))

    def request(self, trial: Trial, *, instance_type: str = INSTANCE_TYPE) -> Request:
        resources: Request = {"InstanceType": instance_type, "InstanceCount": 1, "VolumeSizeInGB": 10}
        if trial.keeps_warm:
            resources["KeepAlivePeriodInSeconds"] = IDLE_SECONDS
        return {
            "TrainingJobName": self.name(trial.label),
            "RoleArn": self.role,
            "AlgorithmSpecification": {
                "TrainingImage": self.image,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": ["sh", "-c", trial.script],
            },
            "OutputDataConfig": {"S3OutputPath": self.s3("output")},
            "CheckpointConfig": {"S3Uri": self.s3("checkpoints", trial.label)},
            "ResourceConfig": resources,
            "StoppingCondition": {"MaxRuntimeInSeconds": MOST_SECONDS},
            "Tags": [{"Key": TAG, "Value": self.run}],
        }


def folder_of(run: str) -> str:
    """Return the prefix of the run's S3 keys, without a slash at its end."""
    return f"{TAG}/{run}"


def image_in(region: str) -> str | None:
    """Return a public image with a shell; None in a region where AWS keeps them in another account."""
    return f"{_ACCOUNT}.dkr.ecr.{region}.amazonaws.com/{_REPOSITORY}" if region in _REGIONS else None


NOBODY = "trainmaster-check-nobody"
_KEY_OF_NOBODY = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Members of an ordinary request that a probe replaces, by dotted path."""

    fact: str
    members: Mapping[str, Any]


def refusal_probes(means: Means, *, account: str, instances: int, quota_zero: str | None) -> list[Changed]:
    """Return requests that AWS ought to refuse, as changes to an ordinary one.

    Args:
        means: What the ordinary requests are made of.
        account: The account's number.
        instances: More instances than the account may have.
        quota_zero: An instance type whose quota is 0; None if there is none, which leaves its probe out.
    """
    prefix = f"arn:aws:iam::{account}"
    key = f"arn:aws:kms:{means.region}:{account}:key/{_KEY_OF_NOBODY}"
    network = {"Subnets": [f"subnet-{'0' * 17}"], "SecurityGroupIds": [f"sg-{'0' * 17}"]}
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": means.s3("no-such-input")}}
    image = f"{means.image.partition('/')[0]}/{NOBODY}:none"
    changes: dict[str, Mapping[str, Any]] = {
        "refused-role": {"RoleArn": f"{prefix}:role/{NOBODY}"},
        "refused-image": {"AlgorithmSpecification.TrainingImage": image},
        "refused-type": {"ResourceConfig.InstanceType": "ml.nobody.large"},
        "refused-subnet": {"VpcConfig": network},
        "refused-volume-key": {"ResourceConfig.VolumeKmsKeyId": key},
        "refused-bucket": {"OutputDataConfig.S3OutputPath": f"s3://{NOBODY}-{means.run}/output"},
        "refused-input": {"InputDataConfig": [{"ChannelName": "none", "DataSource": source}]},
        "refused-tag": {"Tags": [{"Key": "aws:nobody", "Value": "x"}, {"Key": TAG, "Value": means.run}]},
        "refused-instances": {"ResourceConfig.InstanceCount": instances},
        "refused-run-time": {"StoppingCondition.MaxRuntimeInSeconds": 28 * 86400},
        "refused-keep-alive": {"ResourceConfig.KeepAlivePeriodInSeconds": 21600},
        "pending-cpu": {"StoppingCondition.MaxPendingTimeInSeconds": PENDING_SECONDS},
    }
    if quota_zero is not None:
        changes["refused-quota-zero"] = {"ResourceConfig.InstanceType": quota_zero}
    return [Changed(fact=fact, members=MappingProxyType(dict(members))) for fact, members in changes.items()]


def pending_probes(instance_type: str) -> list[Changed]:
    """Return requests with MaxPendingTimeInSeconds on an accelerated type: plain, spot, preferences."""
    waits = {"StoppingCondition.MaxPendingTimeInSeconds": PENDING_SECONDS}
    typed = {"ResourceConfig.InstanceType": instance_type}
    spot = {"EnableManagedSpotTraining": True, "StoppingCondition.MaxWaitTimeInSeconds": 2 * PENDING_SECONDS}
    preferred = {
        "InstancePreferences": [{"InstanceType": instance_type}],
        "InstanceCount": 1,
        "VolumeSizeInGB": 10,
    }
    return [
        Changed(fact="pending-gpu", members=waits | typed),
        Changed(fact="pending-spot", members=waits | typed | spot),
        Changed(fact="pending-preferences", members=waits | {"ResourceConfig": preferred}),
    ]


def changed(request: Request, members: Mapping[str, Any]) -> Request:
    """Return a copy of the request with these members replaced; a path is ``Member`` or ``Member.Inner``."""
    copy = {name: dict(member) if isinstance(member, dict) else member for name, member in request.items()}
    for path, value in members.items():
        outer, _, inner = path.partition(".")
        if inner:
            copy[outer][inner] = value
        else:
            copy[outer] = value
    return copy
