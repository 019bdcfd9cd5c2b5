"""The shipped table: which accelerators SageMaker's instance types have, how many, and their memory.

Figures are those of EC2's DescribeInstanceTypes (``GpuInfo``, ``NeuronInfo``, ``MemoryInfo``) for the type
without ``ml.``; families say where theirs come from instead. Memory is that of the device: a process can use
a little less.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

EC2 = "Amazon EC2 API, DescribeInstanceTypes"
INSTANCE_PAGE = "Amazon EC2 user guide, accelerated computing instances"

# Neither GPUs nor Neuron devices: general purpose, compute, memory optimised, burstable.
_WITHOUT = re.compile(r"ml\.[mcrt][0-9][a-z0-9-]*\.[a-z0-9]+")
_WITHOUT_BF16 = frozenset({"K80", "V100", "T4"})
"""Compute capability below 8.0. Source: NVIDIA, CUDA C++ programming guide, arithmetic instructions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """The accelerators of one instance; all are of one kind."""

    kind: str
    count: int
    memory_mib: int
    """MiB of one accelerator."""
    are_gpus: bool
    host_gib: int | None
    """GiB of the instance itself; None if the table does not have it."""

    @property
    def multiply_bf16(self) -> bool:
        """Tell whether they have bf16 units; without them fp32 is as fast or faster."""
        return self.kind not in _WITHOUT_BF16

    @property
    def host_memory_bytes(self) -> int | None:
        return None if self.host_gib is None else self.host_gib * 2**30

    @property
    def memory_bytes(self) -> int:
        """Bytes of one accelerator."""
        return self.memory_mib * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Instance types with the same kind of accelerator."""

    name: str
    kind: str
    memory_mib: int
    """MiB of one accelerator."""
    counts: Mapping[str, int]
    """Accelerators of each size; the size is the part behind the family in the type's name."""
    host_gib: Mapping[str, int] = field(default_factory=dict)
    """GiB of the instance itself, by size; empty if it is not recorded."""
    are_gpus: bool = True
    source: str = EC2


_EIGHT_AT_48XLARGE = {
    "xlarge": 1,
    "2xlarge": 1,
    "4xlarge": 1,
    "8xlarge": 1,
    "12xlarge": 4,
    "16xlarge": 1,
    "24xlarge": 4,
    "48xlarge": 8,
}
_HOST_16_TO_768 = {
    "xlarge": 16,
    "2xlarge": 32,
    "4xlarge": 64,
    "8xlarge": 128,
    "12xlarge": 192,
    "16xlarge": 256,
    "24xlarge": 384,
    "48xlarge": 768,
}
_HOST_32_TO_1536 = {size: 2 * gib for size, gib in _HOST_16_TO_768.items()}
_HOST_64_TO_2048 = {
    "2xlarge": 64,
    "4xlarge": 128,
    "8xlarge": 256,
    "12xlarge": 512,
    "24xlarge": 1024,
    "48xlarge": 2048,
}
_ONE_TO_EIGHT = {"2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 2, "24xlarge": 4, "48xlarge": 8}

FAMILIES = (
    Family(
        name="ml.g4dn",
        kind="T4",
        memory_mib=16_384,
        counts={"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 4, "16xlarge": 1},
        host_gib=_HOST_16_TO_768,
    ),
    Family(name="ml.g5", kind="A10G", memory_mib=22_888, counts=_EIGHT_AT_48XLARGE, host_gib=_HOST_16_TO_768),
    Family(name="ml.g6", kind="L4", memory_mib=22_888, counts=_EIGHT_AT_48XLARGE, host_gib=_HOST_16_TO_768),
    Family(
        name="ml.gr6",
        kind="L4",
        memory_mib=22_888,
        counts={"4xlarge": 1, "8xlarge": 1},
        host_gib={"4xlarge": 128, "8xlarge": 256},
    ),
    Family(
        name="ml.g6e", kind="L40S", memory_mib=45_776, counts=_EIGHT_AT_48XLARGE, host_gib=_HOST_32_TO_1536
    ),
    Family(
        name="ml.g7", kind="RTX PRO 4500", memory_mib=32_768, counts=_ONE_TO_EIGHT, host_gib=_HOST_16_TO_768
    ),
    Family(
        name="ml.g7e",
        kind="RTX PRO Server 6000",
        memory_mib=98_304,
        counts=_ONE_TO_EIGHT,
        host_gib=_HOST_64_TO_2048,
    ),
    Family(
        name="ml.p2",
        kind="K80",
        memory_mib=12_288,
        counts={"xlarge": 1, "8xlarge": 8, "16xlarge": 16},
        source=INSTANCE_PAGE,
    ),
    Family(
        name="ml.p3",
        kind="V100",
        memory_mib=16_384,
        counts={"2xlarge": 1, "8xlarge": 4, "16xlarge": 8},
        host_gib={"2xlarge": 61, "8xlarge": 244, "16xlarge": 488},
        source=INSTANCE_PAGE,
    ),
    Family(
        name="ml.p3dn", kind="V100", memory_mib=32_768, counts={"24xlarge": 8}, host_gib={"24xlarge": 768}
    ),
    Family(
        name="ml.p4d", kind="A100", memory_mib=40_960, counts={"24xlarge": 8}, host_gib={"24xlarge": 1152}
    ),
    Family(
        name="ml.p4de", kind="A100", memory_mib=81_920, counts={"24xlarge": 8}, host_gib={"24xlarge": 1152}
    ),
    Family(
        name="ml.p5",
        kind="H100",
        memory_mib=81_920,
        counts={"4xlarge": 1, "48xlarge": 8},
        host_gib={"4xlarge": 256, "48xlarge": 2048},
    ),
    Family(
        name="ml.p5e", kind="H200", memory_mib=144_384, counts={"48xlarge": 8}, host_gib={"48xlarge": 2048}
    ),
    Family(
        name="ml.p5en", kind="H200", memory_mib=144_384, counts={"48xlarge": 8}, host_gib={"48xlarge": 2048}
    ),
    Family(
        name="ml.p6-b200",
        kind="B200",
        memory_mib=183_359,
        counts={"48xlarge": 8},
        host_gib={"48xlarge": 2048},
    ),
    Family(
        name="ml.p6-b300",
        kind="B300",
        memory_mib=275_040,
        counts={"48xlarge": 8},
        host_gib={"48xlarge": 4096},
    ),
    Family(
        name="ml.p6e-gb200",
        kind="B200",
        memory_mib=176_429,  # 740 GB for four
        counts={"36xlarge": 4},
        source=INSTANCE_PAGE,
    ),
    Family(
        name="ml.trn1",
        kind="Trainium",
        memory_mib=32_768,
        counts={"2xlarge": 1, "32xlarge": 16},
        host_gib={"2xlarge": 32, "32xlarge": 512},
        are_gpus=False,
    ),
    Family(
        name="ml.trn1n",
        kind="Trainium",
        memory_mib=32_768,
        counts={"32xlarge": 16},
        host_gib={"32xlarge": 512},
        are_gpus=False,
    ),
    Family(
        name="ml.trn2",
        kind="Trainium2",
        memory_mib=98_304,  # 96 GiB a device, as the page says; EC2's API gives more than that
        counts={"48xlarge": 16},
        host_gib={"48xlarge": 2048},
        are_gpus=False,
        source=INSTANCE_PAGE,
    ),
    Family(
        name="ml.inf1",
        kind="Inferentia",
        memory_mib=8_192,
        counts={"xlarge": 1, "2xlarge": 1, "6xlarge": 4, "24xlarge": 16},
        are_gpus=False,
    ),
    Family(
        name="ml.inf2",
        kind="Inferentia2",
        memory_mib=32_768,
        counts={"xlarge": 1, "8xlarge": 1, "24xlarge": 6, "48xlarge": 12},
        are_gpus=False,
    ),
)

BY_TYPE: Mapping[str, Accelerators] = MappingProxyType(
    {
        f"{family.name}.{size}": Accelerators(
            kind=family.kind,
            count=count,
            memory_mib=family.memory_mib,
            are_gpus=family.are_gpus,
            host_gib=family.host_gib.get(size),
        )
        for family in FAMILIES
        for size, count in family.counts.items()
    },
)


def gpus(instance_type: str) -> int | None:
    """Return the GPUs of one instance; Trainium and Inferentia are no GPUs. None if the type is unknown."""
    accelerators = BY_TYPE.get(instance_type)
    if accelerators is not None:
        return accelerators.count if accelerators.are_gpus else 0
    return 0 if _WITHOUT.fullmatch(instance_type) else None
