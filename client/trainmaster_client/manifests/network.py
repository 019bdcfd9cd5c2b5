"""EFA interfaces of one instance, by type, where EC2 has them.

Source: Amazon EC2 API, DescribeInstanceTypes (``NetworkInfo.EfaInfo.MaximumEfaInterfaces``), for the type
without ``ml.``. Accelerators and their numbers are in ``trainmaster.core.memory.accelerators``.
"""

from collections.abc import Mapping
from types import MappingProxyType

EFA_RESOURCE = "vpc.amazonaws.com/efa"
"""Of the EFA device plugin."""

_ONE_FROM_8XLARGE = ("8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge")
EFA_INTERFACES: Mapping[str, int] = MappingProxyType(
    {
        **{f"ml.g5.{size}": 1 for size in _ONE_FROM_8XLARGE},
        **{f"ml.g6.{size}": 1 for size in _ONE_FROM_8XLARGE},
        "ml.gr6.8xlarge": 1,
        **{f"ml.g6e.{size}": 1 for size in _ONE_FROM_8XLARGE[:3]},
        "ml.g6e.24xlarge": 2,
        "ml.g6e.48xlarge": 4,
        "ml.g7e.8xlarge": 1,
        "ml.g7e.12xlarge": 1,
        "ml.g7e.24xlarge": 2,
        "ml.g7e.48xlarge": 4,
        "ml.p4d.24xlarge": 4,
        "ml.p4de.24xlarge": 4,
        "ml.p5.4xlarge": 1,
        "ml.p5.48xlarge": 32,
        "ml.p5e.48xlarge": 32,
        "ml.p5en.48xlarge": 16,
        "ml.p6-b200.48xlarge": 8,
        "ml.p6-b300.48xlarge": 16,
        "ml.trn1.32xlarge": 8,
        "ml.trn1n.32xlarge": 16,
        "ml.trn2.48xlarge": 16,
    }
)
