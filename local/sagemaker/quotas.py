"""What the account may run at once: without limits, unless somebody sets one; Service Quotas shows those.

Source: Service Quotas API reference; AWS General Reference, "Amazon SageMaker AI quotas"; the text of the
refusal as users report it.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from local.sagemaker.jobs import TrainingJob
from local.sagemaker.spec import TrainingSpec
from local.wire import AwsError, Principal

_NAMES: Mapping[str, str] = {
    "on-demand": "{type} for training job usage",
    "spot": "{type} for spot training job usage",
}
CAPACITY_TYPES = tuple(_NAMES)
_SERVICE = "sagemaker"
_MOST_RESULTS = 100


class AccountQuotas:
    """Counts as SageMaker does: instances of jobs that have not ended, by type, spot apart."""

    def __init__(self, arn_prefix: str) -> None:
        self._arn_prefix = arn_prefix
        self._lock = threading.Lock()
        self._limits: dict[tuple[str, str], int] = {}

    def set(self, instance_type: str, capacity_type: str, instances: int) -> None:
        if capacity_type not in _NAMES:
            raise AwsError("ValidationException", f"capacity_type must be one of {', '.join(_NAMES)}")
        with self._lock:
            self._limits[capacity_type, instance_type] = instances

    def check(self, spec: TrainingSpec, jobs: Iterable[TrainingJob]) -> None:
        """Refuse what only fits above a limit. Raises AwsError."""
        live = [job for job in jobs if not job.is_final]
        for instance_type, wanted in _instances(spec).items():
            kind = _kind(spec)
            limit = self._limits.get((kind, instance_type))
            used = sum(_instances(job.spec).get(instance_type, 0) for job in live if _kind(job.spec) == kind)
            if limit is not None and used + wanted > limit:
                name = _NAMES[kind].format(type=instance_type)
                raise AwsError(
                    "ResourceLimitExceeded",
                    f"The account-level service limit '{name}' is {limit} Instances, with current utilization"
                    f" of {used} Instances and a request delta of {wanted} Instances.",
                )

    def call(self, operation: str, params: dict[str, Any], _: Principal) -> dict[str, Any]:
        """The answers of Service Quotas about SageMaker. Raises AwsError."""
        if params.get("ServiceCode") != _SERVICE:
            raise AwsError("NoSuchResourceException", "The twin has quotas of the service sagemaker alone.")
        quotas = self._described()
        if operation == "ListServiceQuotas":
            start, size = int(params.get("NextToken") or 0), int(params.get("MaxResults") or _MOST_RESULTS)
            more = {"NextToken": str(start + size)} if start + size < len(quotas) else {}
            return {"Quotas": quotas[start : start + size]} | more
        raise AwsError("NotImplemented", f"the twin has no service-quotas:{operation}", status=501)

    def _described(self) -> list[dict[str, Any]]:
        with self._lock:
            limits = sorted(self._limits.items())
        return [
            {
                "ServiceCode": _SERVICE,
                "ServiceName": "Amazon SageMaker",
                "QuotaArn": f"{self._arn_prefix}L-{number:08X}",
                "QuotaCode": f"L-{number:08X}",
                "QuotaName": _NAMES[kind].format(type=instance_type),
                "Value": float(limit),
                "Unit": "None",
                "Adjustable": True,
                "GlobalQuota": False,
                "QuotaAppliedAtLevel": "ACCOUNT",
            }
            for number, ((kind, instance_type), limit) in enumerate(limits)
        ]


def _kind(spec: TrainingSpec) -> str:
    return "spot" if spec.is_spot else "on-demand"


def _instances(spec: TrainingSpec) -> dict[str, int]:
    """Of a job that may run on several clusters the first: it is what it asks for."""
    counts: dict[str, int] = {}
    for group in spec.clusters[0]:
        counts[group.instance_type] = counts.get(group.instance_type, 0) + group.count
    return counts
