"""EFA interfaces of one instance, by type.

Source: Amazon EC2 API, DescribeInstanceTypes (``NetworkInfo.EfaInfo.MaximumEfaInterfaces``), for the type
without ``ml.``. Accelerators and their numbers are in ``trainmaster.core.memory.accelerators``.
"""

from collections.abc import Mapping
from types import MappingProxyType

EFA_RESOURCE = "vpc.amazonaws.com/efa"
"""Resource name of the EFA device plugin."""

_FROM_8XLARGE = dict.fromkeys(("8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge"), 1)

_EFA_INTERFACES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "ml.g4dn": {"8xlarge": 1, "12xlarge": 1, "16xlarge": 1},
        "ml.g5": _FROM_8XLARGE,
        "ml.g6": _FROM_8XLARGE,
        "ml.gr6": {"8xlarge": 1},
        "ml.g6e": _FROM_8XLARGE | {"24xlarge": 2, "48xlarge": 4},
        "ml.g7": _FROM_8XLARGE | {"48xlarge": 2},
        "ml.g7e": _FROM_8XLARGE | {"24xlarge": 2, "48xlarge": 4},
        "ml.p3dn": {"24xlarge": 1},
        "ml.p4d": {"24xlarge": 4},
        "ml.p4de": {"24xlarge": 4},
        "ml.p5": {"4xlarge": 1, "48xlarge": 32},
        "ml.p5e": {"48xlarge": 32},
        "ml.p5en": {"48xlarge": 16},
        "ml.p6-b200": {"48xlarge": 8},
        "ml.p6-b300": {"48xlarge": 16},
        "ml.trn1": {"32xlarge": 8},
        "ml.trn1n": {"32xlarge": 16},
        "ml.trn2": {"48xlarge": 16},
        "ml.inf1": {"24xlarge": 1},
        "ml.inf2": {},
    }
)
"""EFA interfaces by family and size. An omitted size has none; an omitted family is unknown."""


def efa_interfaces(instance_type: str) -> int | None:
    """Return the interfaces of one instance; None if they are not known."""
    family, _, size = instance_type.rpartition(".")
    sizes = _EFA_INTERFACES.get(family)
    return None if sizes is None else sizes.get(size, 0)
