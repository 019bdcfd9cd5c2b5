"""Failure classes of training jobs, and the diagnosis of one failure."""

from dataclasses import dataclass
from enum import StrEnum

from trainmaster.core.jobs.reason_codes import ReasonCode


class FailureClass(StrEnum):
    """Failure classes, as ``recovery.retry_classes`` of the policy names them.

    Each is the reason code of the attempts that failed of it, so the texts are defined there and only there.
    """

    SERVICE = ReasonCode.SERVICE.value
    """SageMaker itself failed."""
    CAPACITY = ReasonCode.CAPACITY.value
    HARDWARE = ReasonCode.HARDWARE.value
    NETWORK = ReasonCode.NETWORK.value
    """Network between hosts: NCCL, sockets, rendezvous."""
    GPU_OOM = ReasonCode.GPU_OOM.value
    HOST_OOM = ReasonCode.HOST_OOM.value
    DISK_FULL = ReasonCode.DISK_FULL.value
    DATA_ACCESS = ReasonCode.DATA_ACCESS.value
    IMAGE = ReasonCode.IMAGE.value
    USER_CODE = ReasonCode.USER_CODE.value
    UNKNOWN = ReasonCode.UNKNOWN.value

    @property
    def code(self) -> ReasonCode:
        return ReasonCode(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Cause of an attempt's failure, as far as its traces tell."""

    failure_class: FailureClass
    advice: str
    """Sentence on what the job's owner can do."""
    evidence: str | None = None
    """The line that shows the cause, printable and cut."""
    exit_code: int | None = None
