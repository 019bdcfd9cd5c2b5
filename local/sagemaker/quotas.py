"""Holds the account's limits: none, unless its world has some; Service Quotas shows those of types.

Source: Service Quotas API reference; AWS General Reference, "Amazon SageMaker AI quotas".
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from local.sagemaker.jobs import TrainingJob
from local.wire import AwsError, Principal
from local.world_in_force import WorldInForce
from local.worlds import ON_DEMAND, QUOTA_NAMES, Refusal, asked, capacity_type, keep_alive_refusal, refusal

_SERVICE = "sagemaker"
_MOST_RESULTS = 100


class AccountQuotas:
    """Counts as SageMaker does: instances of jobs that have not ended and warm ones, by type, spot apart."""

    def __init__(self, world: WorldInForce, arn_prefix: str) -> None:
        self._world = world
        self._arn_prefix = arn_prefix

    def check(
        self, request: Mapping[str, Any], jobs: Iterable[TrainingJob], *, warm: Mapping[str, int]
    ) -> None:
        """Refuse what only fits above a limit; ``warm`` are on-demand instances. Raises AwsError.

        Source: SageMaker Developer Guide, "Request a warm pool quota increase": warm pool instances count
        toward the training resource limit.
        """
        used = Counter({(ON_DEMAND, name): count for name, count in warm.items()})
        for job in jobs:
            if not job.is_final:
                kind = capacity_type(job.request)
                used.update({(kind, name): count for name, count in asked(job.request).items()})
        _raise(refusal(self._world.now, request, used))

    def check_keep_alive(self, resources: Mapping[str, Any]) -> None:
        """Check an update of the keep-alive period. Raises AwsError."""
        _raise(keep_alive_refusal(self._world.now, resources))

    def call(self, operation: str, params: dict[str, Any], _: Principal) -> dict[str, Any]:
        """Answer calls of Service Quotas about SageMaker. Raises AwsError."""
        if params.get("ServiceCode") != _SERVICE:
            raise AwsError("NoSuchResourceException", "The twin has quotas of the service sagemaker alone.")
        quotas = self._described()
        if operation == "ListServiceQuotas":
            start, size = int(params.get("NextToken") or 0), int(params.get("MaxResults") or _MOST_RESULTS)
            next_page = {"NextToken": str(start + size)} if start + size < len(quotas) else {}
            return {"Quotas": quotas[start : start + size]} | next_page
        raise AwsError("NotImplemented", f"the twin has no service-quotas:{operation}", status=501)

    def _described(self) -> list[dict[str, Any]]:
        limits = sorted(
            (kind, instance_type, limit)
            for instance_type, of_type in self._world.now.quotas.items()
            for kind, limit in of_type.items()
        )
        return [
            {
                "ServiceCode": _SERVICE,
                "ServiceName": "Amazon SageMaker",
                "QuotaArn": f"{self._arn_prefix}L-{number:08X}",
                "QuotaCode": f"L-{number:08X}",
                "QuotaName": QUOTA_NAMES[kind].format(type=instance_type),
                "Value": float(limit),
                "Unit": "None",
                "Adjustable": True,
                "GlobalQuota": False,
                "QuotaAppliedAtLevel": "ACCOUNT",
            }
            for number, (kind, instance_type, limit) in enumerate(limits)
        ]


def _raise(complaint: Refusal | None) -> None:
    if complaint is not None:
        raise AwsError(complaint.code, complaint.message)
