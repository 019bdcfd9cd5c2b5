"""What a training job can fail of, and what somebody found out about one failure."""

from dataclasses import dataclass
from enum import StrEnum


class FailureClass(StrEnum):
    """As the policy's ``recovery.retry_classes`` names them."""

    SERVICE = "service"
    """SageMaker itself failed."""
    CAPACITY = "capacity"
    HARDWARE = "hardware"
    NETWORK = "network"
    """Between hosts: NCCL, sockets, rendezvous."""
    GPU_OOM = "gpu-oom"
    HOST_OOM = "host-oom"
    DISK_FULL = "disk-full"
    DATA_ACCESS = "data-access"
    IMAGE = "image"
    USER_CODE = "user-code"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why an attempt failed, as far as its traces tell."""

    failure_class: FailureClass
    advice: str
    """What its owner can do, in a sentence."""
    evidence: str | None = None
    """The line that gave it away, printable and cut."""
    exit_code: int | None = None
