"""What the hosts of a shape have between them."""

from collections.abc import Mapping
from types import MappingProxyType

from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.memory.training_runs import Run, Strategy
from trainmaster.core.request.options import Alternative

_FROM_8XLARGE = dict.fromkeys(("8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge"), 1)

_EFA: Mapping[str, Mapping[str, int]] = MappingProxyType(
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
"""EFA interfaces by family and size. A size that is left out has none, a family that is left out is unknown.

Source: Amazon EC2 API, DescribeInstanceTypes, NetworkInfo.EfaInfo, of the type without ``ml.``.
"""
_HYBRID = frozenset({Strategy.HYBRID_SHARD, Strategy.HYBRID_SHARD_ZERO2, Strategy.NO_SHARD})


def efa_interfaces(instance_type: str) -> int | None:
    """Of one instance; None: not known."""
    family, _, size = instance_type.rpartition(".")
    sizes = _EFA.get(family)
    return None if sizes is None else sizes.get(size, 0)


def network_note(shape: Alternative, run: Run | None) -> str:
    """One sentence; ``run`` where the job is one of the training program."""
    if shape.count == 1:
        return "one host: nothing goes over a network"
    interfaces = efa_interfaces(shape.capacity.instance_type)
    if interfaces:
        return f"{shape.count} hosts with EFA, if the image has it"
    between = "without EFA" if interfaces == 0 else "with or without EFA, that is not known here"
    return f"{shape.count} hosts {between}{_slow(shape, run)}"


def _slow(shape: Alternative, run: Run | None) -> str:
    if run is None:
        return ": each step waits for a slower network"
    found = BY_TYPE.get(shape.capacity.instance_type)
    several = found is not None and found.count > 1
    if several and run.strategy not in _HYBRID:
        return ": strategy hybrid_shard keeps the weights' traffic inside each host"
    return ": more gradient_accumulation_steps and reduce_dtype bf16 use the slow network less"
