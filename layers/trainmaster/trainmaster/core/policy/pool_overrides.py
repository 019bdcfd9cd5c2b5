"""Fields of a request that a pool sets itself: the role, the network, the volume, tags."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.core.policy.findings import Location
from trainmaster.core.policy.keys import Section, key, optional
from trainmaster.core.policy.kinds import ByName, Whole, list_of, plain_text
from trainmaster.core.policy.names import ROLE, TAG_KEY, TAG_VALUE
from trainmaster.core.request.options import READERS, TAG_PREFIX

MOST_TAGS = 20
"""Tags that a pool may set, so that requests keep more than half of the 46 that SageMaker leaves them."""
# Source of the numbers: SageMaker API reference, VpcConfig.
MOST_SUBNETS = 16
MOST_SECURITY_GROUPS = 5
MOST_GB = 16_384
"""Largest volume of one instance. Source: Amazon EBS user guide, gp2 volumes."""

_SUBNET = plain_text(r"subnet-[0-9a-f]{8,32}", "is not a subnet", "write one like subnet-0a1b2c3d")
_SECURITY_GROUP = plain_text(
    r"sg-[0-9a-f]{8,32}", "is not a security group", "write one like sg-0a1b2c3d4e5f6a7b8"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides(Section):
    role_arn: str | None = optional(
        ROLE,
        "`RoleArn` of its jobs; where a team has no launcher role, one of the stack's `TrainingRoleArns`.",
        example="arn:aws:iam::111122223333:role/p5-training",
    )
    subnets: tuple[str, ...] = key(
        list_of(_SUBNET, "write a list of subnets"),
        [],
        f"`VpcConfig.Subnets` of its jobs, at most {MOST_SUBNETS}, together with `security_group_ids`.",
        example="[subnet-0a1b2c3d]",
    )
    security_group_ids: tuple[str, ...] = key(
        list_of(_SECURITY_GROUP, "write a list of security groups"),
        [],
        f"`VpcConfig.SecurityGroupIds` of its jobs, at most {MOST_SECURITY_GROUPS}.",
        example="[sg-0a1b2c3d4e5f6a7b8]",
    )
    volume_size_in_gb: int | None = optional(
        Whole(least=1, most=MOST_GB),
        "`ResourceConfig.VolumeSizeInGB` of its jobs; a request that asks for more is refused (422).",
        example="200",
    )
    tags: Mapping[str, str] = key(
        ByName(TAG_KEY, TAG_VALUE),
        {},
        f"Tags of its jobs, at most {MOST_TAGS}; a tag of the request with the same key is replaced.",
        example="{cost-center: research-7}",
    )

    def check(self, at: Location) -> None:
        if at.is_sound("subnets", "security_group_ids"):
            self._check_network(at)
        for name in self.tags:
            if name in READERS or name.lower().startswith(TAG_PREFIX):
                message = "is an option of the queue, which the submitter of a job chooses"
                at.below("tags").below(name).refuse(message, "leave it out")
        if len(self.tags) > MOST_TAGS:
            at.below("tags").refuse(f"has {len(self.tags)} tags", f"write at most {MOST_TAGS}")

    def _check_network(self, at: Location) -> None:
        for name, ids, most in (
            ("subnets", self.subnets, MOST_SUBNETS),
            ("security_group_ids", self.security_group_ids, MOST_SECURITY_GROUPS),
        ):
            if len(ids) > most:
                at.below(name).refuse(f"has {len(ids)} items", f"write at most {most}")
        if bool(self.subnets) != bool(self.security_group_ids):
            missing = "security_group_ids" if self.subnets else "subnets"
            message = "is missing: SageMaker takes subnets and security groups together"
            at.below(missing).refuse(message, f"write {missing} too, or neither of them")
